import equinox as eqx
import jax.random as jr
from jaxtyping import PRNGKeyArray

from ..blocks import AbstractCrossAttention, DeterministicPath, PointEncoder, UniformAttention
from ..layers import MLP, ReLU
from ..likelihoods import AbstractLikelihood
from ._base import AbstractConditionalNeuralProcess, clean, gaussian_unless, whole_number, widths


class CNP(AbstractConditionalNeuralProcess):
    r"""Conditional neural process (Garnelo et al. 2018): the encoded context, summed up and decoded at each target,

    $$r(x_t) = \sum_i w_i(x_t)\, \mathrm{enc}([x_i, y_i]), \qquad
      p(y_t \mid x_t, D_c) = \mathrm{lik}(\mathrm{dec}([r(x_t), x_t])).$$

    With equal weights, the default, it is the fastest of all neural processes and the least accurate: one vector
    carries the whole context, so fine detail is lost however many points there are. With another cross-attention it
    is the deterministic half of the attentive neural process, **CANP** (ANP §3). An empty context has $r = 0$.

    Ours: one deterministic path. The public code of Lee et al. (2020), where CANP is a baseline, concatenates a second,
    pooled one.

    **Arguments:** `dx`, `dy`: columns of `x` and `y`. `encoder`, `decoder`: widths of the hidden layers (ReLU). `size`:
    width of $r$. `attention`: how targets read the context, default `UniformAttention()`; the others are
    `LaplaceAttention`, `DotProductAttention` and `MultiHeadAttention`. `layers`, `heads`: self-attention over the
    context before that. `likelihood`: default `HeteroscedasticGaussian(dy)`.

    **Cost:** O(nc + nt), the state `[size]`; with attention O(nc nt), with self-attention O(nc²).
    """

    path: DeterministicPath
    decoder: MLP
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        encoder: tuple[int, ...] = (256, 256, 256),
        size: int = 256,
        attention: AbstractCrossAttention | None = None,
        layers: int = 0,
        heads: int = 8,
        decoder: tuple[int, ...] = (256, 256, 256),
        likelihood: AbstractLikelihood | None = None,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, size=size)
        widths(encoder=encoder, decoder=decoder)
        e_key, d_key = jr.split(key)
        points = PointEncoder(dx, dy, encoder, size, layers=layers, heads=heads, key=e_key)
        self.path = DeterministicPath(points, UniformAttention() if attention is None else attention)
        self.likelihood = gaussian_unless(likelihood, dy)
        self.decoder = MLP(
            [size + dx, *decoder, self.likelihood.size], activation=ReLU(), locations=slice(size, None), key=d_key
        )
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None):
        return self.path.memorise(*clean(self, xc, yc, mask))

    def decode(self, state, xt):
        return self.decoder(self.path.read(state, xt), xt)
