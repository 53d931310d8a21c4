"""Predictions of what covariates and levels leave, and what these add."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .drift import Drift
from .levels import LevelsEverywhere
from .predict import Exact, Prediction
from .tile import Tiled


class Columns(NamedTuple):
    """Which columns of a table `x [n d + p]` are coordinates of `places`, and which are `covariates`."""

    places: list[int]
    covariates: list[int]

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`[n d]` and `[n p]`."""
        return x[:, self.places], x[:, self.covariates]


class WithDrift:
    """A predictor of what a `drift` and `levels` leave, and these: a function of `x [n d + p]`, whose `columns` are
    coordinates and covariates."""

    def __init__(self, field: Exact | Tiled, drift: Drift, columns: Columns, levels: Sequence[LevelsEverywhere] = ()):
        self.field, self.drift, self.columns, self.levels = field, drift, columns, levels

    def __call__(self, x: np.ndarray) -> Prediction:
        places, _ = self.columns.split(x)
        rest, mean = self.field(places), self.added(x)
        unknown = np.sqrt(np.square(self.doubt(x)).sum(axis=1)) * self.drift.unit
        for levels in self.levels:
            found = levels(places, levels.unheard(rest))
            mean, unknown = mean + found.mean, np.hypot(unknown, found.std())
        stds = (np.hypot(self.drift.widened * std, unknown) for std in (rest.observation_std, rest.function_std))
        return Prediction(rest.mean + mean, *stds)

    def added(self, x: np.ndarray) -> np.ndarray:
        """The drift at rows of `x`, `[n dy]`."""
        return self.drift(self.columns.split(x)[1])

    def doubt(self, x: np.ndarray) -> np.ndarray:
        """What is not known of it, `[n p dy]`, in units of `drift.unit` (`Drift.doubt`)."""
        return self.drift.doubt(*self.columns.split(x))

    def part(self, x: np.ndarray) -> "WithDrift":
        """The same answers at places among `x` from what those need (`Tiled.part`)."""
        assert isinstance(self.field, Tiled)  # only tiles have parts
        places, _ = self.columns.split(x)
        return WithDrift(self.field.part(places), self.drift.part(places), self.columns, self.levels)

    def of(self, model: Any) -> "WithDrift":
        """The same with another model (`Tiled.of`)."""
        assert isinstance(self.field, Tiled)
        return WithDrift(self.field.of(model), self.drift, self.columns, [levels.of(model) for levels in self.levels])

    @property
    def in_tiles(self) -> bool:
        return self.field.in_tiles

    @property
    def model(self) -> Any:
        return self.field.model

    @property
    def dy(self) -> int:
        return self.field.dy

    @property
    def progress(self) -> bool:
        return self.field.progress

    @progress.setter
    def progress(self, shown: bool) -> None:
        self.field.progress = shown
