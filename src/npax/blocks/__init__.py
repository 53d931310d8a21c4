"""Parts of networks."""

from ..layers import (
    GELU as GELU,
    MLP as MLP,
    LayerNorm as LayerNorm,
    Linear as Linear,
    ReLU as ReLU,
    away_from_zero as away_from_zero,
    masked_mean as masked_mean,
    spread_over_locations as spread_over_locations,
    standardise as standardise,
)
from .cross_attention import (
    AbstractCrossAttention as AbstractCrossAttention,
    DotProductAttention as DotProductAttention,
    LaplaceAttention as LaplaceAttention,
    MultiHeadAttention as MultiHeadAttention,
    UniformAttention as UniformAttention,
)
from .kr_block import KRBlock as KRBlock, kr_stack as kr_stack
from .pair_network import PairNetwork as PairNetwork
from .paths import DeterministicPath as DeterministicPath, LatentPath as LatentPath, PointEncoder as PointEncoder
from .pyramid import Level as Level, pull_push as pull_push, pyramid as pyramid
from .pyramid_unet import PyramidUNet as PyramidUNet
from .set_conv import Grid as Grid, SetConv as SetConv
from .stack import (
    appended as appended,
    read_memories as read_memories,
    scan_blocks as scan_blocks,
    split_last as split_last,
    unrolled as unrolled,
    write_memories as write_memories,
    write_memories_in_threads as write_memories_in_threads,
    write_one_more as write_one_more,
)
from .te_block import TEBlock as TEBlock, read_located as read_located, te_stack as te_stack
from .transformer_block import TransformerBlock as TransformerBlock, transformer_stack as transformer_stack
from .unet import ConvBlock as ConvBlock, UNet as UNet
