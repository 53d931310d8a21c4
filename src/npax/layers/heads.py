import jax.numpy as jnp
from jaxtyping import Array, Float


def split_heads(a: Float[Array, "n inner"], heads: int) -> Float[Array, "heads n d"]:
    """Each head's share of the channels, heads first, as attentions take them."""
    return jnp.moveaxis(a.reshape(a.shape[0], heads, a.shape[1] // heads), 1, 0)


def join_heads(a: Float[Array, "heads n d"]) -> Float[Array, "n inner"]:
    """The channels of all heads side by side: undoes `split_heads`."""
    return jnp.moveaxis(a, 0, 1).reshape(a.shape[1], a.shape[0] * a.shape[2])
