import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..arguments import true_or_false
from ..attention import dense_attention
from ..blocks import TEBlock, read_located, scan_blocks, split_last, te_stack
from ..layers import MLP, LayerNorm, Linear, away_from_zero, masked_mean
from ..likelihoods import AbstractLikelihood
from ._base import AbstractConditionalNeuralProcess, clean, gaussian_unless, whole_number


class PseudoLocations(eqx.Module):
    r"""Where the pseudo-tokens stand: $v_m = v^0_m + \sum_n \psi(u_m, z_n)\, x_n$ (TE eq. 11).

    The weights $\psi$, a softmax over the context of products of tokens or, with `learned=False`, all $1/n$, sum to
    one, so $v$ moves along with the data. Without a context the sum is zero: whoever reads the pseudo-tokens must then
    not look.
    """

    offset: Float[Array, "m dx"]
    psi: tuple[Linear, Linear] | None

    def __init__(self, pseudo_tokens: int, size: int, dx: int, *, learned: bool, key: PRNGKeyArray):
        o_key, q_key, k_key = jr.split(key, 3)
        self.offset = jr.normal(o_key, (pseudo_tokens, dx))
        query = Linear(size, size, use_bias=False, key=q_key)
        self.psi = (query, Linear(size, size, use_bias=False, key=k_key)) if learned else None

    def __call__(
        self,
        u: Float[Array, "m size"],
        zc: Float[Array, "nc size"],
        xc: Float[Array, "nc dx"],
        mask: Bool[Array, " nc"],
    ) -> Float[Array, "m dx"]:
        if self.psi is None:
            return self.offset + masked_mean(xc, mask)
        query, key = self.psi
        return self.offset + dense_attention(query(u)[None], key(zc)[None], xc[None], mask=mask)[0]


class TEPTTNP(AbstractConditionalNeuralProcess):
    r"""Translation equivariant pseudo-token transformer neural process (TE-PT-TNP; Ashman et al. 2024, TE §3.1).

    A fixed number M of learned tokens $U$, at locations $V$ that follow the data (`PseudoLocations`), stands between
    context and targets, in the style of induced set transformers. In each layer the pseudo-tokens read the context
    and the context and the targets, with the same weights (ours: TE says nothing of it), read the pseudo-tokens. All
    sets change tokens and locations as in `TETNP`:

    $$(U, V) \leftarrow \mathrm{read}(U, V \mid Z_c, X_c), \qquad
      (Z_c, X_c) \leftarrow \mathrm{write}(Z_c, X_c \mid U, V), \qquad
      (Z_t, X_t) \leftarrow \mathrm{write}(Z_t, X_t \mid U, V).$$

    Without a context the pseudo-tokens stand nowhere and the targets read nothing: the same prior everywhere. A
    `LayerNorm` before the head is ours.

    **Arguments:** `pseudo_tokens`: M. `update_locations`: `False` is the paper's ablation (TE F.5): pseudo-locations
    around the mean of the context's, and all locations stay. The rest as for `TETNP`; `blocks` counts layers, of two
    blocks each.

    **Cost** per layer: O(M nc) once and O(M nt) passes through a small network, two with location updates; memory
    O(block size). The state does not grow with the context.

    **Good values:** M = 32 in one dimension; 64 to 128 for images and fields.
    """

    embed: MLP
    pseudo_tokens: Float[Array, "m size"]
    pseudo_locations: PseudoLocations
    target: Float[Array, " size"]
    read_stack: TEBlock
    write_stack: TEBlock
    last_write: TEBlock
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
        update_locations: bool = True,
        likelihood: AbstractLikelihood | None = None,
        blocks: int = 5,
        size: int = 64,
        heads: int = 4,
        head_size: int = 16,
        hidden: int = 128,
        block: int = 2**11,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, pseudo_tokens=pseudo_tokens, blocks=blocks, block=block)
        whole_number(1, size=size, heads=heads, head_size=head_size, hidden=hidden)
        true_or_false(update_locations=update_locations)
        e_key, u_key, v_key, t_key, r_key, w_key, l_key, h_key, z_key = jr.split(key, 9)
        self.likelihood = gaussian_unless(likelihood, dy)
        self.embed = away_from_zero(MLP([dy, 4 * size, 2 * size, size], key=e_key), key=z_key)
        self.pseudo_tokens = jr.normal(u_key, (pseudo_tokens, size))
        self.pseudo_locations = PseudoLocations(pseudo_tokens, size, dx, learned=update_locations, key=v_key)
        self.target = jr.normal(t_key, (size,))
        shape = {"heads": heads, "head_size": head_size, "hidden": hidden, "block": block}
        self.read_stack = te_stack(blocks, size, dx, moves=update_locations, **shape, key=r_key)
        self.write_stack = te_stack(blocks - 1, size, dx, moves=update_locations, **shape, key=w_key)
        self.last_write = TEBlock(size, dx, moves=False, **shape, key=l_key)
        self.norm = LayerNorm(size)
        self.head = MLP([size, 4 * size, size, self.likelihood.size], key=h_key)
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None):
        xc, yc, mask = clean(self, xc, yc, mask)
        zc = self.embed(yc)
        u = self.pseudo_tokens.astype(zc.dtype)
        placed = jnp.broadcast_to(jnp.any(mask), u.shape[0])
        reads, last_read = split_last(self.read_stack)

        def through(carry, blocks):
            (u, v, zc, xc), (read, write) = carry, blocks
            u, v = read.update(u, v, read.memorise(zc, xc, mask))
            memory = write.memorise(u, v, placed)
            return (u, v, *write.update(zc, xc, memory)), memory

        start = (u, self.pseudo_locations(u, zc, xc, mask), zc, xc)
        (u, v, zc, xc), memories = scan_blocks(through, start, (reads, self.write_stack))
        u, v = last_read.update(u, v, last_read.memorise(zc, xc, mask))
        return memories, self.last_write.memorise(u, v, placed)

    def decode(self, state, xt):
        return self.head(self.norm(read_located(self.write_stack, self.last_write, state, self.target, xt)))
