"""Sums and squares of numbers of 16 bits."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array


def wide(dtype: DTypeLike) -> np.dtype:
    """What sums over many numbers are taken in, and places on a grid are counted in: float32 for those of 16 bits. A
    sum in bfloat16 stops to grow, one in float16 overflows at 65,504, and neither counts a thousand nodes."""
    return jnp.dtype(dtype if jnp.dtype(dtype).itemsize >= 4 else jnp.float32)


def root_of_squares(a: ArrayLike, b: ArrayLike) -> Array:
    """The square root of a² + b², whose squares over- and underflow in float16."""
    kind = jnp.result_type(a, b)
    return jnp.sqrt(sum(jnp.square(jnp.asarray(each, wide(kind))) for each in (a, b))).astype(kind)
