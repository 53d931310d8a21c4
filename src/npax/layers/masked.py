import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..wide import wide


def masked_mean(a: Float[Array, "n size"], mask: Bool[Array, " n"]) -> Float[Array, " size"]:
    """The mean over the points that count; zero where there are none."""
    total = jnp.sum(jnp.where(mask[:, None], a, 0.0).astype(wide(a.dtype)), axis=0)
    return (total / jnp.maximum(jnp.sum(mask.astype(total.dtype)), 1.0)).astype(a.dtype)
