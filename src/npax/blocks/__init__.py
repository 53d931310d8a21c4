"""Parts of networks."""

from .kr_block import KRBlock as KRBlock
from .mlp import MLP as MLP, LayerNorm as LayerNorm, Linear as Linear
from .stack import (
    read_memories as read_memories,
    scan_blocks as scan_blocks,
    split_last as split_last,
    unrolled as unrolled,
    write_memories as write_memories,
)
from .transformer_block import TransformerBlock as TransformerBlock, transformer_stack as transformer_stack
