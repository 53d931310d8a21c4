from collections.abc import Sequence
from numbers import Integral

import equinox as eqx
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from .activations import GELU, AbstractActivation
from .layer_norm import LayerNorm
from .linear import Linear, spread_over_locations


class MLP(eqx.Module):
    """Affine maps with an activation between them; `sizes` lists the widths from input to output.

    `locations`: which of the inputs are coordinates, if any; the first map is `spread_over_locations`. `activated`:
    whether the inputs come out of the activation. The last map starts with the weights of any `Linear`, whatever the
    activation.

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
