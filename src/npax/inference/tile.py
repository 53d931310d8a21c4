"""Prediction from large contexts: overlapping cells, each with its nearest observations, blended without seams."""

from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array
from scipy.spatial import KDTree

from ..models import AbstractNeuralProcess
from .normalise import AbstractCoordinates, Frame, Planar, Standardiser
from .predict import Context, Prediction, moments, outputs, padded, restore, side_by_side, to_model
from .progress import Progress

OVERLAP = 0.25
"""How far a cell reaches into its neighbours, as a share of its own width, on each side."""
SHARE = 8
"""A cell holds this share of the observations that it sees: its targets lie amid what answers them."""
WIDTHS = (16, 64, 256)
"""Targets of a cell per compiled call."""
CALL = 32
"""What a call costs beside its targets, in targets."""
BLOCK = 2**18
"""Targets whose cells are listed at a time."""


class Cell(NamedTuple):
    """A box and the targets (indices) that lie in its reach."""

    middle: np.ndarray
    half: np.ndarray
    targets: np.ndarray


class Tiled:
    r"""A model's answer to a large context: `tiled(x) -> Prediction`, at a cost per target that does not grow with it.

    Space is bisected along its longest side until a cell holds few observations. A cell answers the targets in it
    and in a margin around it, from the `size` observations nearest to its middle, in coordinates and units of its
    own; a translation-equivariant model loses little by that (TE, Theorem 2.2). Where cells overlap, their answers
    are mixed with weights that fade smoothly to zero at the end of a cell's reach and sum to one, so there are no
    seams; the variance is that of the mixture. The cells depend on the context alone: a target's prediction does not
    depend on which other targets are asked for, in this call or in another.

    A context of at most `size` points is seen whole by every cell, and the answer equals that of `Exact`.

    **Arguments:** those of `Exact`, and `size`: observations per cell (default 128, within what models are trained
    on); `progress`: shows a progress bar.

    **Cost:** each cell that has targets costs O(size²) once, each target O(size) for each cell that reaches it (2 to
    3 in the plane). Memory: that of one batch of cells, and O(nc + nt) floats on the host.

    **Pitfalls:** features much longer than a cell's surroundings are seen only by their slopes.
    """

    def __init__(
        self,
        model: AbstractNeuralProcess,
        x: np.ndarray,
        y: np.ndarray,
        coordinates: AbstractCoordinates = Planar(),  # noqa: B008  (immutable)
        *,
        size: int = 128,
        progress: bool = False,
    ):
        if size < 1:
            raise ValueError(f"`size` must be at least 1 observation per cell, got {size}.")
        self.model, self.coordinates, self.size, self.progress = model, coordinates, size, progress
        self.positions = coordinates.positions(x)
        self.frame = coordinates.frame(self.positions)
        to_model(model, self.positions[:0])
        self.standardiser = Standardiser.of(y)
        self.y = self.standardiser(y)
        outputs(model, self.y[:0])
        self.points = self.frame(self.positions)
        self.tree = KDTree(self.points)

    def __call__(self, x: np.ndarray) -> Prediction:
        positions = self.coordinates.positions(x)
        sums = np.zeros((4, len(x), self.y.shape[1]))
        with Progress("Predicting", len(x), shown=self.progress) as progress:
            for start in range(0, len(x), BLOCK):
                block = slice(start, start + BLOCK)
                self._add(positions[block], sums[:, block], progress)
        return restore(_mixture(sums), self.standardiser)

    def _add(self, positions, sums, progress):
        """Adds the cells' weighted moments to `sums`: of one, the mean, the two second moments."""
        if not len(positions):
            return
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        points = np.clip(self.frame(positions), low, high)
        largest = max(self.size // SHARE, 1)
        cells = list(_bisect(low, high, self.points, points, np.arange(len(points)), largest))
        reached = sum(len(cell.targets) for cell in cells)
        for cell, (mean, variance, function_variance) in self._answers(cells, positions):
            weight = _weight(cell, points[cell.targets])[:, None]
            second = np.square(mean)
            sums[:, cell.targets] += weight * np.stack(
                [np.ones_like(mean), mean, variance + second, function_variance + second]
            )
            progress.advance(len(positions) * len(cell.targets) / reached)

    def _answers(self, cells, positions) -> Iterator[tuple[Cell, Prediction]]:
        """Cells, part by part, with their predictions. Each cell is conditioned once, in a batch with cells of about
        as many targets; the device works while the host prepares what comes next."""
        cells = sorted(cells, key=lambda cell: -len(cell.targets))
        side = _batch_size()
        batches = [cells[start : start + side] for start in range(0, len(cells), side)]
        width = _best_width([len(batch[0].targets) for batch in batches])
        waiting = None
        for batch in batches:
            frames, contexts = zip(*(self.around(cell.middle) for cell in batch), strict=True)
            columns = [_stacked(column, side) for column in zip(*contexts, strict=True)]
            states = [_condition_all(self.model, column) for column in columns]
            for start in range(0, len(batch[0].targets), width):
                parts = [cell._replace(targets=cell.targets[start : start + width]) for cell in batch]
                xt = np.zeros((side, width, self.model.dx), np.float32)
                for i, (part, frame) in enumerate(zip(parts, frames, strict=True)):
                    xt[i, : len(part.targets)] = to_model(self.model, frame(positions[part.targets]))
                answers = [_decode_all(self.model, state, xt) for state in states]
                if waiting is not None:
                    yield from _restored(*waiting)
                waiting = parts, contexts, answers
        if waiting is not None:
            yield from _restored(*waiting)

    def around(self, point: np.ndarray) -> tuple[Frame, list[Context]]:
        """The observations nearest to a point of `self.frame`, normalised by themselves, and the frame they are in."""
        count = min(self.size, len(self.points))
        _, nearest = self.tree.query(point, count)
        nearest = np.sort(np.atleast_1d(nearest))
        frame = self.coordinates.frame(self.positions[nearest])
        xc = to_model(self.model, frame(self.positions[nearest]))
        return frame, [Context(s, *padded(xc, values)) for s, values in outputs(self.model, self.y[nearest])]


def _bisect(low, high, context, targets, indices, largest, depth=0) -> Iterator[Cell]:
    """The cells that have targets in reach: halves along the longest side until `largest` context points are left."""
    middle, half = (low + high) / 2, (high - low) / 2
    reach = np.all(np.abs(targets - middle) <= half * (1 + 2 * OVERLAP), axis=1)
    if not reach.all():
        targets, indices = targets[reach], indices[reach]
    if not len(targets):
        return
    if len(context) <= largest or depth == 100 or not np.ptp(context, axis=0).any():  # coinciding points end it too
        yield Cell(middle, half, indices)
        return
    axis = int(np.argmax(half))
    left = context[:, axis] < middle[axis]
    until, since = high.copy(), low.copy()
    until[axis] = since[axis] = middle[axis]
    yield from _bisect(low, until, context[left], targets, indices, largest, depth + 1)
    yield from _bisect(since, high, context[~left], targets, indices, largest, depth + 1)


def _weight(cell: Cell, points: np.ndarray) -> np.ndarray:
    """One inside, falling smoothly to zero across each face, one half on it."""
    half = np.where(cell.half > 0, cell.half, 1.0)
    inside = (1 + 2 * OVERLAP - np.abs(points - cell.middle) / half) / (4 * OVERLAP)
    inside = np.clip(inside, 0.0, 1.0)
    return np.maximum(np.prod(inside**2 * (3 - 2 * inside), axis=1), 1e-12)


def _mixture(sums: np.ndarray) -> np.ndarray:
    """Mean and variances of mixtures from their weighted sums `[4 n dy]`."""
    weight, mean, *seconds = sums
    weight = np.where(weight > 0, weight, 1.0)
    mean = mean / weight
    return np.stack([mean, *(np.maximum(second / weight - np.square(mean), 0.0) for second in seconds)])


def _restored(cells, contexts, answers):
    """Cells with their predictions, all columns side by side."""
    answers = [np.asarray(answer) for answer in answers]
    for i, cell in enumerate(cells):
        found = ((answer[i, :, : len(cell.targets)], c) for answer, c in zip(answers, contexts[i], strict=True))
        yield cell, side_by_side(restore(values, context.standardiser) for values, context in found)


def _stacked(contexts, side):
    """One batch of contexts; what is missing to `side` is filled up with the first."""
    contexts = [context[1:] for context in contexts]
    contexts += contexts[:1] * (side - len(contexts))
    return tuple(np.stack(parts) for parts in zip(*contexts, strict=True))


def _best_width(counts):
    """The number of targets per compiled call that costs least: padding against the number of calls."""
    calls = {width: sum(-(-count // width) for count in counts) for width in WIDTHS}
    return min(WIDTHS, key=lambda width: calls[width] * (width + CALL))


@eqx.filter_jit
def _condition_all(model, contexts):
    return jax.vmap(model.condition)(*contexts)


@eqx.filter_jit
def _decode_all(model, states, xt) -> Array:
    return jax.vmap(lambda state, xt: moments(model.likelihood(model.decode(state, xt))))(states, xt)


def _batch_size():
    return 4 if jax.default_backend() == "cpu" else 64
