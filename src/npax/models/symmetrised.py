from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpy.typing import ArrayLike

from ..alone import compiled_alone
from ..arguments import instance, whole_number
from ..likelihoods import FunctionAndNoise, HeteroscedasticGaussian, HomoscedasticGaussian, NoisyNormal, marginals
from ._base import (
    AbstractConditionalNeuralProcess,
    AbstractNeuralProcess,
    check_error,
    check_points,
    condition_on,
    floats,
    hears_errors,
    places,
)


class View(eqx.Module):
    """One look at a task: `x [n dx]` becomes `x @ turn`, and `y` becomes `sign * y`.

    **Arguments:** `turn [dx dx]`: an orthogonal matrix, or a multiple of one; `sign`: 1 or -1. **Raises** `ValueError`
    for others.
    """

    turn: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    sign: int = eqx.field(static=True)

    def __init__(self, turn: ArrayLike, sign: int = 1):
        given = np.asarray(turn, np.float64)
        if given.ndim != 2 or given.shape[0] != given.shape[1]:
            raise ValueError(f"`turn` must be a square matrix, got the shape {given.shape}.")
        squares = given.T @ given
        if not (squares[0, 0] > 0 and np.allclose(squares, squares[0, 0] * np.eye(len(given)))):
            raise ValueError(f"`turn` must be a multiple of an orthogonal matrix, got {given.tolist()}.")
        if sign not in (1, -1):
            raise ValueError(f"`sign` must be 1 or -1, got {sign!r}.")
        self.turn, self.sign = tuple(tuple(row) for row in given.tolist()), int(sign)


def mirrored(dx: int) -> tuple[View, ...]:
    r"""A task and its three mirror images, $x \to -x$ and $y \to -y$: of stationary processes of mean zero alike."""
    whole_number(1, dx=dx)
    return tuple(View(side * np.eye(dx), sign) for side in (1, -1) for sign in (1, -1))


def turned(dx: int, used: int | None = None) -> tuple[View, ...]:
    """A task, and three looks at it turned in the plane of the first two coordinates, from a little farther away, two
    of them at `-y`: of processes that are stationary, isotropic and of mean zero, and whose lengths are not known,
    alike.

    **Arguments:** `dx`: coordinates of the model; `used`: how many of them tasks have, the first ones. Where there is
    one, views are mirrored instead: `gp-universal` has learned of lines along an axis, and loses on smooth functions
    along others, if it gains where noise is strong. **Raises** `ValueError` for numbers below 1 or `used` above `dx`.
    """
    used = dx if used is None else used
    whole_number(1, dx=dx, used=used)
    if used > dx:
        raise ValueError(f"`used` must be at most `dx`, {dx}; got {used}.")
    return tuple(View(scale * _turn(dx, angle, used), sign) for angle, scale, sign in _TURNED)


_TURNED = (0.0, 1.0, 1), (0.75 * np.pi, 0.85, -1), (0.25 * np.pi, 0.95, -1), (1.5 * np.pi, 0.9, 1)
"""Angle, scale and sign of each view."""


def _turn(dx, angle, used):
    if used == 1:  # the same way for less than a quarter of a turn, else the other
        return np.eye(dx) if abs(angle) < np.pi / 2 else -np.eye(dx)
    turn = np.eye(dx)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return turn


class Symmetrised(AbstractNeuralProcess):
    r"""A model that answers what it sees in several views of a task, made of any Gaussian one: it asks that one about
    the task turned, mirrored or scaled, and gives the geometric mean of what it says,

    $$p(y_t \mid x_t, D_c) \propto \prod_{i=1}^{k} p_i(y_t \mid x_t, D_c)^{1/k}.$$

    Stationary processes of mean zero look the same in the mirror, isotropic ones when turned, and where lengths are
    not known beforehand they look alike from nearer and farther away; so their posteriors do, too. What a network has
    learned does not quite; where its answers differ all but one of them are off, and the mean takes part of that away.
    The log density (of the function, where function and noise are told apart) is never below the mean of those of the
    views, for by Hölder's inequality the geometric mean of densities has a mass of at most one. No training is needed;
    it gains nothing where the model is symmetric, and loses where the world is not: where time has a direction or `y` a
    sign, such as a rain rate, or where lengths are known.

        reg = npax.NeuralProcessRegressor(npax.Symmetrised(npax.load("gp-universal")))

    Where function and noise are told apart, the mean is that of the function; the noise gets the geometric mean over
    the views.

    **Arguments:** `model`: a conditional neural process with a Gaussian likelihood; `views`: what it is asked about,
    by default the task and its mirror images (`npax.models.mirrored`), after which mirrored tasks get exactly mirrored
    answers; `npax.models.turned` are those of `NeuralProcessRegressor`. **Raises** `TypeError` for another model,
    `ValueError` for no views, or views of another number of coordinates.
    **Cost:** that of the model times the number of views, in time and in the state's memory; views are seen one after
    the other. **Source:** averaging over a group is general knowledge; no paper on neural processes that we know of
    does it to a trained one.
    """

    model: AbstractNeuralProcess
    views: tuple[View, ...]

    def __init__(self, model: AbstractNeuralProcess, views: Sequence[View] | None = None):
        instance(AbstractNeuralProcess, model=model)
        likelihood = model.likelihood
        gaussian = isinstance(likelihood, HeteroscedasticGaussian | HomoscedasticGaussian | FunctionAndNoise)
        if not (gaussian and isinstance(model, AbstractConditionalNeuralProcess)):
            raise TypeError(
                "`model` must be a conditional neural process with a Gaussian likelihood, got "
                f"{type(model).__name__} with {type(likelihood).__name__}."
            )
        self.model, self.views = model, mirrored(model.dx) if views is None else tuple(views)
        shapes = {np.shape(view.turn) for view in self.views}
        if shapes != {(self.dx, self.dx)}:
            raise ValueError(
                f"`views` must be one or more, with a `turn` of the shape {(self.dx, self.dx)}, for the model has "
                f"{self.dx} coordinates (those that data lack are zero); got {shapes or 'none'}."
            )

    @property
    def likelihood(self):  # pyright: ignore
        return self.model.likelihood

    @property
    def dx(self):  # pyright: ignore
        return self.model.dx

    @property
    def dy(self):
        return self.likelihood.dy

    @property
    def errors(self) -> bool:
        """Whether `condition` takes known errors: as the model does."""
        return hears_errors(self.model)

    def condition(self, xc, yc, mask=None, error=None):
        check_points(self, xc, yc, mask, "c")
        check_error(self, error, yc)
        xc, yc = floats(self.model, xc, yc)

        def in_view(turn, sign):
            return condition_on(self.model, _times(xc, turn), sign.astype(yc.dtype) * yc, mask, error)

        return jax.lax.map(lambda given: in_view(*given), self._turns_and_signs)

    @compiled_alone
    def predict(self, state, xt):
        xt = places(self, state, xt)

        def in_view(state, turn, sign):
            found = marginals(self.model.predict(state, _times(xt, turn)))
            assert isinstance(found, dist.Normal | NoisyNormal)
            log_noise = jnp.log(found.noise) if isinstance(found, NoisyNormal) else None
            loc = jnp.asarray(found.loc)
            return sign.astype(loc.dtype) * loc, jnp.log(jnp.asarray(found.scale)), log_noise

        loc, log_scale, log_noise = jax.lax.map(lambda given: in_view(*given), (state, *self._turns_and_signs))
        loc = jnp.sum(jax.nn.softmax(-2 * log_scale, axis=0) * loc, axis=0)
        scale = jnp.exp(-0.5 * (jax.nn.logsumexp(-2 * log_scale, axis=0) - jnp.log(len(log_scale))))
        if log_noise is None:
            return dist.Normal(loc, scale).to_event(1)
        return NoisyNormal(loc, scale, jnp.exp(jnp.mean(log_noise, axis=0))).to_event(1)

    @property
    def _turns_and_signs(self):
        turns, signs = [view.turn for view in self.views], [view.sign for view in self.views]
        return jnp.asarray(turns, jnp.float32), jnp.asarray(signs, jnp.float32)


def _times(x, turn):
    """A product without the rounding that accelerators allow themselves in others: these are coordinates."""
    return jnp.matmul(x, turn.astype(x.dtype), precision="highest")
