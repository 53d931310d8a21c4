"""What blocks and attentions are made of: maps, norms, activations, heads."""

from .activations import GELU as GELU, AbstractActivation as AbstractActivation, ReLU as ReLU
from .heads import join_heads as join_heads, split_heads as split_heads
from .layer_norm import LayerNorm as LayerNorm, standardise as standardise
from .linear import (
    Linear as Linear,
    constant_beside as constant_beside,
    spread_over_locations as spread_over_locations,
)
from .masked import masked_mean as masked_mean
from .mlp import MLP as MLP, away_from_zero as away_from_zero
