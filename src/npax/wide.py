"""Sums of numbers of 16 bits."""

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike


def wide(dtype: DTypeLike) -> np.dtype:
    """What sums over many numbers are taken in, and places on a grid are counted in: float32 for those of 16 bits. A
    sum in bfloat16 stops to grow, one in float16 overflows at 65,504, and neither counts a thousand nodes."""
    return jnp.dtype(dtype if jnp.dtype(dtype).itemsize >= 4 else jnp.float32)
