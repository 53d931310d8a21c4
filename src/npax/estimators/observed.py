"""What an estimator keeps of observations."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..inference import AbstractCoordinates, Columns, choose
from ..inference.surroundings import Surroundings
from ..models import AbstractNeuralProcess
from .seen import Seen


class Observed(NamedTuple):
    """What is seen of each group of columns of `y`, and where the observations lie, in `d` coordinates that vary.

    `surroundings`, `around`: of the places, and the ranges of the covariates; `together`: whether one view shows all
    places; `reach`, `noise`: of tiles, the least and the most of all groups (`Seen.reach_and_noise`); `normalize`:
    whether units are those of the observations.
    """

    system: AbstractCoordinates
    columns: Columns
    each: list[Seen]
    d: int
    surroundings: Surroundings
    around: Surroundings
    together: bool = True
    reach: float = np.inf
    noise: float = np.inf
    normalize: bool = True

    @classmethod
    def of(
        cls,
        model: AbstractNeuralProcess,
        system: AbstractCoordinates,
        columns: Columns,
        X: np.ndarray,
        groups: Sequence[tuple[np.ndarray, np.ndarray | None]],
        *,
        normalize: bool,
        average: bool,
        noise: bool,
        levels: bool,
        size: int,
    ) -> "Observed":
        """Rows of `X`, and values and known errors of each group (see `Seen.of`); `size`: of tiles."""
        places, z = columns.split(X)
        positions = system.positions(places)
        given = {"normalize": normalize, "average": average, "noise": noise, "levels": levels}
        each = [Seen.of(model, system, places, z, *group, **given) for group in groups]
        around = Surroundings.of(z, closed=len(z) > 1)
        d = int(np.count_nonzero(places.min(axis=0) < places.max(axis=0)))
        observed = cls(system, columns, each, max(d, 1), system.surroundings(positions), around)
        if not normalize:
            return observed._replace(normalize=False)
        return observed._replace(together=system.in_one_view(positions)).with_tiles(size)

    def with_tiles(self, size: int) -> "Observed":
        """The same if tiles have another size."""
        if not self.normalize:
            return self
        reaches, noises = zip(*(seen.reach_and_noise(size) for seen in self.each), strict=True)
        return self._replace(reach=min(reaches), noise=max(noises))

    @property
    def number(self) -> int:
        """Of what the network sees, at most: observations, or means of them."""
        return max(len(seen.x) for seen in self.each)

    def outside(self, X: np.ndarray) -> np.ndarray:
        """Which rows lie so far outside the observations that intervals are too narrow there, `[n]`."""
        places, _ = self.columns.split(X)
        return self.surroundings.miss(self.system.positions(places))

    def unlike(self, X: np.ndarray) -> np.ndarray:
        """Which of the covariates `[n p]` lie so far outside the range of those that are observed."""
        _, z = self.columns.split(X)
        return (z < self.around.low) | (z > self.around.high)

    @property
    def strategy(self) -> str:
        """The better one."""
        return choose(self.number, self.reach, self.noise) if self.together else "tiled"
