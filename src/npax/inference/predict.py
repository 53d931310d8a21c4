"""Exact prediction: one context, any number of targets, bounded memory, few compilations."""

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float
from numpyro.distributions import Distribution

from ..arrays import floats
from ..attention import DenseAttention
from ..blocks import write_memories_in_threads
from ..devices import as_here, cores_each, everywhere, local_mesh, on_first, split
from ..likelihoods import marginals, noiseless, of_real_numbers
from ..models import AbstractNeuralProcess, AbstractTokenStack
from ..models._base import check_error, condition_on
from ..progress import Progress
from .buckets import bucket, pad, wide_bucket
from .normalise import FAR, AbstractCoordinates, Planar, Unscaled
from .standardise import Standardiser

CHUNK, LARGE_CHUNK = 1024, 16_384
"""Targets per compiled call and device, CPUs and others: their intermediate values, not the request, set the memory.
A GPU needs many targets to be busy; where all logits are kept, memory does not allow them."""
LITTLE = 1 / 9
"""The weight, as a share of the mean weight, below which an observation of a large known error is left out."""
LARGE = 2048
"""Observations, padding included, from which on a context is conditioned in threads."""


class Prediction(NamedTuple):
    """Marginal means and standard deviations `[n dy]` of a prediction, in the units of the observations.

    `observation_std` is that of a new observation, `function_std` that of the noiseless function (the same where the
    model does not tell them apart). **Pitfall:** their squares, the variances, overflow beyond 1e154.
    """

    mean: np.ndarray
    observation_std: np.ndarray
    function_std: np.ndarray

    def std(self, include_noise: bool = True) -> np.ndarray:
        return self.observation_std if include_noise else self.function_std

    def with_noise(self, noise: "Noise | None", x: np.ndarray) -> "Prediction":
        """That of observations at `x` with another noise, if any."""
        if noise is None:
            return self
        return self._replace(observation_std=np.hypot(self.function_std, noise(x)))

    @property
    def variance(self) -> np.ndarray:
        return np.square(self.observation_std)

    @property
    def function_variance(self) -> np.ndarray:
        return np.square(self.function_std)


Noise = Callable[[np.ndarray], np.ndarray]
"""The standard deviation `[n dy]` of the noise of an observation at `x [n d]`."""


class Even(NamedTuple):
    """A `Noise` that is the same everywhere; `std [dy]`."""

    std: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.std, (len(x), len(self.std)))


class Context(NamedTuple):
    """What a model is conditioned on: normalised, float32, padded; and what undoes the normalisation of `y`.

    **Shapes:** `x [*contexts n dx]`, `y [*contexts n dy]`, `mask [*contexts n]`; known standard errors `error`, if any,
    as `y`.
    """

    standardiser: Standardiser
    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray
    error: np.ndarray | None = None

    @property
    def seen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
        """What the model takes of it."""
        return self.x, self.y, self.mask, self.error


class Exact:
    """A model's answer to one context: a function of targets, `exact(x) -> Prediction`.

    Every target sees the whole context, which is conditioned at the first call and kept for later ones (6 KB for each
    observation and column at the default sizes). Cost with exact attention: O(nc²) once and O(nc) per target; memory
    O(nc) and that of one chunk of targets for each device and CPU core. More targets than a chunk are spread over all
    devices of the process, and over the cores of each.

    **Arguments:** `model`; `x [nc d]`, `y [nc dy]`: the context, finite, in the user's units; `coordinates`: what
    the columns of `x` mean; `error [nc dy]`: known standard errors of `y`, for models that take them (observations
    of errors far above those of most are left out); `progress`: show a progress bar over chunks of targets;
    `normalize`: bring positions to [-2, 2] (columns of units of their own to units in which what is observed varies
    alike, `AbstractCoordinates.adapted`) and values to mean zero and standard deviation one first, or leave them as
    they are; `noise`: that of the observations which are predicted, where the rows of `y` are means of several. A model
    with one column of `y` serves each column independently, but for those units, which they share. Later changes to `x`
    or `y` do not change the answers. Threads may share it.

    **Raises:** `ValueError` for more columns than the model takes, `x` and `y` of different lengths, values that are
    not finite, errors that the model does not take, and targets with other columns.
    """

    in_tiles = False

    def __init__(
        self,
        model: AbstractNeuralProcess,
        x: np.ndarray,
        y: np.ndarray,
        coordinates: AbstractCoordinates = Planar(),  # noqa: B008  (immutable)
        *,
        error: np.ndarray | None = None,
        progress: bool = False,
        normalize: bool = True,
        noise: Noise | None = None,
    ):
        coordinates = coordinates if normalize else Unscaled(coordinates)
        x, y = observations(x, y)
        error = known_errors(model, error, y)
        self.columns, self.dy = x.shape[1], y.shape[1]
        positions = coordinates.positions(x)
        standardise = normalize and of_real_numbers(model.likelihood)
        coordinates = adapted(coordinates, positions, y, error, standardise)
        self.model, self.coordinates, self.progress, self.noise = model, coordinates, progress, noise
        self.frame = coordinates.frame(positions)
        xc = to_model(model, self.frame(positions))
        self.contexts = contexts(model, xc, y, error, standardise)
        self._lock, self._kept = Lock(), {}

    def __call__(self, x: np.ndarray) -> Prediction:
        x = checked_targets(x, self.columns)
        return self.as_seen(x).with_noise(self.noise, x)

    def as_seen(self, x: np.ndarray) -> Prediction:
        """The prediction of further rows of `y`, with the noise that these have, whatever `noise` says."""
        xt = to_model(self.model, self.frame(self.coordinates.positions(checked_targets(x, self.columns))))
        mesh = local_mesh()
        model, states = self._known(mesh)
        return side_by_side(
            restore(decode(model, state, xt, mesh, progress=self.progress), context.standardiser)
            for state, context in zip(states, self.contexts, strict=True)
        )

    def _known(self, mesh):
        """The model and the state of each context on all devices of a mesh, conditioned on the first."""
        with self._lock:
            if mesh not in self._kept:
                model = on_first(self.model, mesh)
                known = model, [condition(model, context) for context in self.contexts]
                self._kept[mesh] = known if mesh.size == 1 else everywhere(known, mesh)
            return self._kept[mesh]

    def of(self, model: Any) -> "Exact":
        """The same with another model."""
        other = copy.copy(self)
        other.model, other._kept = model, {}
        return other

    def __getstate__(self):
        return {**self.__dict__, "_lock": None, "_kept": {}}  # cheap to compute again, large to send

    def __setstate__(self, state):
        self.__dict__.update(state, _lock=Lock())


def observations(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Copies `x [n d]`, `y [n dy]` in float64: what a predictor keeps does not change with the user's arrays."""
    x, y = np.array(floats(x)), np.array(floats(y))
    for name, a in {"x": x, "y": y}.items():
        if a.ndim != 2 or not a.shape[1]:
            raise ValueError(f"`{name}` must have the shape [rows, columns], at least one column; got {a.shape}.")
        lost = np.count_nonzero(~np.isfinite(a).all(axis=1))
        if lost:
            raise ValueError(f"`{name}` holds NaN or infinity in {lost:,} of {len(a):,} rows: leave these rows out.")
    if len(x) != len(y):
        raise ValueError(f"`x` and `y` must have as many rows as each other, got {len(x)} and {len(y)}.")
    return x, y


def known_errors(
    model: AbstractNeuralProcess, error: np.ndarray | None, y: Float[np.ndarray, "n dy"]
) -> Float[np.ndarray, "n dy"] | None:
    """A copy in float64 of known standard errors.

    **Raises** `ValueError` for a model that does not take any, another shape than that of `y`, and what is negative
    or not finite."""
    if error is None:
        return None
    error = np.array(floats(error))
    check_error(model, error, y)
    wrong = ~(np.isfinite(error) & (error >= 0)).all(axis=1)
    if wrong.any():
        raise ValueError(
            "`error` holds standard deviations, finite and not negative (zero where no noise is known); got "
            f"{error[wrong][0]} in row {np.argmax(wrong)}."
        )
    return error


def checked_targets(x: np.ndarray, columns: int) -> np.ndarray:
    """Targets in float64. **Raises** `ValueError` unless they are finite, with the columns of the observations."""
    x = floats(x)
    if x.ndim != 2 or x.shape[1] != columns:
        raise ValueError(f"`x` must have the shape [n, {columns}], the columns of the observations; got {x.shape}.")
    if not np.isfinite(x).all():
        raise ValueError(f"`x` must be finite, got NaN or infinity in row {np.argmin(np.isfinite(x).all(axis=1))}.")
    return x


def to_model(model: AbstractNeuralProcess, positions: np.ndarray) -> np.ndarray:
    """Float32 coordinates with as many columns as the model takes; the missing ones are zeros."""
    if positions.shape[-1] > model.dx:
        raise ValueError(
            f"The model takes up to {model.dx} coordinates, got {positions.shape[-1]} columns in `x`. "
            "Choose fewer columns, make some of them `covariates`, or train a model with a larger `dx`."
        )
    return pad(np.clip(positions, -FAR, FAR).astype(np.float32), model.dx, axis=-1)


def grouped(model: AbstractNeuralProcess, y: np.ndarray) -> list[np.ndarray]:
    """The columns of `y` in the groups that the model takes: all at once, or one by one."""
    dy = model.likelihood.dy
    if dy not in (1, y.shape[-1]):
        raise ValueError(
            f"The model takes {dy} columns of `y`, got {y.shape[-1]}. "
            "A model with `dy` = 1 takes any number, each by itself."
        )
    return [y[..., i : i + dy] for i in range(0, y.shape[-1], dy)]


def contexts(
    model: AbstractNeuralProcess,
    xc: Float[np.ndarray, "*contexts n dx"],
    y: Float[np.ndarray, "*contexts n dy"],
    error: Float[np.ndarray, "*contexts n dy"] | None,
    standardise: bool,
) -> list[Context]:
    """What the model is conditioned on for each group of the columns of `y` that it takes."""
    groups = grouped(model, y)
    errors = [None] * len(groups) if error is None else grouped(model, error)
    return [_context(xc, *group, standardise) for group in zip(groups, errors, strict=True)]


def _context(xc, y, error, standardise):
    s = standardiser(y, error, standardise)
    xc, values, mask = padded(xc, s(y).astype(np.float32))
    if error is None:
        return Context(s, xc, values, mask)
    error = pad(s.scaled(error), xc.shape[-2], axis=-2)
    return Context(s, xc, values, mask & _has_a_say(error, mask), error)


def _has_a_say(error, mask):
    """Of which observations `[*contexts n]` the weight beside the field, $1 / (1 + e^2)$, is not far below the mean in
    all columns. The others would say next to nothing, and models are trained on errors of a few times the field only.
    """
    weight = mask[..., None] / (1 + np.square(error.astype(float)))
    mean = np.sum(weight, axis=-2, keepdims=True) / np.maximum(np.sum(mask, axis=-1), 1)[..., None, None]
    return (weight >= LITTLE * mean).any(axis=-1)


def standardiser(y: np.ndarray, error: np.ndarray | None, standardise: bool) -> Standardiser:
    """What brings values `[*contexts n dy]` of known standard errors, if any, to the model's unit, or leaves them as
    they are."""
    return Standardiser.of(y, error) if standardise else Standardiser.none(y)


def adapted(
    coordinates: AbstractCoordinates, positions: np.ndarray, y: np.ndarray, error: np.ndarray | None, standardise: bool
) -> AbstractCoordinates:
    """Coordinates with units by what is observed at `positions [n p]`, but for what has next to no say."""
    s = standardiser(y, error, standardise)
    if error is None:
        return coordinates.adapted(positions, s(y))
    error = s.scaled(error).astype(float)
    heard = _has_a_say(error, np.ones(len(error), bool))
    return coordinates.adapted(positions[heard], s(y)[heard], error[heard])


def padded(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts `[*contexts n _]` padded to their bucket, and the mask that tells."""
    n = x.shape[-2]
    size = bucket(n)
    mask = np.broadcast_to(np.arange(size) < n, (*x.shape[:-2], size))
    return pad(x, size, axis=-2), pad(y, size, axis=-2), mask


def restore(moments: np.ndarray, standardiser: Standardiser) -> Prediction:
    """Moments `[3 *contexts n dy]` in the units of the observations, float64."""
    mean, *variances = moments.astype(np.float64)
    stds = (np.sqrt(variance) * standardiser.std[..., None, :] for variance in variances)
    return Prediction(standardiser.undo(mean), *stds)


def side_by_side(predictions: Iterator[Prediction]) -> Prediction:
    """The columns of several predictions as one."""
    return Prediction(*(np.concatenate(parts, axis=-1) for parts in zip(*predictions, strict=True)))


def moments(distribution: Distribution) -> Float[Array, "3 nt dy"]:
    """Mean, variance of a new observation, variance of the function. **Raises** `ValueError` where the columns are no
    event, `NotImplementedError` for a distribution of which NumPyro knows no mean or variance."""
    observation, function = marginals(distribution), marginals(noiseless(distribution))
    try:
        _ = observation.mean, observation.variance
    except NotImplementedError as error:
        raise NotImplementedError(
            f"{type(observation).__name__}, what the likelihood gives, has no `mean` or no `variance`, which are "
            "predicted: write a class of it that has both, or draw from it by `npax.sample`."
        ) from error
    if jnp.ndim(observation.mean) != 2:
        raise ValueError(
            "The distribution of a likelihood must have the batch shape [nt] and the event shape [dy]; got "
            f"{[*distribution.batch_shape]} and {[*distribution.event_shape]}. `.to_event(1)` makes an event of the "
            "columns."
        )
    return jnp.stack([observation.mean, observation.variance, function.variance])


def decode(
    model: AbstractNeuralProcess, state: Any, xt: Float[np.ndarray, "nt dx"], mesh: Mesh, *, progress: bool = False
) -> Float[np.ndarray, "3 nt dy"]:
    """`moments` of any number of targets, chunk by chunk, on the devices of a mesh, where model and state are; several
    chunks side by side where a device has several CPU cores, which a single program does not fill."""
    platform = mesh.devices.flat[0].platform
    size = wide_bucket(-(-len(xt) // mesh.size), chunk_size(model, platform)) * mesh.size
    chunks = [xt[start : start + size] for start in range(0, max(len(xt), 1), size)]

    def answer(chunk):
        return np.asarray(_decode((model, state), pad(chunk, size), mesh))[:, : len(chunk)]

    found = []
    with Progress("Predicting", len(xt), shown=progress) as bar, ThreadPoolExecutor(cores_each(mesh)) as pool:
        for part in pool.map(as_here(answer), chunks) if len(chunks) > 1 else map(answer, chunks):
            found.append(part)
            bar.advance(part.shape[1])
    return np.concatenate(found, axis=1)


def chunk_size(model: AbstractNeuralProcess, platform: str) -> int:
    """Targets per compiled call and device."""
    parts = jax.tree.leaves(model, is_leaf=lambda part: isinstance(part, DenseAttention))
    keeps_logits = any(isinstance(part, DenseAttention) for part in parts)
    return CHUNK if keeps_logits or platform == "cpu" else LARGE_CHUNK


def condition(model: AbstractNeuralProcess, context: Context) -> Any:
    """The state of a context; of a large one, in threads where a device has several cores and the model is a stack of
    blocks."""
    if len(context.x) < LARGE or cores_each(local_mesh()) == 1 or not isinstance(model, AbstractTokenStack):
        return _condition(model, context.seen)
    return write_memories_in_threads(model.stack, *_entering(model, context.seen))


@eqx.filter_jit
def _condition(model, context):
    return condition_on(model, *context)


@eqx.filter_jit
def _entering(model, context):
    return model.entering(*context)


@eqx.filter_jit
def _decode(known, xt, mesh):
    def of_share(known, xt):
        model, state = known
        return moments(model.predict(state, xt))

    return split(of_share, mesh, axis=1)(known, xt)
