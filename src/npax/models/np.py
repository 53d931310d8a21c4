from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray
from numpyro.distributions import Normal

from ..blocks import AbstractCrossAttention, DeterministicPath, LatentPath, PointEncoder, UniformAttention
from ..layers import MLP, ReLU
from ..likelihoods import AbstractLikelihood
from ._base import clean, gaussian_unless, whole_number, widths
from ._latent import AbstractVariationalNeuralProcess


class NPState(NamedTuple):
    """What a neural process keeps of its context: the memory of the deterministic path and $q(z \\mid D_c)$."""

    memory: Any
    mean: Float[Array, " latent"]
    std: Float[Array, " latent"]


class NP(AbstractVariationalNeuralProcess):
    r"""Neural process (Garnelo et al. 2018; ANP §2): a CNP with a global latent variable, one function per draw,

    $$z \sim q(z \mid D_c), \qquad p(y_t \mid x_t, D_c, z) = \mathrm{lik}(\mathrm{dec}([r(x_t), z, x_t])).$$

    A deterministic path $r$ (see `CNP`) and a latent path (see `LatentPath`) encode the context apart. With a
    cross-attention other than the uniform one it is the attentive neural process, **ANP** (Kim et al. 2019), which
    mends the underfitting of the NP. Train it with `objectives.elbo`, as `fit` does by default.

    **Arguments:** those of `CNP`; `latent`: width of $z$. `attention` serves the deterministic path; self-attention
    (`layers`) both. ANP uses 8 heads, no self-attention in 1-D and 2 layers for images. Ours: a layer is a
    `TransformerBlock` (see `PointEncoder`), and `latent` is a width of its own; the paper's $z$ is as wide as `size`
    (128 in ANP).

    **Cost:** that of `CNP`, twice for the context; decoding once per draw of $z$.

    **Good values:** the paper's `likelihood` has standard deviations of at least 0.1, `HeteroscedasticGaussian(dy,
    min_std=0.1)`; the default, 1e-4, is that of all models here and lets tasks with little noise be compared.

    **Pitfalls:** the predictive distribution is a mixture: its log-likelihood is not that of averaged activations.
    """

    path: DeterministicPath
    latent_path: LatentPath
    decoder: MLP
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        encoder: tuple[int, ...] = (192, 192, 192),
        size: int = 192,
        latent: int = 64,
        attention: AbstractCrossAttention | None = None,
        layers: int = 0,
        heads: int = 8,
        decoder: tuple[int, ...] = (192, 192, 192),
        likelihood: AbstractLikelihood | None = None,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, size=size, latent=latent)
        widths(encoder=encoder, decoder=decoder)
        e_key, l_key, h_key, d_key = jr.split(key, 4)
        points = lambda key: PointEncoder(dx, dy, encoder, size, layers=layers, heads=heads, key=key)  # noqa: E731
        self.path = DeterministicPath(points(e_key), UniformAttention() if attention is None else attention)
        self.latent_path = LatentPath(points(l_key), MLP([size, size, 2 * latent], activation=ReLU(), key=h_key))
        self.likelihood = gaussian_unless(likelihood, dy)
        self.decoder = MLP(
            [size + latent + dx, *decoder, self.likelihood.size],
            activation=ReLU(),
            locations=slice(size + latent, None),
            key=d_key,
        )
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None) -> NPState:
        xc, yc, mask = clean(self, xc, yc, mask)
        q = self.latent_path(xc, yc, mask)
        return NPState(self.path.memorise(xc, yc, mask), jnp.asarray(q.loc), jnp.asarray(q.scale))

    def prior(self, state: NPState) -> Normal:
        return Normal(state.mean, state.std)

    def posterior(self, x, y, mask=None) -> Normal:
        return self.latent_path(*clean(self, x, y, mask))

    def draw(self, state: NPState, key):
        return state.mean + state.std * jr.normal(key, state.mean.shape, state.mean.dtype)

    def decode(self, state: NPState, draw, xt):
        return self.decoder(self.path.read(state.memory, xt), draw[None], xt)
