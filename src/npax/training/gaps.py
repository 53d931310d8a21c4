"""Gaps cut into data that one has, so that a model learns to fill the gaps that one does not have."""

import abc
import dataclasses

import numpy as np
from scipy.spatial import KDTree

from ..arguments import whole_number
from ..inference import AbstractCoordinates


class AbstractGaps(abc.ABC):
    """Which observations to hide."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, positions: np.ndarray, coordinates: AbstractCoordinates) -> np.ndarray:
        """`True` for the hidden ones among observations at `positions [n d]` of `coordinates`."""


@dataclasses.dataclass(frozen=True)
class RoundGaps(AbstractGaps):
    """Round holes of all sizes: around random observations, from the one alone to its `largest` nearest.

    The numbers are log-uniform, so gaps are as large beside the spacing of the data in dense and in sparse places.
    Round they are where the observations fill a box of equal sides (of coordinates of one unit: in that unit).
    Observations of one place are hidden together, and count as one.

    **Arguments:** `share`: of the places, hidden in all; `largest`: number of places in a hole.
    """

    share: float = 0.15
    largest: int = 64

    def __post_init__(self):
        whole_number(1, largest=self.largest)
        if not 0 < self.share < 1:
            raise ValueError(f"`share` must lie between 0 and 1, got {self.share}.")

    def draw(self, rng, positions, coordinates):
        space = coordinates.space(positions)
        places, at = np.unique(space(positions), axis=0, return_inverse=True)
        n = len(places)
        tree, hidden = KDTree(places), np.zeros(n, bool)
        while np.count_nonzero(hidden) < max(1, int(self.share * n)):
            sizes = np.exp(rng.uniform(0, np.log(min(self.largest, n) + 0.5), 64)).astype(int)
            for centre, size in zip(rng.integers(n, size=64), sizes, strict=True):
                hidden[np.atleast_1d(tree.query(places[centre], int(size))[1])] = True
                if np.count_nonzero(hidden) >= self.share * n:
                    break
        return hidden[at.ravel()]


@dataclasses.dataclass(frozen=True, eq=False)
class MovedGaps(AbstractGaps):
    """The gaps that are to be filled, somewhere else: clouds over a satellite's picture, moved to where it is clear.

    **Arguments:** `at`: rows of `x` without observations, dense enough to draw the shape of the gaps (the missing
    cells of a grid). Moved as a whole, so that a random one of them comes to lie on a random observation, they hide
    every observation that one of them comes closer to than half of their own spacing.
    **Cost:** a k-d tree of `at` and one of its moved copy per draw. **Raises:** `ValueError` for `at` without rows.
    """

    at: np.ndarray

    def __post_init__(self):
        if np.ndim(self.at) != 2 or not len(self.at):
            raise ValueError(f"`at` must have the shape [n, d] with at least one row, got {np.shape(self.at)}.")

    def draw(self, rng, positions, coordinates):
        at = coordinates.positions(np.asarray(self.at, np.float64))
        space = coordinates.space(positions)
        places = np.unique(space(at), axis=0)
        apart = KDTree(places).query(places[:: max(1, len(places) // 1000)], 2)[0][:, 1]
        moved = coordinates.moved(at, at[rng.integers(len(at))], positions[rng.integers(len(positions))])
        near = np.median(apart) / 2 if len(places) > 1 else 0.0
        return KDTree(space(moved)).query(space(positions), distance_upper_bound=near * (1 + 1e-6) + 1e-12)[0] < np.inf
