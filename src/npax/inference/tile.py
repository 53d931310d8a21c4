"""Prediction from large contexts: overlapping cells, each with the observations around it, blended without seams."""

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from ..arguments import whole_number
from ..devices import everywhere, first_compiles, local_mesh, split
from ..likelihoods import of_real_numbers
from ..models import AbstractNeuralProcess
from ..models._base import condition_on
from ..progress import Progress
from .blend import Blend
from .cells import Box, Cell, Whole, bisect, known, small, weight
from .frames import AbstractFrame, Frame
from .neighbours import Neighbours, Remembered
from .normalise import AbstractCoordinates, Planar, Unscaled
from .order import sorted_rows
from .predict import (
    Context,
    Noise,
    Prediction,
    adapted,
    checked_targets,
    contexts,
    grouped,
    known_errors,
    moments,
    observations,
    restore,
    side_by_side,
    standardiser,
    to_model,
)
from .scatter import Scatter
from .trend import Trend

TREND = 16
"""A trend is taken off where there are this many times the observations that a cell sees."""
SHARE = 16
"""A cell holds this share of the observations that it sees: its targets lie amid what answers them."""
BEYOND = 1.0
"""How far there are cells beyond the observations, on each side, as a share of their range."""
WIDTHS = (8, 16, 32, 64, 256)
"""Targets of a cell per compiled call."""
CALL = 4
"""What a call costs beside its targets, in targets."""
PIECES = (256, 1024, 4096)
"""Targets up to which a cell may be answered in one piece; or all of them, whichever is less work."""
TOKENS = 1024
"""Observations per compiled call, over all its cells, on CPUs: more do not fit their caches."""
ACCELERATOR = 16
"""How many times more of them an accelerator gets."""
BLOCK = 2**18
"""Targets whose cells are listed at a time."""


class Batch(NamedTuple):
    """Cells that are answered together: boxes `[cells d]`, targets `[cells width]` and which of them count."""

    middle: np.ndarray
    half: np.ndarray
    targets: np.ndarray
    present: np.ndarray

    @classmethod
    def of(cls, cells: list[Cell], size: int, width: int) -> "Batch":
        """`size` cells, the missing ones without targets; the first has most, its number sets that of the columns."""
        present = np.array([len(cell.targets) for cell in cells] + [0] * (size - len(cells)))
        columns = -(-present[0] // width) * width
        cells = cells + cells[:1] * (size - len(cells))
        middle, half, targets = zip(*cells, strict=True)
        targets = np.stack([np.resize(indices, columns) for indices in targets])
        return cls(np.stack(middle), np.stack(half), targets, np.arange(columns) < present[:, None])

    def columns(self, start: int, width: int) -> "Batch":
        """Some of the targets of each cell."""
        part = slice(start, start + width)
        return self._replace(targets=self.targets[:, part], present=self.present[:, part])


class Tiled:
    r"""A model's answer to a large context: `tiled(x) -> Prediction`, at a cost per target that does not grow with it.

    Space is bisected along its longest side until a cell holds few observations. A cell answers the targets in it and
    in a margin around it, from `size` observations around its middle (`Neighbours`: most are the nearest, the others
    lie farther away), in coordinates and units of its own; a translation-equivariant model of a process that forgets
    loses little by that (compare TE, Theorem 2.2, of models and processes that see no farther than some distance).
    Cells are small beside what they see, and overlap little: a target far from the middle would miss observations near
    to it. Where cells overlap, their answers are mixed with weights that fade smoothly to zero at the end of a cell's
    reach and sum to one, so there are no seams; the variance is that of the mixture. The cells depend on the context
    alone: a target's prediction does not depend on which other targets are asked for, in this call or in another. In a
    gap, and beyond the observations, cells are no larger than they are far from them, and beside a track no larger than
    the part of it that they see; targets farther away than the observations' range belong to the outermost cells.

    No cell sees the whole field. From 16 `size` observations on, a trend surface (`Trend`) is taken off first, cells
    answer what is left, and the surface is put back. (Not where nothing is left: then there would be no scale, and the
    cells answer the values themselves.) A context of at most `size` points is seen whole by every cell,
    and the answer equals that of `Exact`.

    **Arguments:** those of `Exact`, and `size`: observations per cell (default 128, within what models are trained
    on); `progress`: shows a progress bar. Without `normalize` no trend is taken off either.

    **Cost:** each cell that has targets costs O(size²) once, each target O(size) for each cell that reaches it (1.7
    on average in the plane). There are up to 2 SHARE nc / size cells, and some along gaps. Memory: that of a batch of
    cells for each of up to eight threads, and O(nc + nt) floats on the host. The cells of a batch are spread over all
    devices of the process.

    **Pitfalls:** features much longer than a cell's surroundings, but not of the trend, are seen only by their slopes.
    Of many observations at one place cells see a thirty-second of `size`, drawn at random, lest they see nothing else.

    **Raises:** as `Exact`, and `ValueError` for no observations.
    """

    in_tiles = True

    def __init__(
        self,
        model: AbstractNeuralProcess,
        x: np.ndarray,
        y: np.ndarray,
        coordinates: AbstractCoordinates = Planar(),  # noqa: B008  (immutable)
        *,
        error: np.ndarray | None = None,
        size: int = 128,
        progress: bool = False,
        normalize: bool = True,
        noise: Noise | None = None,
    ):
        whole_number(1, size=size)
        x, y = observations(x, y)
        error = known_errors(model, error, y)
        if not len(x):
            raise ValueError("`x` has no rows: tiles need observations. `Exact` answers without any.")
        order = sorted_rows(x, y, error)  # of many at one place some are seen: the same ones, whatever the order
        x, y, error = x[order], y[order], None if error is None else error[order]
        coordinates = coordinates if normalize else Unscaled(coordinates)
        self.columns, self.dy = x.shape[1], y.shape[1]
        self.positions = coordinates.positions(x)
        nowhere = self.positions[:1]
        to_model(model, coordinates.frame(nowhere)(nowhere))
        self.standardise = normalize and of_real_numbers(model.likelihood)  # here: it traces the likelihood
        self.standardiser = standardiser(y, error, self.standardise)
        self.y = self.standardiser(y)
        self.error = None if error is None else error / self.standardiser.std
        self.model, self.size, self.progress, self.noise = model, size, progress, noise
        self.trend = None
        if self.standardise and len(x) >= TREND * size:
            self.trend = _Trend(coordinates.space(self.positions), self.positions, self.y, self.error)
            self.y = self.y - self.trend(self.positions)
        self.coordinates = adapted(coordinates, self.positions, self.y, self.error, self.standardise)
        self.frame = self.coordinates.space(self.positions)
        self.points = self.frame(self.positions)
        grouped(model, self.y)
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        self.ends = low - BEYOND * (high - low), high + BEYOND * (high - low)
        neighbours = Neighbours(self.points, size)
        self.neighbours: Neighbours | Remembered = neighbours
        self.points = self.points[neighbours.counted]
        self._box = Box(*self.ends, self.points)
        self._whole: Whole = partial(small, neighbours, max(size // SHARE, 1))

    def __call__(self, x: np.ndarray) -> Prediction:
        x = checked_targets(x, self.columns)
        positions = self.coordinates.positions(x)
        found = np.empty((3, len(x), self.y.shape[1]))
        with Progress("Predicting", len(x), shown=self.progress) as progress:
            for block in self._blocks(positions):
                found[:, block] = self._moments(positions[block], progress)
        found[0] += self._trend_at(positions)
        return restore(found, self.standardiser).with_noise(self.noise, x)

    def left(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """What cells would have to answer for values `y [n dy]` at `x`: in the unit of `self.y`, less the trend."""
        return self.standardiser(y) - self._trend_at(self.coordinates.positions(x))

    def _trend_at(self, positions):
        return 0.0 if self.trend is None else self.trend(positions)

    def _blocks(self, positions) -> Iterator[np.ndarray]:
        """Indices of targets that are answered together: neighbours, since every block conditions its cells anew."""
        order = np.arange(len(positions))
        if len(order) > BLOCK:
            points = self._clipped(positions)
            order = np.argsort(points[:, np.argmax(np.ptp(points, axis=0))], kind="stable")
        return (order[start : start + BLOCK] for start in range(0, len(order), BLOCK))

    def _moments(self, positions, progress) -> np.ndarray:
        """Mean and variances, `[3 n dy]`, in the unit of `self.y`."""
        points, cells = self._clipped(positions), self.cells(positions)
        reached = sum(len(cell.targets) for cell in cells)
        blend = Blend(len(positions), self.y.shape[1])
        for batch, answers in self._answers(cells, positions):
            shares = weight(batch.middle, batch.half, points[batch.targets])
            blend.add(batch.targets, shares, answers, batch.present)
            progress.advance(len(positions) * np.count_nonzero(batch.present) / reached)
        return blend.moments()

    def cells(self, positions: np.ndarray) -> list[Cell]:
        """The cells that reach targets at `positions [n d]`."""
        points = self._clipped(positions)
        return list(bisect(self._box, points, np.arange(len(points)), self._whole))

    def _cells_around(self, positions) -> list[Cell]:
        """The cells that reach the box around `positions [n d]`, in the time that these cells take."""
        points = self._clipped(positions)
        if not len(points):
            return []
        low, high = points.min(axis=0), points.max(axis=0)
        return list(bisect(self._box, (low + high)[None] / 2, np.arange(1), self._whole, around=(high - low) / 2))

    def part(self, x: np.ndarray) -> "Tiled":
        """The same answers at places among `x`, and at no others, from what those need: the cells that reach the box
        around them, and the observations that these see. Small to send; smaller without the model, `part.of(None)`."""
        cells = self._cells_around(self.coordinates.positions(x))
        middles = np.array([cell.middle for cell in cells]).reshape(-1, self.points.shape[1])
        used, seen = np.unique(self.neighbours(middles), return_inverse=True)
        part = copy.copy(self)
        part.points, part.positions, part.y = middles, self.positions[used], self.y[used]
        part.error = None if self.error is None else self.error[used]
        part.neighbours = Remembered(middles, seen.astype(np.min_scalar_type(len(used))))
        part.progress, part._whole, part._box = False, known, Box(*self.ends, middles)
        part.noise = self.noise.part(x) if isinstance(self.noise, Scatter) else self.noise
        return part

    def of(self, model: Any) -> "Tiled":
        """The same with another model."""
        tiled = copy.copy(self)
        tiled.model = model
        return tiled

    def __getstate__(self):
        return {**self.__dict__, "_box": Box(*self.ends, self.points)}  # cheap to halve again, large to send

    def _clipped(self, positions):
        """In the tiles' frame; targets far beyond all observations belong to the outermost cells."""
        return np.clip(self.frame(positions), *self.ends)

    def _answers(self, cells, positions) -> Iterator[tuple[Batch, Prediction]]:
        """Batches of cells with their predictions `[cells width dy]`. Each cell is conditioned once, with others of
        about as many targets. Batches are small programs, which do not fill several cores: some run side by side."""
        mesh = local_mesh()  # here, since threads do not hear of `jax.default_device`
        model, size = everywhere(self.model, mesh), mesh.size * _batch_size(self.size, mesh)
        cells = sorted(_evened(cells, size, self.size), key=lambda cell: -len(cell.targets))
        parts = [cells[start : start + size] for start in range(0, len(cells), size)]
        width = _best_width([len(part[0].targets) for part in parts])

        def decode(states, xt):
            return _decode_all(model, states, xt, mesh)

        def answer(part):
            batch = Batch.of(part, size, width)
            frame, contexts = self.around(batch.middle)
            states = [_condition_all(model, context.seen, mesh) for context in contexts]
            return [
                self._answer(decode, batch.columns(start, width), frame, positions, states, contexts)
                for start in range(0, batch.targets.shape[1], width)
            ]

        for answers in first_compiles(answer, parts):
            yield from answers

    def _answer(self, decode, batch, frame, positions, states, contexts):
        xt = to_model(self.model, frame(positions[batch.targets]))
        found = (np.moveaxis(np.asarray(decode(state, xt)), 1, 0) for state in states)
        restored = (restore(a, context.standardiser) for a, context in zip(found, contexts, strict=True))
        return batch, side_by_side(restored)

    def around(self, points: np.ndarray) -> tuple[AbstractFrame, list[Context]]:
        """The observations seen from points `[*cells d]` of `self.frame`, those of each point normalised by
        themselves, and the frames they are in."""
        seen = self.neighbours(points)
        frame = self.coordinates.frame(self.positions[seen], self.frame, self.frame.positions(points))
        xc = to_model(self.model, frame(self.positions[seen]))
        error = None if self.error is None else self.error[seen]
        return frame, contexts(self.model, xc, self.y[seen], error, self.standardise)


class _Trend:
    """The trend of standardised values; of a column that it meets but for rounding errors, which are no scale: zero."""

    def __init__(self, frame: Frame, positions: np.ndarray, y: np.ndarray, error: np.ndarray | None):
        points = frame(positions)
        self.frame, self.trend = frame, Trend(points, y, error)
        self.trend.weights[:, (y - self.trend(points)).std(axis=0) < 1e-12] = 0.0

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        return self.trend(self.frame(positions))


def _evened(cells, together, seen):
    """Cells with many targets in pieces, if it takes less work to answer `together` at a time, each with the columns of
    the largest of them and `seen` observations, which every piece is conditioned on anew."""
    counts = np.array([len(cell.targets) for cell in cells])

    def work(limit):
        sizes = np.sort(_pieces(counts, limit))[::-1]
        return np.sum(sizes[::together] + seen) * together

    limit = min((np.inf, *reversed(PIECES)), key=work)  # of equals the fewest pieces
    for cell, count in zip(cells, counts, strict=True):
        if count <= limit:
            yield cell
        else:
            ends = np.cumsum(_pieces(np.array([count]), limit))
            yield from (cell._replace(targets=part) for part in np.split(cell.targets, ends[:-1]))


def _pieces(counts, limit):
    """Sizes of as few and as equal pieces of each count as may be, none above the limit."""
    number = np.maximum(np.ceil(counts / limit), 1).astype(int)
    piece = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
    counts, number = np.repeat(counts, number), np.repeat(number, number)
    return (piece + 1) * counts // number - piece * counts // number


def _best_width(counts):
    """The number of targets per compiled call that costs least: padding against the number of calls."""
    calls = {width: sum(-(-count // width) for count in counts) for width in WIDTHS}
    return min(WIDTHS, key=lambda width: calls[width] * (width + CALL))


@eqx.filter_jit
def _condition_all(model, contexts, mesh):
    return split(lambda model, contexts: jax.vmap(partial(condition_on, model))(*contexts), mesh)(model, contexts)


@eqx.filter_jit
def _decode_all(model, states, xt, mesh) -> Array:
    def decode(model, cells):
        return jax.vmap(lambda state, xt: moments(model.predict(state, xt)))(*cells)

    return split(decode, mesh)(model, (states, xt))


def _batch_size(size, mesh):
    """Cells of `size` observations per compiled call and device."""
    return max(1, TOKENS * (1 if mesh.devices.flat[0].platform == "cpu" else ACCELERATOR) // size)
