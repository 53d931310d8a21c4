"""Neural processes: one file per model, and `presets` with the sizes of the papers."""

from . import presets as presets
from ._base import AbstractNeuralProcess as AbstractNeuralProcess, State as State
from .cnp import CNP as CNP
from .pt_tnp import LBANP as LBANP, PTTNP as PTTNP
from .rcnp import RCNP as RCNP
from .tnp import EQTNP as EQTNP, TNPD as TNPD
from .tnp_kr import TNPKR as TNPKR
