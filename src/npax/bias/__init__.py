"""Attention biases: functions of pairs of locations that are added to the logits."""

from ._base import AbstractBias as AbstractBias, SumBias as SumBias
from .causal import CausalBias as CausalBias
from .columns import ColumnsBias as ColumnsBias
from .distance import distance as distance, squared_distance as squared_distance
from .geometric import GeometricRBFBias as GeometricRBFBias
from .kernel import KernelBias as KernelBias
from .rbf_network import RBFNetworkBias as RBFNetworkBias
