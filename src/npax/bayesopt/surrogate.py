"""What is believed of a function from some of its values: moments and joint samples at candidates."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from numpyro.distributions import Distribution
from tinygp.kernels import Kernel

from ..alone import compiled_alone
from ..gp import exact_posterior
from ..inference.frames import HALF_SPAN
from ..inference.predict import moments
from ..likelihoods import marginals
from ..linalg import cholesky, solve_lower
from ..models import AbstractLatentNeuralProcess, AbstractNeuralProcess
from ..models._base import condition_on


class Evaluations(eqx.Module):
    """Noisy values of the function, in the units of the surrogate; those where `mask` is `False` count for nothing.
    `error`: known standard errors of the values, zero where none is known."""

    x: Float[Array, "n d"]
    y: Float[Array, " n"]
    mask: Bool[Array, " n"]
    error: Float[Array, " n"] | None = None


class AbstractSurrogate(eqx.Module):
    """A belief about the **noiseless** function, given evaluations (none is legal) and the candidates asked for."""

    @abc.abstractmethod
    def moments(self, seen: Evaluations, xt: Float[Array, "nt d"]) -> tuple[Float[Array, " nt"], Float[Array, " nt"]]:
        """Mean and standard deviation at each candidate."""

    @abc.abstractmethod
    def sample(self, seen: Evaluations, xt: Float[Array, "nt d"], key: PRNGKeyArray) -> Float[Array, " nt"]:
        """One function, drawn at all candidates together."""


class ModelSurrogate(AbstractSurrogate):
    r"""The belief of a neural process.

    A sample is a function of the key: it has one value at every place, whichever candidates are asked for together.
    A model with a latent variable gives the mean given one draw of it. Any other gives its mean given the evaluations
    *and* a draw, one after another, of new observations at random places of $[-2, 2]^d$ (`anchors`; the autoregressive
    procedure of Bruinsma et al. 2023).

    **Arguments:** `model`: with one column of `y`; candidates may have fewer columns than it takes, the missing ones
    are zeros. `anchors`: their number. **Cost** of a sample: conditioning `anchors` times, or once with a latent.
    **Good values:** 32 anchors. **Pitfalls:** between anchors a sample is smoother than the belief says.
    """

    model: AbstractNeuralProcess
    anchors: int = eqx.field(static=True, default=32)

    def __check_init__(self):
        if self.model.likelihood.dy != 1:
            raise ValueError(f"The model of a search predicts one column of `y`, got {self.model.likelihood.dy}.")
        if self.anchors < 1:
            raise ValueError(f"`anchors` must be at least 1, got {self.anchors}.")

    def moments(self, seen, xt):
        mean, _, variance = self._moments(seen, xt)
        return mean, jnp.sqrt(variance)

    def foresee(
        self, seen: Evaluations, xt: Float[Array, "nt d"]
    ) -> tuple[Float[Array, " nt"], Float[Array, " nt"], Float[Array, " nt"]]:
        """Mean and standard deviation of a value at each candidate, and the share of the function in its variance."""
        mean, total, variance = self._moments(seen, xt)
        return mean, jnp.sqrt(total), variance / total

    def _moments(self, seen, xt):
        return moments(self._predicted(seen, xt))[..., 0]

    def _predicted(self, seen, xt) -> Distribution:
        return self.model.predict(condition_on(self.model, *self._context(seen)), self._padded(xt))

    @compiled_alone
    def sample(self, seen, xt, key):
        if isinstance(self.model, AbstractLatentNeuralProcess):
            state = condition_on(self.model, *self._context(seen))
            raw = self.model.decode(state, self.model.draw(state, key), self._padded(xt))
            return marginals(self.model.likelihood(raw)).mean[:, 0]
        return self.moments(self._with_anchors(seen, key), xt)[0]

    def _with_anchors(self, seen: Evaluations, key) -> Evaluations:
        """The evaluations, and as many drawn ones as there are anchors."""
        place_key, draw_key = jr.split(key)
        anchors = HALF_SPAN * jr.uniform(place_key, (self.anchors, seen.x.shape[1]), seen.x.dtype, minval=-1.0)
        x = jnp.concatenate([seen.x, anchors])
        n, draw_keys = seen.mask.shape[0], jr.split(draw_key, self.anchors)
        error = None if seen.error is None else jnp.pad(seen.error, (0, self.anchors))

        def until(i, y):
            return Evaluations(x, y, jnp.concatenate([seen.mask, jnp.arange(self.anchors) < i]), error)

        def step(i, y):
            xt = jax.lax.dynamic_slice_in_dim(anchors, i, 1)
            predicted = self._predicted(until(i, y), xt)
            return y.at[n + i].set(jnp.asarray(marginals(predicted).sample(draw_keys[i]), y.dtype)[0, 0])

        y = jnp.concatenate([seen.y, jnp.zeros(self.anchors, seen.y.dtype)])
        return until(self.anchors, jax.lax.fori_loop(0, self.anchors, step, y))

    def _context(self, seen):
        error = None if seen.error is None else seen.error[:, None]
        return self._padded(seen.x), seen.y[:, None], seen.mask, error

    def _padded(self, x):
        return jnp.pad(x, ((0, 0), (0, self.model.dx - x.shape[1])))


class RescaledSurrogate(AbstractSurrogate):
    """Another belief, with standard deviations that are multiplied by `factor`."""

    belief: AbstractSurrogate
    factor: Float[Array, ""]

    def moments(self, seen, xt):
        mean, std = self.belief.moments(seen, xt)
        return mean, self.factor * std

    def sample(self, seen, xt, key):
        mean, _ = self.belief.moments(seen, xt)
        return mean + self.factor * (self.belief.sample(seen, xt, key) - mean)


class GPSurrogate(AbstractSurrogate):
    r"""The exact belief of a Gaussian process of known kernel and noise: with the true ones, the oracle.

    A sample needs one factorisation, of the joint covariance of evaluations and candidates,

    $$\begin{pmatrix} K_{cc} + \sigma^2 I & K_{ct} \\ K_{tc} & K_{tt} \end{pmatrix} = L L^\top, \qquad
      L = \begin{pmatrix} L_c & 0 \\ A^\top & L_t \end{pmatrix}:$$

    the mean is $A^\top L_c^{-1} y$ and the covariance $L_t L_t^\top$.

    **Arguments:** `kernel`: a tinygp kernel; `noise_std`: standard deviation of the noise on evaluations.
    **Cost:** nc³/3 + nc² nt for moments, (nc + nt)³/3 for a sample. **Pitfall:** the jitter that float32 needs is
    white noise on the samples, of standard deviation 0.005 for 200 points and variance 1.
    """

    kernel: Kernel
    noise_std: float = eqx.field(static=True)

    def __check_init__(self):
        if not self.noise_std > 0:
            raise ValueError(f"`noise_std` must be positive, got {self.noise_std}.")

    def moments(self, seen, xt):
        mean, variance, _ = exact_posterior(self.kernel, self._noise(seen), seen.x, seen.y, xt, seen.mask)
        return mean, jnp.sqrt(variance)

    def sample(self, seen, xt, key):
        n, mask = seen.mask.shape[0], jnp.concatenate([seen.mask, jnp.ones(xt.shape[0], bool)])
        x = jnp.concatenate([jnp.where(seen.mask[:, None], seen.x, 0.0), xt])
        k = jnp.where(mask[:, None] & mask[None, :], self.kernel(x, x), 0.0)
        noise = jnp.where(seen.mask, self._noise(seen), 1.0)
        jitter = x.shape[0] * jnp.finfo(x.dtype).eps * self.kernel(xt)
        chol = cholesky(k + jnp.diag(jnp.concatenate([noise, jitter])))
        y = jnp.where(seen.mask, seen.y, 0.0)
        white = solve_lower(chol[:n, :n], y)
        return chol[n:, :n] @ white + chol[n:, n:] @ jr.normal(key, xt.shape[:1], xt.dtype)

    def _noise(self, seen):
        return self.noise_std**2 + (0.0 if seen.error is None else jnp.square(seen.error))
