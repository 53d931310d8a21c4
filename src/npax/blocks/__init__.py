"""Parts of networks."""

from .kr_block import KRBlock as KRBlock
from .mlp import MLP as MLP, LayerNorm as LayerNorm, Linear as Linear
from .stack import scan_blocks as scan_blocks, split_last as split_last, unrolled as unrolled
from .transformer_block import (
    TransformerBlock as TransformerBlock,
    read_memories as read_memories,
    transformer_stack as transformer_stack,
)
