import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..wide import wide
from .linear import Linear


class LayerNorm(eqx.Module):
    """Zero mean and unit variance over the last axis (`standardise`), then a learned scale and shift."""

    scale: Float[Array, " size"]
    shift: Float[Array, " size"]

    def __init__(self, size: int):
        self.scale, self.shift = jnp.ones(size), jnp.zeros(size)

    def __call__(self, x: Float[Array, "*axes size"]) -> Float[Array, "*axes size"]:
        return standardise(x) * self.scale + self.shift

    def before(self, linear: Linear) -> Linear:
        """The map with scale and shift inside: `norm.before(linear)(standardise(x))` is `linear(norm(x))`.

        Tokens are passed over less often, and the gradients of scale and shift are sums over weights, not over tokens:
        a training step of TNP-KR takes a tenth less time on CPUs. Inputs of `linear` beyond the norm's are not scaled.
        """
        others = linear.weight.shape[0] - self.scale.shape[0]
        scale, shift = jnp.pad(self.scale, (0, others), constant_values=1.0), jnp.pad(self.shift, (0, others))
        bias = shift @ linear.weight + (0.0 if linear.bias is None else linear.bias)
        return eqx.tree_at(
            lambda m: (m.weight, m.bias), linear, (scale[:, None] * linear.weight, bias), is_leaf=lambda a: a is None
        )


@jax.custom_vjp
def standardise(x: Float[Array, "*axes size"]) -> Float[Array, "*axes size"]:
    """Zero mean and unit variance over the last axis; the gradient in closed form takes half of autodiff's time."""
    return _standardise_forward(x)[0]


def _standardise_forward(x):
    short, x = x.dtype, x.astype(wide(x.dtype))
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    inverse = jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + 1e-5)
    # The comparison, never true, keeps XLA's CPU backend from making one operation of the norm and the product behind
    # it: apart they take less time, all of a prediction of TNP-KR a twentieth.
    standard, inverse = jnp.where(inverse <= 0, 0.0, centred * inverse).astype(short), inverse.astype(short)
    return standard, (standard, inverse)


def _standardise_backward(residuals, d_y):
    standard, inverse = residuals
    along = jnp.mean(d_y * standard, axis=-1, keepdims=True)
    return ((d_y - jnp.mean(d_y, axis=-1, keepdims=True) - standard * along) * inverse,)


standardise.defvjp(_standardise_forward, _standardise_backward)
