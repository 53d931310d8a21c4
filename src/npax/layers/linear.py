import functools
import math
from itertools import accumulate

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..matmul import matmul

SLOPE = 4.0
"""The largest first weights of a network on coordinates, which lie in [-2, 2]."""


class Linear(eqx.Module):
    """An affine map of every row, `x @ weight + bias`.

    `x` may come in parts, its columns side by side; a part of one row belongs to all rows, and is multiplied once.
    Weights start uniform, up to `gain` over the root of `size_in`.
    """

    weight: Float[Array, "size_in size_out"]
    bias: Float[Array, " size_out"] | None

    def __init__(self, size_in: int, size_out: int, *, use_bias: bool = True, gain: float = 1.0, key: PRNGKeyArray):
        bound = gain / math.sqrt(size_in)
        self.weight = jr.uniform(key, (size_in, size_out), minval=-bound, maxval=bound)
        self.bias = jnp.zeros(size_out) if use_bias else None

    def __call__(self, *x: Float[Array, "#n _"]) -> Float[Array, "n size_out"]:
        ends = list(accumulate(part.shape[1] for part in x))
        weights = jnp.split(self.weight, ends[:-1])
        y = functools.reduce(jnp.add, (matmul(*each) for each in zip(x, weights, strict=True)))
        return y if self.bias is None else y + self.bias

    @property
    def offset(self) -> Float[Array, " size_out"]:
        """What is added to every row: the bias, zeros where there is none."""
        return jnp.zeros(self.weight.shape[1:], self.weight.dtype) if self.bias is None else self.bias

    def then(self, last: "Linear") -> "Linear":
        """Both maps as one, this one first: cheaper where there are more rows than columns."""
        bias = last.bias if self.bias is None else last(self.bias[None])[0]
        return eqx.tree_at(
            lambda m: (m.weight, m.bias), self, (self.weight @ last.weight, bias), is_leaf=lambda a: a is None
        )


def constant_beside(constant: Float[Array, " _"], *maps: Linear) -> Linear:
    """The map of parts, side by side, to the constant and what each of the maps makes of its part, side by side."""
    weight = jax.scipy.linalg.block_diag(*(linear.weight for linear in maps))
    bias = jnp.concatenate([constant, *(linear.offset for linear in maps)])
    return eqx.tree_at(lambda m: (m.weight, m.bias), maps[0], (jnp.pad(weight, ((0, 0), (constant.shape[0], 0))), bias))


def spread_over_locations(
    linear: Linear, coordinates: slice = slice(None), *, slope: float = SLOPE, reach: float = 2.0, key: PRNGKeyArray
) -> Linear:
    r"""The map with larger first weights on its inputs that are coordinates, and zeros at places that are spread.

    Each output is $w \cdot (x - c)$ of the coordinates, with $w$ uniform in $[-s, s]$ (over $\sqrt{d_x}$) and $c$
    uniform in $[-2, 2]$, where tasks have their points: behind an activation the outputs bend all over that range.
    With small weights and no shifts they all bend at the origin, and networks that see locations learn for hundreds
    of steps to tell near ones apart.

    **Arguments:** `coordinates`: which inputs they are; `slope`: $s$; `reach`: the range of $c$.
    """
    w_key, c_key = jr.split(key)
    shape = linear.weight[coordinates].shape
    bound = slope / math.sqrt(shape[0])
    w = jr.uniform(w_key, shape, minval=-bound, maxval=bound)
    bias = -jnp.sum(w * jr.uniform(c_key, shape, minval=-reach, maxval=reach), axis=0)
    return eqx.tree_at(lambda m: (m.weight, m.bias), linear, (linear.weight.at[coordinates].set(w), bias))
