"""Neural processes: one file per model, and `presets` with the sizes of the papers."""

from . import presets as presets
from ._base import (
    AbstractConditionalNeuralProcess as AbstractConditionalNeuralProcess,
    AbstractNeuralProcess as AbstractNeuralProcess,
    AbstractTokenStack as AbstractTokenStack,
    State as State,
)
from ._joint import AbstractJointNeuralProcess as AbstractJointNeuralProcess
from ._latent import (
    AbstractLatentNeuralProcess as AbstractLatentNeuralProcess,
    AbstractVariationalNeuralProcess as AbstractVariationalNeuralProcess,
)
from .bnp import BNP as BNP
from .cnp import CNP as CNP
from .convcnp import ConvCNP as ConvCNP
from .grid_convcnp import GridConvCNP as GridConvCNP
from .np import NP as NP
from .pt_tnp import LBANP as LBANP, PTTNP as PTTNP
from .rcnp import RCNP as RCNP
from .symmetrised import Symmetrised as Symmetrised, View as View, mirrored as mirrored, turned as turned
from .te_pt_tnp import TEPTTNP as TEPTTNP
from .te_tnp import TETNP as TETNP
from .tnp import EQTNP as EQTNP, TNPD as TNPD
from .tnp_a import TNPA as TNPA
from .tnp_kr import TNPKR as TNPKR
from .tnp_kr_spectral import SpectralTNPKR as SpectralTNPKR
from .tnp_nd import TNPND as TNPND
