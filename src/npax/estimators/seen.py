"""What the network sees of the observations."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..inference import (
    EXACT_UP_TO,
    AbstractCoordinates,
    Columns,
    Drift,
    Exact,
    Fit,
    Levels,
    LevelsEverywhere,
    Noise,
    Tiled,
    WithDrift,
    adapted,
    known_errors,
    levels_of,
    superobservations,
    tile_reach,
    unknown_noise,
)
from ..likelihoods import of_real_numbers, tells_noise
from ..models import AbstractNeuralProcess
from ..models._base import hears_errors


class Seen(NamedTuple):
    """Of some columns of `y`, less the `drift` that covariates add and the `levels`: observations `x [n d]`, `y [n dy]`
    in their units (`system`) and their known errors, or means of a `number` of them, the errors of these, the `noise`
    of one observation, what they were taken for, and whether `features` stand out
    (`npax.inference.superobservations`)."""

    drift: Drift
    system: AbstractCoordinates
    x: np.ndarray
    y: np.ndarray
    number: float = 1.0
    noise: Noise | None = None
    fit: Fit | None = None
    error: np.ndarray | None = None
    features: bool = False
    levels: Sequence[Levels] = ()

    @classmethod
    def of(
        cls,
        model: AbstractNeuralProcess,
        system: AbstractCoordinates,
        x: np.ndarray,
        z: np.ndarray,
        y: np.ndarray,
        error: np.ndarray | None,
        *,
        normalize: bool,
        average: bool,
        noise: bool,
        levels: bool,
    ) -> "Seen":
        """In the units in which `y` varies alike; averaged, if asked for, where that loses little: for a model that
        tells noise and function apart. `z [n p]`: the covariates; `noise`: whether that of new observations is asked
        for; `levels`: whether they are looked for."""
        drift = Drift(system, x, z, y, error)
        y = y - drift(z)
        if not normalize:
            return cls(drift, system, x, y, error=error)
        error, of_reals = known_errors(model, error, y), of_real_numbers(model.likelihood)
        found, y = levels_of(system, x, y, error) if levels and of_reals else ((), y)
        if found or not drift.each:
            system = adapted(system, system.positions(x), y, error, of_reals)
        else:
            system = drift.coordinates
        seen = cls(drift, system, x, y, error=error, levels=found)
        if not (of_reals and tells_noise(model.likelihood)):
            return seen
        if average:
            means = superobservations(system, x, y, error, hears=hears_errors(model))
            seen = cls(drift, system, *means, levels=found)
        if noise and seen.noise is None and error is not None and error.any():
            seen = seen._replace(noise=unknown_noise(system, x, y, error))
        return seen

    def reach_and_noise(self, tile_size: int) -> tuple[float, float]:
        """How far a tile reaches, and the variance of the noise beside that of what varies in it, infinite where that
        is not known; of many observations they do not matter. Features need tiles, which see finer detail."""
        if self.features:
            return 0.0, np.inf
        if len(self.x) > EXACT_UP_TO:
            return np.inf, np.inf
        positions = self.system.positions(self.x)
        reach = tile_reach(self.system.space(positions)(positions), tile_size)
        if self.fit is None or not np.isfinite(reach):
            return reach, np.inf
        return reach, 1 / max(self.fit.varied(np.array([reach])).item(), 1e-9)

    def predictor(
        self, kind: Callable[..., Exact | Tiled], model: AbstractNeuralProcess, columns: Columns, **options: bool
    ) -> Exact | Tiled | WithDrift:
        """The answer of a `model`, of either `kind`, to tables of these `columns`."""
        field = kind(model, self.x, self.y, self.system, error=self.error, noise=self.noise, **options)
        if not (columns.covariates or self.levels):
            return field
        return WithDrift(field, self.drift, columns, [self._everywhere(kind, model, of) for of in self.levels])

    def _everywhere(self, kind, model, levels):
        coordinates = self.system.only(levels.columns)
        few = len(levels.places) <= EXACT_UP_TO and coordinates.in_one_view(coordinates.positions(levels.places))
        error = levels.unsure if hears_errors(model) else None
        known = (Exact if few or kind is Exact else Tiled)(
            model, levels.places, levels.values, coordinates, error=error
        )
        return LevelsEverywhere(levels, coordinates, known)
