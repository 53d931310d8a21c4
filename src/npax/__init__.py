"""npax: neural processes in JAX."""

from . import (
    attention as attention,
    bias as bias,
    blocks as blocks,
    gp as gp,
    likelihoods as likelihoods,
    models as models,
    objectives as objectives,
    tasks as tasks,
    training as training,
)
from .attention import (
    DenseAttention as DenseAttention,
    RotaryCoordinates as RotaryCoordinates,
    ScanAttention as ScanAttention,
    dense_attention as dense_attention,
    scan_attention as scan_attention,
)
from .bias import (
    CausalBias as CausalBias,
    ColumnsBias as ColumnsBias,
    GeometricRBFBias as GeometricRBFBias,
    KernelBias as KernelBias,
    RBFNetworkBias as RBFNetworkBias,
)
from .estimators import NeuralProcessRegressor as NeuralProcessRegressor
from .inference import sample as sample
from .models import TNPKR as TNPKR
from .pretrained import pretrained as pretrained
from .serialise import load as load, save as save
from .task import Task as Task
from .training import FitResult as FitResult, fit as fit
