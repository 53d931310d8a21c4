"""What is told of each prediction: mean and standard deviation, quantiles, probabilities of more than a threshold."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..counts import AbstractCounts
from ..links import Link
from .grid import MAPPING, STORAGE
from .moments import above
from .options import probabilities, thresholds


def what(link: Link | None, include_noise: bool) -> str:
    """In words, what predictions are of."""
    if isinstance(link, AbstractCounts):
        return "the rate of a single further place" if include_noise else "the rate that varies smoothly"
    return "a new observation" if include_noise else "the noiseless function"


@dataclasses.dataclass(frozen=True)
class Summary:
    """`link`: by which predictions of levels are told as values, such as rates; None where they are of these already.
    `quantiles`: probabilities; `above`: thresholds; `of_what`: in words, what their distribution is of."""

    link: Link | None = None
    quantiles: tuple[float, ...] = ()
    above: tuple[float, ...] = ()
    of_what: str = ""

    @classmethod
    def of(cls, link: Link | None, quantiles: Any, above: Any, of_what: str = "") -> Summary:
        """**Raises** `ValueError` for what are no probabilities, or no thresholds of such values, and for one that is
        given twice."""
        asked = cls(
            link,
            tuple(map(_as_written, probabilities(quantiles, "quantiles"))),
            tuple(map(_as_written, thresholds(above, "above"))),
            of_what,
        )
        for name, each in (("quantiles", asked.quantiles), ("above", asked.above)):
            if len(set(each)) < len(each):
                raise ValueError(f"`{name}` must have each number once, got {[*each]}.")
        for threshold in asked.above:
            asked._level(threshold)
        return asked

    def __call__(self, moments: np.ndarray) -> np.ndarray:
        """`[... columns]` from means and standard deviations `[... 2 dy]`, of levels where there is a `link`."""
        mean, std = np.split(moments, 2, axis=-1)
        told = (mean, std) if self.link is None else self.link.moments(mean, std)
        return np.concatenate([*told, *self._beside(mean, std)], axis=-1)

    def of_averages(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """The same, `[n columns]`, from the moments `[n dy]` of averages of values: as those of a normal level whose
        value has these."""
        levels = (mean, std)
        if self.link is not None and (self.quantiles or self.above):
            levels = self.link.of_moments(mean, std)
        return np.concatenate([mean, std, *self._beside(*levels)], axis=-1)

    def variables(
        self, ys: Sequence[Hashable], attributes: Mapping[Hashable, Mapping[str, Any]], **of_mean: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Names and attributes of the columns: the means of all of `ys` first, then their standard deviations, ..."""
        for kind, words, own in self._kinds():
            for y in ys:
                given = attributes.get(y, {})
                about = {"long_name": words.format(given.get("long_name", y)), **(of_mean if kind == "mean" else own)}
                if self.of_what and kind != "mean":
                    about["comment"] = f"of {self.of_what}"
                yield f"{y}_{kind}", {**_kept(given, kind), **about}

    def beside(self, table: Any, ys: Sequence[Hashable], columns: np.ndarray) -> Any:
        """A table with the columns `[n columns]`, those of each of `ys` together."""
        import pandas as pd

        names = self.names(ys)
        order = np.arange(len(names)).reshape(-1, len(ys)).T.ravel()
        told = pd.DataFrame(columns[:, order], index=table.index, columns=[names[i] for i in order])
        rest = table.drop(columns=[name for name in names if name in table])
        joined = pd.concat([rest, told], axis=1)
        joined.attrs = dict(table.attrs)
        return joined

    def names(self, ys: Sequence[Hashable]) -> list[str]:
        return [name for name, _ in self.variables(ys, {})]

    def refuse_taken(self, coords: Any, ys: Sequence[Hashable], where: str) -> None:
        """**Raises** `ValueError` where one of the coordinates has the name of a result."""
        taken = [name for name in self.names(ys) if name in coords]
        if taken:
            raise ValueError(
                f"`{where}` has a coordinate {taken[0]!r}, as the result is to be named: rename it, or drop it."
            )

    def _kinds(self):
        """Of each kind of column the end of its name, in words what it is of `y`, and attributes of its own."""
        yield "mean", "predicted mean of {}", {}
        yield "std", "standard deviation of {}", {}
        for q in self.quantiles:
            yield f"q{digits(q)}", f"{digits(q)} quantile of {{}}", {"quantile": q}
        for threshold in self.above:
            words = f"probability that {{}} is above {digits(threshold)}"
            yield f"above_{digits(threshold)}", words, {"threshold": threshold, "units": "1"}

    def _beside(self, mean, std):
        """Quantiles and probabilities, `[... dy]` each."""
        for level in ndtri(self.quantiles):
            quantile = mean + level * std
            yield quantile if self.link is None else self.link.rate(quantile)
        for threshold in self.above:
            yield above(mean, std, self._level(threshold))

    def _level(self, threshold):
        return threshold if self.link is None else self.link.level(threshold)


def _kept(given, kind):
    """Attributes of a variable that its prediction has, too: units; of the mean all but those of storage and those that
    name other variables."""
    left = (*STORAGE, MAPPING)
    return {key: value for key, value in given.items() if key == "units" or (kind == "mean" and key not in left)}


def _as_written(number):
    """A number of few digits as it was meant: 0.3 of float32 is 0.3."""
    return float(str(number))


def digits(number: float) -> str:
    """`0.025`, `20`, `0.000001`: a number as it is named, no two alike."""
    if number and not 1e-9 <= abs(number) < 1e15:
        return repr(number)
    return np.format_float_positional(number + 0.0, trim="-")
