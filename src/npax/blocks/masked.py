import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def masked_mean(a: Float[Array, "n size"], mask: Bool[Array, " n"]) -> Float[Array, " size"]:
    """The mean over the points that count; zero where there are none."""
    return jnp.sum(jnp.where(mask[:, None], a, 0.0), axis=0) / jnp.maximum(jnp.sum(mask.astype(a.dtype)), 1.0)
