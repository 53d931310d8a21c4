"""Parts of networks."""

from .kr_block import KRBlock as KRBlock
from .mlp import MLP as MLP, LayerNorm as LayerNorm, Linear as Linear
