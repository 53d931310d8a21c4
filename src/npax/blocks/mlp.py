import abc
import functools
import math
from collections.abc import Sequence
from itertools import accumulate
from numbers import Integral
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..matmul import matmul
from ..wide import wide

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


class AbstractActivation(eqx.Module):
    """A function of every number by itself, between the maps of a network.

    `gain`: how many times larger the first weights of maps behind it are than those of other `Linear` maps.
    """

    gain: ClassVar[float]

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The activations."""


class GELU(AbstractActivation):
    r"""GELU in its tanh form, $x\,\sigma(2u)$ with $u = \sqrt{2/\pi}\,(x + 0.044715\,x^3)$.

    The same function as `jax.nn.gelu`; one exponential is several times faster on CPUs than XLA's tanh.
    """

    gain: ClassVar[float] = 1.0

    def __call__(self, x):
        return x * jax.nn.sigmoid(x * (1.5957691216057308 + 0.07135481282 * jnp.square(x)))


class ReLU(AbstractActivation):
    r"""$\max(x, 0)$.

    It takes half of the second moment. Weights behind it have a variance of two over their number (He et al. 2015):
    each layer hands its input's size on, and what the context says arrives behind nine of them.
    """

    gain: ClassVar[float] = math.sqrt(6.0)

    def __call__(self, x):
        # Not as a maximum: of those and products XLA's CPU backend makes one long fusion, which allocates its hidden
        # layers anew in every call; CNP then predicts 1.4 times slower.
        return jnp.where(x <= 0, 0.0, x)


class MLP(eqx.Module):
    """Affine maps with an activation between them; `sizes` lists the widths from input to output.

    `locations`: which of the inputs are coordinates, if any; the first map is `spread_over_locations`. `activated`:
    whether the inputs come out of the activation. The last map starts small, whatever the activation.

    **Good values:** `GELU()`, the default, in transformers; `ReLU()` in the deep networks of CNP and NP, as in
    ANP's paper (with GELU, which shrinks what passes through many layers, CNP learns more slowly).
    """

    layers: tuple[Linear, ...]
    activation: AbstractActivation = GELU()

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        activation: AbstractActivation | None = None,
        locations: slice | None = None,
        activated: bool = False,
        key: PRNGKeyArray,
    ):
        if not all(isinstance(size, Integral) and size >= 1 for size in sizes):
            raise ValueError(f"The widths of a network must be at least 1, got {[*sizes]}.")
        self.activation = GELU() if activation is None else activation
        keys = jr.split(key, len(sizes) - 1)
        gains = [self.activation.gain if activated else 1.0, *[self.activation.gain] * (len(sizes) - 3), 1.0]
        first, *others = (
            Linear(a, b, gain=gain, key=k)
            for a, b, gain, k in zip(sizes[:-1], sizes[1:], gains[-len(keys) :], keys, strict=True)
        )
        if locations is not None:
            first = spread_over_locations(first, locations, key=jr.fold_in(key, len(sizes)))
        self.layers = (first, *others)

    def behind(self, norm: LayerNorm) -> "MLP":
        """The network with the scale and shift of `norm` inside: it takes what is only standardised."""
        return eqx.tree_at(lambda m: m.layers[0], self, norm.before(self.layers[0]))

    def after(self, first: Linear) -> "MLP":
        """The network with one more affine map before it, which its first takes in (see `Linear.then`)."""
        return eqx.tree_at(lambda m: m.layers[0], self, first.then(self.layers[0]))

    def then(self, last: Linear) -> "MLP":
        """The network with one more affine map, which its last takes in (see `Linear.then`)."""
        return eqx.tree_at(lambda m: m.layers[-1], self, self.layers[-1].then(last))

    def hidden(self, *x: Float[Array, "#n _"]) -> Float[Array, "n width"]:
        """The last hidden layer: what the last affine map takes."""
        for layer in self.layers[:-1]:
            x = (self.activation(layer(*x)),)
        return x[0]

    def __call__(self, *x: Float[Array, "#n _"]) -> Float[Array, "n size_out"]:
        """The network of every row; `x` may come in parts (see `Linear`)."""
        first, *others = self.layers
        y = first(*x)
        for layer in others:
            y = layer(self.activation(y))
        return y


def away_from_zero(network: MLP, *, key: PRNGKeyArray) -> MLP:
    """The network with small random numbers for its last biases, which start as zeros.

    For tokens that would all be zero where there is nothing, or zeros, to tell: `standardise` has a slope of 316 there,
    in each of the blocks that follow, and gradients overflow.
    """
    bias = 0.1 * jr.normal(key, network.layers[-1].weight.shape[1:])
    return eqx.tree_at(lambda m: m.layers[-1].bias, network, bias, is_leaf=lambda a: a is None)
