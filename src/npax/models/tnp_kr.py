import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..arguments import true_or_false
from ..attention import (
    AbstractAttention,
    AbstractTokenAttention,
    RotaryCoordinates,
    ScanAttention,
    TokenAttention,
)
from ..attention.favor import redrawn
from ..bias import AbstractBias
from ..blocks import KRBlock
from ..layers import MLP, LayerNorm, Linear, constant_beside, spread_over_locations
from ..likelihoods import AbstractLikelihood
from ._base import AbstractTokenStack, gaussian_unless, whole_number

M = TypeVar("M")
ReadsTokens = AbstractAttention | AbstractTokenAttention


class TNPKR(AbstractTokenStack):
    r"""Transformer neural process - kernel regression (KR2 §3).

    Tokens co-embed observed-status, value (zeros for targets) and, with `locations=True`, location (eq. 2). A stack
    of `KRBlock`s updates context tokens from the context and target tokens from the context; an MLP reads the
    prediction off each target token, normalised (ours). The last block's context update feeds nothing; `condition`
    does not compute it.

    **Locations** enter in up to three ways: in the tokens (`locations=True`), as a function of the pair
    (`bias`, eq. 4), as rotary products (`rotary`). Without the first, and with translation-invariant biases, the
    model is translation equivariant: it sees differences only (with `DeepKernelAttention`, which reads locations
    itself, where that has a `rotary`). The SA, PERF and DKA variants of the paper are choices of `attention`.

    **Known errors.** With `errors=True` `condition` takes, beside each value, the standard deviation $\epsilon$ of that
    part of its noise that is known beforehand (an instrument's, an average's): zero, or none given, where all is to be
    inferred. A token co-embeds $\log(1 + (\epsilon / 0.05)^2) / 6$ of it: zero without error, one for an error of the
    unit of `y`. (In no paper that we know of; a Gaussian process has such errors on the diagonal of its covariance.)

    **Arguments:** `dx`, `dy`: columns of `x` and `y`. `errors`: whether known errors are heard of. `attention`: how the
    queries of every head read (default `ScanAttention()`), or how whole tokens do, with projections of its own
    (`DeepKernelAttention`); `bias`, `rotary`: optional, of the heads. Of each one template, given to every block with
    noise of its own on its parameters (for the random features of a `FavorAttention`: with draws of its own), or a
    function `key -> module` that draws each block's (as `DeepKernelAttention` needs it). `blocks`, `size`, `heads`,
    `head_size`, `hidden`: number of blocks, token width, attention heads and their width, feed-forward width.
    `likelihood`: default `HeteroscedasticGaussian(dy)`.

    **Cost** with exact attention, per block: O(nc² + nc nt) time, O(nc + nt) memory. `condition` keeps each block's
    keys and values: 2 blocks heads head_size floats per context point (6 KB at the defaults).

    **Good values:** six blocks and 0.5 M parameters are KR2's; the widths are those of its authors' public
    configurations. KR2's SA and DKA have a bias, the default here none: see `npax.models.presets`.
    """

    embed_observed: Float[Array, "2 size"]
    embed_location: Linear | None
    embed_value: Linear
    co_embed: MLP
    stack: KRBlock
    norm: LayerNorm
    head: MLP
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)
    blocks: int = eqx.field(static=True)
    embed_error: Linear | None = None

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        attention: ReadsTokens | Callable[[PRNGKeyArray], ReadsTokens] | None = None,
        bias: AbstractBias | Callable[[PRNGKeyArray], AbstractBias] | None = None,
        rotary: RotaryCoordinates | Callable[[PRNGKeyArray], RotaryCoordinates] | None = None,
        locations: bool = True,
        errors: bool = False,
        likelihood: AbstractLikelihood | None = None,
        blocks: int = 6,
        size: int = 64,
        heads: int = 4,
        head_size: int = 32,
        hidden: int = 256,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, blocks=blocks, size=size, heads=heads, head_size=head_size, hidden=hidden)
        true_or_false(locations=locations, errors=errors)
        o_key, l_key, v_key, c_key, b_key, h_key = jr.split(key, 6)
        attention = ScanAttention() if attention is None else attention
        self.likelihood = gaussian_unless(likelihood, dy)
        self.embed_observed = jr.normal(o_key, (2, size))
        self.embed_location = _embed_location(dx, size, l_key) if locations else None
        self.embed_value = Linear(dy, size, key=v_key)
        self.embed_error = Linear(dy, size, key=jr.fold_in(key, 6)) if errors else None
        self.co_embed = MLP([(2 + locations + errors) * size, 4 * size, 2 * size, size], key=c_key)
        self.norm = LayerNorm(size)
        self.head = MLP([size, 4 * size, size, self.likelihood.size], key=h_key)
        self.dx, self.dy, self.blocks = dx, dy, blocks

        def block(key):
            feed_key, read_key, bias_key, rotary_key, attention_key = jr.split(key, 5)
            reads = part_of(attention, (AbstractAttention, AbstractTokenAttention), attention_key)
            if isinstance(reads, AbstractAttention):
                reads = TokenAttention(
                    size,
                    heads=heads,
                    head_size=head_size,
                    attention=reads,
                    bias=part_of(bias, AbstractBias, bias_key),
                    rotary=part_of(rotary, RotaryCoordinates, rotary_key),
                    key=read_key,
                )
            elif bias is not None or rotary is not None:
                raise ValueError(
                    f"`{type(reads).__name__}` takes no `bias` and no `rotary` of the model: it has projections of its "
                    "own. Give `rotary` to the attention."
                )
            return KRBlock(size, reads, hidden=hidden, key=feed_key)

        self.stack = eqx.filter_vmap(block)(jr.split(b_key, blocks))

    @property
    def errors(self) -> bool:
        """Whether `condition` takes known errors."""
        return self.embed_error is not None

    def context_tokens(self, xc, yc, error=None):
        return self._tokens(xc, yc, error, observed=1)

    def target_tokens(self, xt):
        nothing = jnp.zeros((1, self.dy), xt.dtype)
        zt = self._tokens(xt, nothing, None, observed=0)  # of all targets, if without locations
        return jnp.broadcast_to(zt, (xt.shape[0], zt.shape[1]))

    def finish(self, zt):
        return self.head(self.norm(zt))

    def _tokens(self, x, y, error, observed):
        """KR2 eq. 2: `[n size]`. All embeddings are affine: the first map of the co-embedding takes them in."""
        maps, parts = (self.embed_value,), (y,)
        if self.embed_error is not None:
            error = jnp.zeros((1, self.dy), y.dtype) if error is None else _compressed(error)
            maps, parts = (*maps, self.embed_error), (*parts, error)
        if self.embed_location is not None:
            maps, parts = (self.embed_location, *maps), (x, *parts)
        return self.co_embed.after(constant_beside(self.embed_observed[observed], *maps))(*parts)


def _compressed(error):
    """Standard errors on a scale on which a network tells them apart, from hundredths of the unit of `y` to many."""
    return jnp.log(jnp.hypot(jnp.ones_like(error), error / 0.05)) / 3  # of the root: its square may overflow


def _embed_location(dx, size, key):
    """Of larger slopes than a network's first map: the co-embedding behind it has small weights."""
    linear, spread = jr.split(key)
    return spread_over_locations(Linear(dx, size, key=linear), slope=8.0, key=spread)


def part_of(part: Any, kind: type | tuple[type, ...], key: PRNGKeyArray) -> Any:
    """A block's own: drawn by a function of a key, or a template varied."""
    if part is None or isinstance(part, kind):
        return _vary(part, key)
    made = part(key) if _takes_a_key(part) else None
    if not isinstance(made, kind):
        kinds = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise TypeError(f"Expected {kinds}, or a function of a key that makes one; got {part!r}.")
    return made


def _takes_a_key(part):
    """Whether it is a function of one argument, and not, say, one of locations, or a class."""
    if isinstance(part, type) or not callable(part):
        return False
    try:
        inspect.signature(part).bind(None)
    except TypeError:
        return False
    return True


def _vary(template: M, key: PRNGKeyArray) -> M:
    """The template with 10 % noise on its parameters: blocks that start equal need not stay alike. Random features,
    which are orthogonal and not trained, are drawn anew instead."""
    arrays, rest = eqx.partition(template, eqx.is_inexact_array)
    leaves, treedef = jax.tree.flatten(arrays)
    keys = jr.split(key, max(len(leaves), 1))
    noisy = [a * (1 + 0.1 * jr.normal(k, a.shape, a.dtype)) for a, k in zip(leaves, keys, strict=False)]
    varied = eqx.combine(jax.tree.unflatten(treedef, noisy), rest)
    return redrawn(varied, jr.fold_in(key, len(leaves)))
