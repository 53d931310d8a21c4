import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray


class RotaryCoordinates(eqx.Module):
    r"""Turns each pair of channels by the angle $w_{hp} \cdot x$, so that products see signed differences only:

    $$R(x_q) q \cdot R(x_k) k = q^\top R(x_k - x_q)\, k.$$

    Rotary embedding on continuous coordinates: exactly translation equivariant, linear in the number of points, no
    pairwise term, usable inside any attention on products. Unlike a distance it tells left from right. The
    frequencies $w$ are learned; they start with random directions and log-uniform lengths.

    **Shapes:** `w [heads d/2 dx]`; fewer coordinates than `dx` are read as padded with zeros.
    **Good values:** 0.5 to 24 radians per unit for coordinates in [-2, 2].
    **Pitfalls:** float32 angles lose accuracy as |x| grows: centre the coordinates first.
    """

    w: Float[Array, "heads pairs dx"]

    def __init__(self, heads: int, size: int, dx: int, *, low: float = 0.5, high: float = 24.0, key: PRNGKeyArray):
        if size % 2:
            raise ValueError(f"`size` must be even: channels are rotated in pairs; got {size}.")
        length_key, direction_key = jr.split(key)
        length = jnp.exp(jr.uniform(length_key, (heads, size // 2, 1), minval=jnp.log(low), maxval=jnp.log(high)))
        direction = jr.normal(direction_key, (heads, size // 2, dx))
        self.w = length * direction / jnp.linalg.norm(direction, axis=-1, keepdims=True)

    def turns(self, x: Float[Array, "n dx"]) -> tuple[Float[Array, "heads n pairs"], Float[Array, "heads n pairs"]]:
        """Cosine and sine of every angle at every point."""
        angle = jnp.einsum("hpx,nx->hnp", self.w[..., : x.shape[1]], x)
        return jnp.cos(angle), jnp.sin(angle)

    @staticmethod
    def rotate(
        a: Float[Array, "heads n d"], turns: tuple[Float[Array, "heads n pairs"], Float[Array, "heads n pairs"]]
    ) -> Float[Array, "heads n d"]:
        """Turns queries or keys; a pair is channel p of the first half with channel p of the second."""
        cos, sin = turns
        left, right = jnp.split(a, 2, axis=-1)
        return jnp.concatenate([left * cos - right * sin, left * sin + right * cos], axis=-1)
