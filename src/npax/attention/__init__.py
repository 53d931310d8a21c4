"""Attention mechanisms: one call signature, one mechanism per file."""

from ._base import AbstractAttention as AbstractAttention, Memory as Memory
from .dense import DenseAttention as DenseAttention, dense_attention as dense_attention
from .rotary import RotaryCoordinates as RotaryCoordinates
from .scan import ScanAttention as ScanAttention, scan_attention as scan_attention
