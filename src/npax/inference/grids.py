"""Models that live on a grid, on one that is large enough."""

import dataclasses
import math
from typing import TypeVar

import jax
import numpy as np

from ..blocks import Grid

M = TypeVar("M")


def wide_enough(model: M, x: np.ndarray) -> M:
    """The model with the same weights on a grid that covers the places `x [*n dx]`, if it lives on one (`ConvCNP`).

    The extent is doubled as often as need be: few extents, few compiled programs.
    """
    x = np.reshape(x, (-1, x.shape[-1]))
    span = float(np.ptp(x, axis=0).max()) if len(x) else 0.0

    def widened(part):
        if not isinstance(part, Grid) or span <= part.extent:
            return part
        return dataclasses.replace(part, extent=part.extent * 2.0 ** math.ceil(math.log2(span / part.extent)))

    return jax.tree.map(widened, model, is_leaf=lambda part: isinstance(part, Grid))
