"""Space in cells, for `Tiled`: boxes bisected until each holds few observations, which overlap a little.

The tree depends on the context alone, and is made as far as somebody asks for it.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .neighbours import Neighbours

OVERLAP = 0.15
"""How far a cell reaches into its neighbours, as a share of its own width, on each side."""
SAME = 1 - 1e-9
"""Of sides longer than this share of the longest the first is halved: rounding errors do not decide."""
DEEPEST = 100
"""How often a box is halved at most."""


class Cell(NamedTuple):
    """A box and the targets (indices) that lie in its reach."""

    middle: np.ndarray
    half: np.ndarray
    targets: np.ndarray


class Box:
    """A box of the bisection and the context points in it, halved along its longest side when first asked for."""

    def __init__(self, low: np.ndarray, high: np.ndarray, context: np.ndarray):
        self.low, self.high = low, high
        self.context: np.ndarray | None = context
        self.middle, self.half = (low + high) / 2, (high - low) / 2
        self.halves: tuple[Box, Box] | None = None
        self.is_cell: bool | None = None
        """None until somebody asks."""

    def halved(self, context: np.ndarray | None) -> "tuple[Box, Box]":
        """`context`: that of the box, which forgets it (the halves have it), lest every level holds a copy."""
        if self.halves is None:
            assert context is not None  # only a box that was halved has forgotten it
            axis = int(np.argmax(self.half > SAME * self.half.max()))
            left = context[:, axis] < self.middle[axis]
            until, since = self.high.copy(), self.low.copy()
            until[axis] = since[axis] = self.middle[axis]
            self.halves = Box(self.low, until, context[left]), Box(since, self.high, context[~left])
            self.context = None
        return self.halves


Whole = Callable[[Box, np.ndarray], bool]
"""Whether a box with these context points is a cell."""


def bisect(
    box: Box, targets: np.ndarray, indices: np.ndarray, whole: Whole, *, around: np.ndarray | float = 0.0
) -> Iterator[Cell]:
    """The cells that have some of `targets [n d]` in reach, or of the boxes that extend so far `around` them: boxes are
    halved until they are `whole`."""
    boxes = [(box, targets, indices, 0)]
    while boxes:
        box, targets, indices, depth = boxes.pop()
        reach = np.all(np.abs(targets - box.middle) <= box.half * (1 + 2 * OVERLAP) + around, axis=1)
        if not reach.all():
            targets, indices = targets[reach], indices[reach]
        context = box.context  # None where it was halved before, perhaps by another thread, which may be doing so now
        if not len(targets) or (whole is known and context is not None and not len(context)):
            continue  # a part does not have the cells that reach none of its targets
        if box.is_cell is None and context is not None:
            box.is_cell = depth == DEEPEST or whole(box, context)
        if box.is_cell:
            yield Cell(box.middle, box.half, indices)
        else:
            boxes += [(half, targets, indices, depth + 1) for half in reversed(box.halved(context))]


def small(neighbours: Neighbours, largest: int, box: Box, context: np.ndarray) -> bool:
    """A cell holds at most `largest` context points, or coinciding ones, and does not reach beyond the `largest`-th
    nearest of them all: in a gap and beyond the data it is no larger than it is far from them. Nor do its corners reach
    beyond the nearest ones that it sees: beside a line of observations, a track, it would answer for parts of the line
    of which it sees nothing."""
    if len(context) > largest:
        return not bool(np.ptp(context, axis=0).any())
    corner = float(np.linalg.norm(box.half * (1 + 2 * OVERLAP)))
    far_off = box.half.max() <= neighbours.distance(box.middle, largest)
    return bool(far_off and corner <= neighbours.distance(box.middle, neighbours.near))


def known(box: Box, context: np.ndarray) -> bool:
    """A cell is one of those whose middles the box holds."""
    return len(context) == 1 and np.array_equal(context[0], box.middle)


def weight(middle: np.ndarray, half: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Of cells `[*cells d]` at points `[*cells n d]`: one inside, falling smoothly to zero across each face, one half
    on it. Shape `[*cells n]`."""
    middle, half = middle[..., None, :], half[..., None, :]
    inside = (1 + 2 * OVERLAP - np.abs(points - middle) / np.where(half > 0, half, 1.0)) / (4 * OVERLAP)
    inside = np.clip(inside, 0.0, 1.0)
    return np.maximum(np.prod(inside**2 * (3 - 2 * inside), axis=-1), 1e-12)
