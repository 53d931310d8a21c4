from . import (
    attention as attention,
    bayesopt as bayesopt,
    bench as bench,
    bias as bias,
    blocks as blocks,
    counts as counts,
    data as data,
    devices as devices,
    estimators as estimators,
    gp as gp,
    inference as inference,
    likelihoods as likelihoods,
    linalg as linalg,
    metrics as metrics,
    models as models,
    objectives as objectives,
    plot as plot,
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
from .estimators import (
    CountRegressor as CountRegressor,
    LogNormalRegressor as LogNormalRegressor,
    NeuralProcessRegressor as NeuralProcessRegressor,
    average as average,
    fill_gaps as fill_gaps,
    interpolate as interpolate,
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
from .version import __version__ as __version__
