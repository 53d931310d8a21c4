import equinox as eqx
import jax.random as jr
from jaxtyping import PRNGKeyArray

from ..attention import AbstractAttention, ScanAttention
from ..bias import AbstractBias
from ..blocks import TransformerBlock, read_memories, scan_blocks, transformer_stack
from ..layers import MLP
from ..likelihoods import AbstractLikelihood
from ._base import (
    AbstractConditionalNeuralProcess,
    AbstractTokenStack,
    clean,
    context_features,
    gaussian_unless,
    target_features,
    whole_number,
)


class TNPD(AbstractTokenStack):
    r"""Transformer neural process, diagonal (TNP-D; Nguyen and Grover 2022), with efficient queries.

    Tokens $\mathrm{MLP}([x, y, 1])$ of the context and $\mathrm{MLP}([x, 0, 0])$ of the targets (the last column, a
    flag, is that of Ashman et al. 2024) pass through one stack
    of `TransformerBlock`s, in which context and targets attend to the context. The original runs all tokens through
    self-attention under a mask, at O((nc + nt)²); here targets and context are updated apart, to the same numbers.
    The last block's context update feeds nothing; `condition` does not compute it. Ours: GELU, where the authors'
    public code has ReLU.

    **Arguments:** `dx`, `dy`: columns of `x` and `y`. `attention`: default `ScanAttention()`. `bias`: optional, the
    same in all blocks at first, each of which trains its own. `blocks`, `size`, `heads`, `head_size`, `hidden`: number
    of blocks, token width, attention heads and their width, feed-forward width. `likelihood`: default
    `HeteroscedasticGaussian(dy)`.

    **Cost** with exact attention, per block: O(nc² + nc nt) time, O(nc + nt) memory. The state holds each block's
    keys and values.

    **Pitfalls:** sees locations, not differences: it fails where inputs lie outside the range of its training.
    """

    embed: MLP
    stack: TransformerBlock
    head: MLP
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        attention: AbstractAttention | None = None,
        bias: AbstractBias | None = None,
        likelihood: AbstractLikelihood | None = None,
        blocks: int = 6,
        size: int = 64,
        heads: int = 4,
        head_size: int = 32,
        hidden: int = 256,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, blocks=blocks, size=size, heads=heads, head_size=head_size, hidden=hidden)
        e_key, s_key, h_key = jr.split(key, 3)
        self.likelihood = gaussian_unless(likelihood, dy)
        self.embed = MLP([dx + dy + 1, 4 * size, 2 * size, size], locations=slice(0, dx), key=e_key)
        attention = ScanAttention() if attention is None else attention
        shape = {"heads": heads, "head_size": head_size, "hidden": hidden, "attention": attention}
        self.stack = transformer_stack(blocks, size, **shape, bias=bias, key=s_key)
        self.head = MLP([size, 4 * size, size, self.likelihood.size], key=h_key)
        self.dx, self.dy = dx, dy

    def context_tokens(self, xc, yc, error=None):
        return self.embed(context_features(xc, yc))

    def target_tokens(self, xt):
        return self.embed(target_features(xt, self.dy))

    def finish(self, zt):
        return self.head(zt)


class EQTNP(AbstractConditionalNeuralProcess):
    r"""Efficient-query transformer neural process (EQTNP; Feng et al. 2023): `TNPD` with weights of their own for
    context and targets.

    The context passes through self-attention blocks; the targets through as many cross-attention blocks, each of
    which reads the context as it leaves the self-attention block of the same depth.

    Ours: that depth, the blocks of `TNPD` (normalised after each sum) and one embedding for both sets. In the authors'
    public code blocks are pre-norm, with a norm before the head; queries are embedded apart, from `x` alone; the first
    target block reads the embedded context before any self-attention, so there is one self-attention block fewer.

    **Arguments**, cost, pitfalls: those of `TNPD`; `blocks` counts each of the two stacks.
    """

    embed: MLP
    context_stack: TransformerBlock
    target_stack: TransformerBlock
    head: MLP
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        attention: AbstractAttention | None = None,
        likelihood: AbstractLikelihood | None = None,
        blocks: int = 6,
        size: int = 64,
        heads: int = 4,
        head_size: int = 16,
        hidden: int = 128,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, blocks=blocks, size=size, heads=heads, head_size=head_size, hidden=hidden)
        e_key, c_key, t_key, h_key = jr.split(key, 4)
        self.likelihood = gaussian_unless(likelihood, dy)
        self.embed = MLP([dx + dy + 1, 4 * size, 2 * size, size], locations=slice(0, dx), key=e_key)
        attention = ScanAttention() if attention is None else attention
        shape = {"heads": heads, "head_size": head_size, "hidden": hidden, "attention": attention}
        self.context_stack = transformer_stack(blocks, size, **shape, key=c_key)
        self.target_stack = transformer_stack(blocks, size, **shape, key=t_key)
        self.head = MLP([size, 4 * size, size, self.likelihood.size], key=h_key)
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None):
        xc, yc, mask = clean(self, xc, yc, mask)

        def through(zc, blocks):
            own, reader = blocks
            zc = own.update(zc, xc, own.memorise(zc, xc, mask))
            return zc, reader.memorise(zc, xc, mask)

        zc = self.embed(context_features(xc, yc))
        return scan_blocks(through, zc, (self.context_stack, self.target_stack))[1]

    def decode(self, state, xt):
        return self.head(read_memories(self.target_stack, state, self.embed(target_features(xt, self.dy)), xt))
