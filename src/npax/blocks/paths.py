"""The two paths from the context to the decoder of a neural process (ANP §2.1, §3)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from numpyro.distributions import Normal

from ..arguments import instance, whole_number
from ..attention.scan import ScanAttention
from ..layers import MLP, ReLU, masked_mean
from .cross_attention import AbstractCrossAttention, DotProductAttention, MultiHeadAttention
from .stack import scan_blocks
from .transformer_block import TransformerBlock, transformer_stack


class PointEncoder(eqx.Module):
    """Each observation from its `[x, y]`, by an MLP and, where there are `layers`, self-attention over the context.

    Ours: a layer is a `TransformerBlock`, normalised after each sum, with a feed-forward. ANP (App. A) has the
    architecture of its cross-attention, for images that of the Image Transformer.
    """

    embed: MLP
    stack: TransformerBlock | None
    dx: int = eqx.field(static=True)

    def __init__(
        self, dx: int, dy: int, hidden: tuple[int, ...], size: int, *, layers: int, heads: int, key: PRNGKeyArray
    ):
        whole_number(0, layers=layers)
        whole_number(1, heads=heads)
        if layers and size % heads:
            raise ValueError(f"`heads` must divide `size` where there are layers, got heads={heads}, size={size}.")
        e_key, s_key = jr.split(key)
        self.dx = dx
        self.embed = MLP([dx + dy, *hidden, size], activation=ReLU(), locations=slice(0, dx), key=e_key)
        shape = {"heads": heads, "head_size": size // heads, "hidden": size, "attention": ScanAttention()}
        self.stack = transformer_stack(layers, size, **shape, key=s_key) if layers else None

    def __call__(
        self, x: Float[Array, "n dx"], y: Float[Array, "n dy"], mask: Bool[Array, " n"]
    ) -> Float[Array, "n size"]:
        r = self.embed(jnp.concatenate([x, y], axis=-1))
        if self.stack is None:
            return r
        return scan_blocks(lambda r, block: (block.update(r, x, block.memorise(r, x, mask)), None), r, self.stack)[0]

    def mean(self, x: Float[Array, "n dx"], y: Float[Array, "n dy"], mask: Bool[Array, " n"]) -> Float[Array, " size"]:
        """The mean over the valid points, zero without any; the last affine map is of the mean, not of each point."""
        if self.stack is not None:
            return masked_mean(self(x, y, mask), mask)
        *_, last = self.embed.layers
        hidden = masked_mean(self.embed.hidden(jnp.concatenate([x, y], axis=-1)), mask)
        return jnp.where(jnp.any(mask), last(hidden[None])[0], 0.0)


class DeterministicPath(eqx.Module):
    """Representations of the context's points, read at each target by cross-attention."""

    encoder: PointEncoder
    attention: AbstractCrossAttention

    def __check_init__(self):
        instance(AbstractCrossAttention, attention=self.attention)
        own = self.encoder.embed.layers[-1].weight.shape[1]
        if isinstance(self.attention, MultiHeadAttention) and (given := self.attention.value.weight.shape[0]) != own:
            raise ValueError(
                f"The `attention` reads representations of width {given} and the model's `size` is {own}: "
                "make both the same."
            )
        if isinstance(self.attention, MultiHeadAttention | DotProductAttention):
            given, own = self.attention.embed.layers[0].weight.shape[0], self.encoder.dx
            if given != own:
                raise ValueError(
                    f"The `attention` was made for locations of {given} columns, and `dx` is {own}: make both the same."
                )

    def memorise(self, xc: Float[Array, "nc dx"], yc: Float[Array, "nc dy"], mask: Bool[Array, " nc"]) -> Any:
        """What targets read of the context."""
        return self.attention.memorise(xc, self.encoder(xc, yc, mask), mask)

    def read(self, memory: Any, xt: Float[Array, "nt dx"]) -> Float[Array, "#nt size"]:
        """The representation of each target; one row if all have the same."""
        return self.attention.read(memory, xt)


class LatentPath(eqx.Module):
    r"""A Gaussian over the global latent variable, from the mean of the encoded points (ANP App. A):

    $$q(z \mid D) = \mathcal N\bigl(\mu, (0.1 + 0.9\, \mathrm{sigmoid}(\omega))^2\bigr), \qquad
      (\mu, \omega) = \mathrm{MLP}\bigl(\tfrac1n \textstyle\sum_i s_i\bigr).$$
    """

    encoder: PointEncoder
    head: MLP

    def __call__(self, x: Float[Array, "n dx"], y: Float[Array, "n dy"], mask: Bool[Array, " n"]) -> Normal:
        mean, spread = jnp.split(self.head(self.encoder.mean(x, y, mask)[None])[0], 2)
        return Normal(mean, 0.1 + 0.9 * jax.nn.sigmoid(spread))
