import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray
from numpyro.distributions import MultivariateNormal

from ..alone import compiled_alone
from ..arguments import whole_number
from ..likelihoods import AbstractLikelihood, JointGaussian
from ..linalg import solve_lower
from ._base import AbstractConditionalNeuralProcess, check_mask, clean, places
from ._joint import AbstractJointNeuralProcess
from .tnp import TNPD


class TNPND(AbstractConditionalNeuralProcess, AbstractJointNeuralProcess):
    r"""Transformer neural process, non-diagonal (TNP-ND; Nguyen and Grover 2022): a joint Gaussian over all targets.

    The tokens of `TNPD`; the covariance of two targets comes from features of their tokens (see `JointGaussian`, after
    Markou et al. 2022), its Cholesky factor gives likelihood and samples. The paper has a network make a Cholesky
    factor; with ours the covariance follows the order of the targets. Train it with `objectives.joint_and_single_nll`
    (ours too; the paper: the joint likelihood alone), as `fit` does by default.

    **Arguments:** `dx`, `dy`; `rank`: width of the features; all else as for `TNPD`, but for the likelihood, which is
    given.
    **Cost:** that of `TNPD`; likelihood and samples O((nt dy)³) besides.
    """

    tokens: TNPD
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(self, dx: int, dy: int, *, rank: int = 16, key: PRNGKeyArray, **shape):
        if "likelihood" in shape:
            raise TypeError("`TNPND` takes no `likelihood`: its own is `JointGaussian(dy, rank)`.")
        self.tokens = TNPD(dx, dy, likelihood=JointGaussian(dy, rank), **shape, key=key)
        self.dx, self.dy = dx, dy

    @property
    def likelihood(self) -> AbstractLikelihood:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.tokens.likelihood

    def condition(self, xc, yc, mask=None):
        return self.tokens.condition(xc, yc, mask)

    def decode(self, state, xt):
        return self.tokens.decode(state, xt)

    def joint(self, state, xt, mask=None) -> MultivariateNormal:
        """The distribution of all targets, row by row: event shape `[nt * dy]`."""
        assert isinstance(self.likelihood, JointGaussian)
        xt = places(self, state, xt)
        check_mask(mask, xt, "t")
        return self.likelihood.joint(
            self.decode(state, xt if mask is None else jnp.where(mask[:, None], xt, 0.0)), mask
        )

    @compiled_alone
    def sample(self, state, xt, key, n=1, *, mask=None, include_noise=True):
        whole_number(1, n=n)
        return jnp.asarray(self.joint(state, xt, mask).sample(key, (n,))).reshape(n, xt.shape[0], self.dy)

    @compiled_alone
    def joint_log_prob(self, state, xt, yt, mask=None, *, key=None):
        xt, yt, mask = clean(self, xt, yt, mask, "t")
        joint = self.joint(state, xt, mask)
        factor = jnp.asarray(joint.scale_tril)
        white = solve_lower(factor, yt.reshape(-1).astype(factor.dtype) - joint.loc)
        determinant = jnp.sum(jnp.log(jnp.diagonal(factor)))
        seen = jnp.sum(mask, dtype=factor.dtype) * self.dy
        return -0.5 * jnp.sum(jnp.square(white)) - determinant - 0.5 * math.log(2 * math.pi) * seen
