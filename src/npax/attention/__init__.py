"""Attention mechanisms: one call signature, one mechanism per file."""

from ._base import AbstractAttention as AbstractAttention, Memory as Memory
from .deep_kernel import DeepKernelAttention as DeepKernelAttention
from .dense import DenseAttention as DenseAttention, dense_attention as dense_attention
from .favor import FavorAttention as FavorAttention
from .fused import FusedAttention as FusedAttention, fused_attention as fused_attention
from .rotary import RotaryCoordinates as RotaryCoordinates
from .scan import ScanAttention as ScanAttention, scan_attention as scan_attention
from .tokens import AbstractTokenAttention as AbstractTokenAttention, TokenAttention as TokenAttention
from .translation_equivariant import translation_equivariant_attention as translation_equivariant_attention
