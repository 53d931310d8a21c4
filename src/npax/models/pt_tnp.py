import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..attention import AbstractAttention, ScanAttention
from ..blocks import (
    KRBlock,
    TransformerBlock,
    appended,
    kr_stack,
    read_memories,
    scan_blocks,
    split_last,
    transformer_stack,
)
from ..layers import MLP, LayerNorm
from ..likelihoods import AbstractLikelihood
from ._base import (
    AbstractConditionalNeuralProcess,
    clean,
    context_features,
    gaussian_unless,
    target_features,
    whole_number,
)


class LBANP(AbstractConditionalNeuralProcess):
    r"""Latent bottlenecked attentive neural process (Feng et al. 2023): pseudo-tokens in Perceiver style.

    A fixed number M of learned tokens $U$ stands between context and targets. Each layer lets them read the embedded
    context, then one another; the targets read the pseudo-tokens of the same depth:

    $$U \leftarrow \mathrm{read}(U, Z_c), \qquad U \leftarrow \mathrm{mix}(U, U), \qquad
      Z_t \leftarrow \mathrm{answer}(Z_t, U).$$

    Each is a pre-norm block (`KRBlock`): normalised behind each sum instead, it learns more slowly. The authors' public
    code is pre-norm too. Ours: one norm for both sets, where theirs has another for what is read; the sum adds to the
    token itself, theirs to the normalised one; GELU, theirs GEGLU; one embedding, theirs has a network of its own for
    queries.

    **Arguments:** `dx`, `dy`: columns of `x` and `y`. `pseudo_tokens`: M. `attention`: default `ScanAttention()`.
    `blocks`, `size`, `heads`, `head_size`, `hidden`: layers, token width, attention heads and their width,
    feed-forward width. `likelihood`: default `HeteroscedasticGaussian(dy)`.

    **Cost** per layer: O(M nc + M²) once and O(M nt): linear in either. The state does not grow with the context:
    it holds keys and values of M tokens per layer.

    **Good values:** M from 8 to 128. More than the information in the context asks for brings nothing.
    """

    embed: MLP
    pseudo_tokens: Float[Array, "m size"]
    read_stack: KRBlock
    mix_stack: KRBlock
    answer_stack: KRBlock
    norm: LayerNorm
    head: MLP
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        pseudo_tokens: int = 32,
        attention: AbstractAttention | None = None,
        likelihood: AbstractLikelihood | None = None,
        blocks: int = 6,
        size: int = 64,
        heads: int = 4,
        head_size: int = 16,
        hidden: int = 64,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, pseudo_tokens=pseudo_tokens, blocks=blocks)
        whole_number(1, size=size, heads=heads, head_size=head_size, hidden=hidden)
        e_key, u_key, r_key, m_key, a_key, h_key = jr.split(key, 6)
        attention = ScanAttention() if attention is None else attention
        shape = {"heads": heads, "head_size": head_size, "hidden": hidden, "attention": attention}
        self.likelihood = gaussian_unless(likelihood, dy)
        self.embed = MLP([dx + dy + 1, 4 * size, 2 * size, size], locations=slice(0, dx), key=e_key)
        self.pseudo_tokens = jr.normal(u_key, (pseudo_tokens, size))
        self.read_stack = kr_stack(blocks, size, **shape, key=r_key)
        self.mix_stack = kr_stack(blocks, size, **shape, key=m_key)
        self.answer_stack = kr_stack(blocks, size, **shape, key=a_key)
        self.norm = LayerNorm(size)
        self.head = MLP([size, 4 * size, size, self.likelihood.size], key=h_key)
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None):
        xc, yc, mask = clean(self, xc, yc, mask)
        zc = self.embed(context_features(xc, yc))
        nowhere, all_of_them = _without_place(self.pseudo_tokens, xc)

        def through(u, blocks):
            read, mix, answer = blocks
            u = read.update(u, nowhere, read.memorise(zc, xc, mask))
            u = mix.update(u, nowhere, mix.memorise(u, nowhere, all_of_them))
            return u, answer.memorise(u, nowhere, all_of_them)

        u = self.pseudo_tokens.astype(zc.dtype)
        return scan_blocks(through, u, (self.read_stack, self.mix_stack, self.answer_stack))[1]

    def decode(self, state, xt):
        zt = self.embed(target_features(xt, self.dy))
        return self.head(self.norm(read_memories(self.answer_stack, state, zt, xt)))


class PTTNP(AbstractConditionalNeuralProcess):
    r"""Pseudo-token transformer neural process in the style of induced set transformers (PT-TNP; TE §2.3, App. C).

    As `LBANP`, but for what follows the reading: the pseudo-tokens do not read one another, the context reads them
    back.

    Ours: blocks are those of TNP-D (`TransformerBlock`), which here learn as fast as pre-norm ones (TE's are pre-norm);
    context and targets share the weights by which they read the pseudo-tokens, of which TE says nothing:

    $$U \leftarrow \mathrm{read}(U, Z_c), \qquad Z_c \leftarrow \mathrm{write}(Z_c, U), \qquad
      Z_t \leftarrow \mathrm{write}(Z_t, U).$$

    **Arguments**, cost, good values: those of `LBANP`.
    """

    embed: MLP
    pseudo_tokens: Float[Array, "m size"]
    read_stack: TransformerBlock
    write_stack: TransformerBlock
    head: MLP
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        pseudo_tokens: int = 32,
        attention: AbstractAttention | None = None,
        likelihood: AbstractLikelihood | None = None,
        blocks: int = 6,
        size: int = 64,
        heads: int = 4,
        head_size: int = 16,
        hidden: int = 128,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, pseudo_tokens=pseudo_tokens, blocks=blocks)
        whole_number(1, size=size, heads=heads, head_size=head_size, hidden=hidden)
        e_key, u_key, r_key, w_key, h_key = jr.split(key, 5)
        attention = ScanAttention() if attention is None else attention
        shape = {"heads": heads, "head_size": head_size, "hidden": hidden, "attention": attention}
        self.likelihood = gaussian_unless(likelihood, dy)
        self.embed = MLP([dx + dy + 1, 4 * size, 2 * size, size], locations=slice(0, dx), key=e_key)
        self.pseudo_tokens = jr.normal(u_key, (pseudo_tokens, size))
        self.read_stack = transformer_stack(blocks, size, **shape, key=r_key)
        self.write_stack = transformer_stack(blocks, size, **shape, key=w_key)
        self.head = MLP([size, 4 * size, size, self.likelihood.size], key=h_key)
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None):
        xc, yc, mask = clean(self, xc, yc, mask)
        nowhere, all_of_them = _without_place(self.pseudo_tokens, xc)

        def told(u, zc, read, write):
            u = read.update(u, nowhere, read.memorise(zc, xc, mask))
            return u, write.memorise(u, nowhere, all_of_them)

        def through(carry, blocks):
            (u, zc), (read, write) = carry, blocks
            u, memory = told(u, zc, read, write)
            return (u, write.update(zc, xc, memory)), memory

        blocks, last = split_last((self.read_stack, self.write_stack))
        zc = self.embed(context_features(xc, yc))
        (u, zc), memories = scan_blocks(through, (self.pseudo_tokens.astype(zc.dtype), zc), blocks)
        return appended(memories, told(u, zc, *last)[1])

    def decode(self, state, xt):
        return self.head(read_memories(self.write_stack, state, self.embed(target_features(xt, self.dy)), xt))


def _without_place(tokens, x):
    """Locations (unused: the attention has no bias) and the mask of tokens that all count."""
    return jnp.zeros((tokens.shape[0], x.shape[1]), x.dtype), jnp.ones(tokens.shape[0], bool)
