import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..layers import Linear


class PairNetwork(eqx.Module):
    """An MLP for pairs of points: two hidden layers with ReLU, no constant at the end.

    A pair costs as much as a token and there are many more of them: hence ReLU, whose gradient needs nothing but its
    output. The biases start scattered, since from zeros all kinks would lie at a difference of zero.
    """

    layers: tuple[Linear, Linear, Linear]

    def __init__(self, size_in: int, hidden: int, size_out: int, *, key: PRNGKeyArray):
        keys = jr.split(key, 3)
        self.layers = (
            _scattered(size_in, hidden, keys[0]),
            _scattered(hidden, hidden, keys[1]),
            Linear(hidden, size_out, use_bias=False, key=keys[2]),
        )

    def __call__(self, pairs: Float[Array, "pairs size_in"]) -> Float[Array, "pairs size_out"]:
        first, second, last = self.layers
        return last(_relu(second(_relu(first(pairs)))))


def _scattered(size_in, size_out, key):
    """A linear map with random biases, scaled (He et al. 2015) so that ReLUs hand their input's size on."""
    bound = math.sqrt(6 / size_in)
    weights = jr.uniform(key, (size_in + 1, size_out), minval=-bound, maxval=bound)
    linear = Linear(size_in, size_out, key=key)
    return eqx.tree_at(lambda linear: (linear.weight, linear.bias), linear, (weights[1:], weights[0]))


@jax.custom_vjp
def _relu(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """As `jax.nn.relu`; the gradient reads the output, which the next product keeps anyway."""
    return jnp.maximum(x, 0.0)


def _relu_fwd(x):
    y = jnp.maximum(x, 0.0)
    return y, y


def _relu_bwd(y, d_y):
    return (jnp.where(y > 0, d_y, 0.0),)


_relu.defvjp(_relu_fwd, _relu_bwd)
