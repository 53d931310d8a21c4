"""Scattered observations that one has: stations, floats, files of one's own."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Bool, Float
from scipy.spatial import KDTree

from ..arguments import booleans, whole_number
from ..arrays import floats
from ..inference import Standardiser, coordinates
from ..inference.predict import observations
from ..layers import masked_mean
from ..task import Task
from ._base import AbstractTasks
from .scaling import Scaling
from .split import check_sizes, split

LEAST = 0.1
"""The least standard deviation of a context, in that of its data set, that is taken for the unit: a single value, or a
few that are nearly equal, do not say how much others vary."""


class StationTask(AbstractTasks):
    r"""Data sets of scattered observations, each cut anew into context and targets at every draw.

    A draw picks a data set and shows $n \sim U\{\texttt{low}, \dots, \texttt{high}\}$ of its observations; up to `nt`
    of the others are the targets (default: all). What is missing is neither.

    **Arguments:** `x`, `y`: data sets padded to the largest; `valid`: which observations there are, with all of their
    columns; `standardise`:
    bring each draw to mean zero and standard deviation one of its context, as estimators do with what they are given
    (by that of the whole data set, targets would be known from the context). A column that varies there by less than
    `LEAST` keeps its unit.
    **Raises** `ValueError` for other shapes, and NaN or infinity where observations are valid.
    **See** `days` (the same stations at many times), `neighbourhoods` (many stations once), `from_directory`.
    """

    x: Float[Array, "sets n dx"]
    y: Float[Array, "sets n dy"]
    valid: Bool[Array, "sets n"]
    low: int = eqx.field(static=True)
    high: int = eqx.field(static=True)
    nt: int = eqx.field(static=True)
    standardise: bool = eqx.field(static=True)

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        valid: ArrayLike,
        *,
        low: int = 1,
        high: int,
        nt: int | None = None,
        standardise: bool = False,
    ):
        x, y, valid = (jnp.asarray(a) for a in (x, y, valid))
        booleans(valid=valid)
        if not len(x):
            raise ValueError("There must be at least one data set, got none.")
        if not (x.ndim == y.ndim == 3 and x.shape[:2] == y.shape[:2] == valid.shape):
            raise ValueError(
                "`x`, `y` and `valid` must be [sets n dx], [sets n dy] and [sets n], "
                f"got {x.shape}, {y.shape} and {valid.shape}."
            )
        for name, a in (("x", x), ("y", y)):
            if any(isinstance(of, Tracer) for of in (a, valid)):
                continue
            wrong = int(np.sum(np.asarray(valid & ~jnp.isfinite(a).all(axis=-1))))
            if wrong:
                raise ValueError(
                    f"`{name}` has NaN or infinity in {wrong:,} of {int(valid.sum()):,} observations that are `valid`: "
                    "say that these are not."
                )
        self.x, self.y, self.valid, self.low, self.high, self.standardise = x, y, valid, low, high, standardise
        self.nt = check_sizes(low, high, nt, x.shape[1])

    def __len__(self) -> int:
        return len(self.x)

    def sample(self, key):
        which, choice = jr.split(key)
        i = jr.randint(which, (), 0, len(self))
        task = split(choice, self.x[i], self.y[i], self.valid[i], low=self.low, high=self.high, nt=self.nt)
        return by_context(task) if self.standardise else task


def by_context(task: Task) -> Task:
    """The task with values in the unit of its context: less its mean, over its standard deviation, column by column."""
    mean = masked_mean(task.yc, task.mask_c)
    std = jnp.sqrt(masked_mean(jnp.square(task.yc - mean), task.mask_c))
    std = jnp.where(std < LEAST, 1.0, std)
    yc, yt = (
        jnp.where(seen[:, None], (y - mean) / std, 0.0) for y, seen in ((task.yc, task.mask_c), (task.yt, task.mask_t))
    )
    return Task(task.xc, yc, task.mask_c, task.xt, yt, task.mask_t)


def days(
    x: np.ndarray,
    y: np.ndarray,
    *,
    scaling: Scaling | None = None,
    low: int | None = None,
    high: int | None = None,
    nt: int | None = None,
) -> tuple[StationTask, Scaling]:
    """The same stations at many times: every time is a data set, and stations that are silent then are missing.

    **Arguments:** `x [stations dx]`, finite; `y [times stations]`, NaN or masked where missing; `scaling`: of the times
    a model was trained on (default: of these); `low`, `high`, `nt`: as for `StationTask`, `high` two thirds of the
    stations, `low` 5 or, of few stations, as many as `high`.
    **Returns:** the tasks and their scaling. Times without two values are left out.
    """
    x, y = floats(x), floats(y)
    if x.ndim != 2:
        raise ValueError(f"`x` must have the shape (stations, coordinates), got {x.shape}.")
    if y.ndim != 2 or y.shape[1] != len(x):
        raise ValueError(f"`y` must have the shape (times, {len(x)}), one column per row of `x`; got {y.shape}.")
    bad = ~np.isfinite(x).all(axis=1)
    if bad.any():
        raise ValueError(f"`x` holds NaN or infinity in {bad.sum():,} of {len(x):,} rows: leave these stations out.")
    y = y[np.isfinite(y).sum(axis=1) >= 2]
    if not len(y):
        raise ValueError("`y` has no time with two values or more.")
    scaling = Scaling.of(x, y.reshape(-1, 1)) if scaling is None else scaling
    if len(scaling.x_mean) != x.shape[1]:
        raise ValueError(f"`scaling` is of {len(scaling.x_mean)} columns of x, the stations have {x.shape[1]}.")
    high = 2 * len(x) // 3 if high is None else high
    low = min(5, high) if low is None else low
    everywhere = np.broadcast_to(scaling.x(x), (*y.shape, x.shape[1]))
    tasks = _stations(everywhere, scaling.y(y[..., None]), np.isfinite(y), low=low, high=high, nt=nt)
    return tasks, scaling


def neighbourhoods(
    x: np.ndarray,
    y: np.ndarray,
    *,
    centres: np.ndarray | None = None,
    size: int = 256,
    most: int = 4096,
    coords: str = "planar",
    seed: int = 0,
    low: int | None = None,
    high: int | None = None,
    nt: int | None = None,
) -> StationTask:
    """Many stations once: a data set is a station and the `size` - 1 nearest to it, wherever they are.

    Locations fill [-2, 2] in each neighbourhood, and values have mean 0 and standard deviation 1 in each context, as
    `NeuralProcessRegressor` has it in its tiles: a model trained on these tasks can be handed to it.

    **Arguments:** `x [n dx]`, `y [n]` or `[n dy]`, finite; `centres`: rows of `x` around which to cut (default: all;
    a mask or indices that keep training and testing apart); at most `most` of them are drawn by `seed`; `coords`:
    "planar", "isotropic" or "latlon" (longitude, latitude; then three columns); `low`, `high`, `nt`: as for
    `StationTask`, `high` half of `size`, `low` 5 or, of few stations, as many as `high`.

    **Pitfalls:** neighbourhoods overlap: centres on either side of a border share stations, so leave a gap.
    """
    whole_number(2, size=size)
    whole_number(1, most=most)
    whole_number(0, seed=seed)
    y = floats(y)
    x, y = observations(x, y[:, None] if y.ndim == 1 else y)
    if not 2 <= size <= len(x):
        raise ValueError(f"`size` must be between 2 and the number of stations, {len(x):,}; got {size}.")
    system = coordinates(coords)
    positions = system.positions(x)
    rows = np.arange(len(x)) if centres is None else np.arange(len(x))[centres]
    if not len(rows):
        raise ValueError("`centres` must name at least one station, got none.")
    rows = np.random.default_rng(seed).permutation(rows)[:most]
    near = KDTree(positions).query(positions[rows], size)[1]
    local, values = positions[near], y[near]
    values = Standardiser.of(values)(values)
    everywhere = np.ones(near.shape, bool)
    high = size // 2 if high is None else high
    low = min(5, high) if low is None else low
    return _stations(system.frame(local)(local), values, everywhere, low=low, high=high, nt=nt, standardise=True)


def _stations(x, y, valid, **sizes):
    x, y = (jnp.asarray(np.where(np.isfinite(a), a, 0.0), jnp.float32) for a in (x, y))
    return StationTask(x, y, jnp.asarray(valid), **sizes)
