import equinox as eqx
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..arguments import true_or_false
from ..blocks import TEBlock, read_located, scan_blocks, te_stack
from ..layers import MLP, LayerNorm, away_from_zero
from ..likelihoods import AbstractLikelihood
from ._base import AbstractConditionalNeuralProcess, clean, gaussian_unless, whole_number


class TETNP(AbstractConditionalNeuralProcess):
    r"""Translation equivariant transformer neural process (TE-TNP; Ashman et al. 2024, TE §3), with efficient queries.

    Tokens know nothing of places: they are $\mathrm{MLP}(y)$ for the context and one learned vector for all targets.
    Differences of locations enter through a network of every pair of points, in the attention of `TEBlock`. Each
    block updates the context from the context and the targets from the context, tokens as well as locations. What
    the last block would make of the context, and of any location, feeds nothing and is not computed.

    Ours: one block does both, as where masked attention goes over context and targets at once (TE §2.4), so targets
    read the tokens that the context of their layer reads. In the paper's figure 1b they read those that it makes, by a
    block of their own. A `LayerNorm` before the head is ours too.

    **Arguments:** `dx`, `dy`: columns of `x` and `y`. `update_locations`: whether blocks also move the points
    (eq. 10). `blocks`, `size`, `heads`, `head_size`, `hidden`: number of blocks, token width (and that of the
    networks of pairs), attention heads and their width, feed-forward width. `block`: pairs that go through such a
    network at a time. `likelihood`: default `HeteroscedasticGaussian(dy)`.

    **Cost** per block: O(nc² + nc nt) passes through a small network, two with location updates; memory
    O(block size). The state holds keys, values and locations of the context at each depth. `TNPKR` with rotary
    products has the same symmetry at a fraction of the cost.

    **Pitfalls:** a softmax over one key is one, wherever it stands: from a single observation the same prediction
    follows everywhere. Two are told apart.
    """

    embed: MLP
    target: Float[Array, " size"]
    stack: TEBlock
    last: TEBlock
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
        update_locations: bool = True,
        likelihood: AbstractLikelihood | None = None,
        blocks: int = 6,
        size: int = 64,
        heads: int = 4,
        head_size: int = 32,
        hidden: int = 256,
        block: int = 2**11,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, blocks=blocks, block=block)
        whole_number(1, size=size, heads=heads, head_size=head_size, hidden=hidden)
        true_or_false(update_locations=update_locations)
        e_key, t_key, s_key, l_key, h_key, z_key = jr.split(key, 6)
        self.likelihood = gaussian_unless(likelihood, dy)
        self.embed = away_from_zero(MLP([dy, 4 * size, 2 * size, size], key=e_key), key=z_key)
        self.target = jr.normal(t_key, (size,))
        shape = {"heads": heads, "head_size": head_size, "hidden": hidden, "block": block}
        self.stack = te_stack(blocks - 1, size, dx, moves=update_locations, **shape, key=s_key)
        self.last = TEBlock(size, dx, moves=False, **shape, key=l_key)
        self.norm = LayerNorm(size)
        self.head = MLP([size, 4 * size, size, self.likelihood.size], key=h_key)
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None):
        xc, yc, mask = clean(self, xc, yc, mask)

        def through(carry, block):
            memory = block.memorise(*carry, mask)
            return block.update(*carry, memory), memory

        (zc, xc), memories = scan_blocks(through, (self.embed(yc), xc), self.stack)
        return memories, self.last.memorise(zc, xc, mask)

    def decode(self, state, xt):
        return self.head(self.norm(read_located(self.stack, self.last, state, self.target, xt)))
