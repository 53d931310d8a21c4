"""Several columns of values, each answered by itself."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .predict import Exact, Prediction, side_by_side
from .tile import Tiled
from .with_drift import WithDrift


class ByColumn:
    """The answers of one predictor for each column of values, or group of columns that the model takes, side by side.

    What varies fast along a coordinate in one column may be constant along it in another: each predictor has units,
    and tiles, of its own, and a column is answered as if the others were not there.
    """

    def __init__(self, each: Sequence[Exact | Tiled | WithDrift]):
        self.each = each

    def __call__(self, x: np.ndarray) -> Prediction:
        return side_by_side(predictor(x) for predictor in self.each)

    def part(self, x: np.ndarray) -> "ByColumn":
        """The same answers at places among `x` from what those need (`Tiled.part`)."""
        return ByColumn([predictor.part(x) for predictor in self._tiled()])

    def of(self, model: Any) -> "ByColumn":
        """The same with another model (`Tiled.of`)."""
        return ByColumn([predictor.of(model) for predictor in self._tiled()])

    def _tiled(self) -> list[Tiled | WithDrift]:
        tiled = [predictor for predictor in self.each if not isinstance(predictor, Exact)]
        assert len(tiled) == len(self.each)  # only tiles have parts
        return tiled

    @property
    def in_tiles(self) -> bool:
        return self.each[0].in_tiles

    @property
    def model(self) -> Any:
        return self.each[0].model

    @property
    def dy(self) -> int:
        return sum(predictor.dy for predictor in self.each)

    @property
    def progress(self) -> bool:
        return self.each[0].progress

    @progress.setter
    def progress(self, shown: bool) -> None:
        for predictor in self.each:
            predictor.progress = shown

    def split(self, *columns: np.ndarray) -> Iterator[tuple[Any, ...]]:
        """Each predictor and its own of arrays `[... dy]`."""
        cuts = np.cumsum([predictor.dy for predictor in self.each])[:-1]
        return zip(self.each, *(np.split(a, cuts, axis=-1) for a in columns), strict=True)


Predictor = Exact | Tiled | WithDrift | ByColumn
