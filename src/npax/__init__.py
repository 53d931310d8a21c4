"""npax: neural processes in JAX."""

from typing import TYPE_CHECKING

from . import (
    attention as attention,
    bayesopt as bayesopt,
    bias as bias,
    blocks as blocks,
    data as data,
    gp as gp,
    likelihoods as likelihoods,
    metrics as metrics,
    models as models,
    objectives as objectives,
    tasks as tasks,
    training as training,
)
from .attention import (
    DeepKernelAttention as DeepKernelAttention,
    DenseAttention as DenseAttention,
    FavorAttention as FavorAttention,
    FusedAttention as FusedAttention,
    RotaryCoordinates as RotaryCoordinates,
    ScanAttention as ScanAttention,
    dense_attention as dense_attention,
    fused_attention as fused_attention,
    scan_attention as scan_attention,
)
from .bias import (
    CausalBias as CausalBias,
    ColumnsBias as ColumnsBias,
    GeometricRBFBias as GeometricRBFBias,
    KernelBias as KernelBias,
    RBFNetworkBias as RBFNetworkBias,
)
from .blocks import (
    DotProductAttention as DotProductAttention,
    LaplaceAttention as LaplaceAttention,
    MultiHeadAttention as MultiHeadAttention,
    UniformAttention as UniformAttention,
)
from .inference import sample as sample
from .models import (
    BNP as BNP,
    CNP as CNP,
    EQTNP as EQTNP,
    LBANP as LBANP,
    NP as NP,
    PTTNP as PTTNP,
    RCNP as RCNP,
    TEPTTNP as TEPTTNP,
    TETNP as TETNP,
    TNPA as TNPA,
    TNPD as TNPD,
    TNPKR as TNPKR,
    TNPND as TNPND,
    ConvCNP as ConvCNP,
    GridConvCNP as GridConvCNP,
    SpectralTNPKR as SpectralTNPKR,
    Symmetrised as Symmetrised,
)
from .pretrained import pretrained as pretrained
from .serialise import load as load, save as save
from .task import Task as Task
from .training import FitResult as FitResult, finetune as finetune, fit as fit

if TYPE_CHECKING:
    from . import estimators as estimators
    from .estimators import (
        NeuralProcessRegressor as NeuralProcessRegressor,
        fill_gaps as fill_gaps,
        interpolate as interpolate,
    )

_ESTIMATORS = ("NeuralProcessRegressor", "fill_gaps", "interpolate")


def __getattr__(name):
    """Estimators and plots, when they are first asked for: scikit-learn imports pandas wherever that is installed."""
    from importlib import import_module

    if name == "plot":
        return import_module(".plot", __name__)
    if name != "estimators" and name not in _ESTIMATORS:
        raise AttributeError(f"module 'npax' has no attribute {name!r}")
    estimators = import_module(".estimators", __name__)
    return estimators if name == "estimators" else getattr(estimators, name)


def __dir__():
    return sorted({*globals(), "estimators", "plot", *_ESTIMATORS})
