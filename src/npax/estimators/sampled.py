"""Covariates of observations, read off the grid that has them."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .grid import xarray

if TYPE_CHECKING:
    import xarray as xr


def sampled(
    table: Any,
    names: Sequence[Hashable],
    axes: Mapping[Hashable, xr.Variable],
    x: Sequence[Hashable],
    *,
    around: Hashable | None,
) -> Any:
    """A table of observations with the covariates `names` of a grid, read off at the coordinates `x`.

    Linear between places of the grid; where one of these has no value, or up to half a cell beyond the outermost,
    that of the nearest; NaN where it has none, and farther outside. `axes`: coordinates and covariates of the grid, by
    name, in numbers such as the table's; `around`: a coordinate that comes round again after 360 degrees.

    **Raises** `ValueError` where a covariate varies along a dimension that is not the axis of one coordinate.
    """
    dims = [dim for name in x for dim in axes[name].dims]
    of_dims = {axes[name].dims[0]: name for name in x if axes[name].ndim == 1 and dims.count(axes[name].dims[0]) == 1}
    table = table.copy(deep=False)
    for name in names:
        other = [dim for dim in axes[name].dims if dim not in of_dims]
        if other:
            raise ValueError(
                f"`observations` has no {name!r}, and it cannot be read off `target`, where it varies along "
                f"{other[0]!r}, which is the axis of none of the coordinates {[*x]}: add it to `observations`."
            )
        along = [of_dims[dim] for dim in axes[name].dims]
        table[name] = _read(axes[name], [_Between(axes[n].to_numpy(), table[n], n == around) for n in along])
    return table


def refuse_unread(read: np.ndarray, names: Sequence[Hashable]) -> None:
    """**Raises** `ValueError` where covariates `[n p]` that were `read` off a grid are missing."""
    lost = ~np.isfinite(read)
    if lost.any():
        which = ", ".join(repr(name) for name, column in zip(names, lost.T, strict=True) if column.any())
        raise ValueError(
            f"{lost.any(axis=1).sum():,} of {len(lost):,} rows of `observations` lie outside `target`, or where it has "
            f"no value of {which}, which is read off there: leave these rows out, or add the column to `observations`."
        )


class _Between:
    """Where places `[n]` lie on an axis: between the numbers `lower` and `upper` of its places, at the `share` of the
    way; `there`: those no more than half a cell beyond its ends, where the share is that of the end."""

    def __init__(self, axis, places, around):
        at, order = np.asarray(places, np.float64), np.argsort(axis)[: np.isfinite(axis).sum()]
        axis = axis[order]
        first, last = (0.0, 0.0) if len(axis) < 2 else np.diff(axis)[[0, -1]] / 2
        if around:
            at = axis[0] - first + (at - axis[0] + first) % 360.0
        self.there = (at >= axis[0] - first) & (at <= axis[-1] + last)
        at = np.where(self.there, np.clip(at, axis[0], axis[-1]), axis[0])
        below = np.clip(np.searchsorted(axis, at, "right") - 1, 0, max(len(axis) - 2, 0))
        above = np.minimum(below + 1, len(axis) - 1)
        apart = axis[above] - axis[below]
        self.share = (at - axis[below]) / np.where(apart > 0, apart, 1.0)
        self.lower, self.upper = order[below], order[above]


def _read(values, along):
    """`values`, a variable, at places whose position along each of its dimensions is known, `[n]`."""
    variable = xarray().Variable

    def of(indices):
        at = {dim: variable("place", index) for dim, index in zip(values.dims, indices, strict=True)}
        return np.asarray(values.isel(at), np.float64)

    linear = 0.0
    for ends in itertools.product((False, True), repeat=len(along)):
        weight = np.prod([a.share if end else 1 - a.share for a, end in zip(along, ends, strict=True)], axis=0)
        part = of([a.upper if end else a.lower for a, end in zip(along, ends, strict=True)])
        linear = linear + np.where(weight > 0, weight * part, 0.0)
    nearest = of([np.where(a.share > 0.5, a.upper, a.lower) for a in along])
    there = np.all([a.there for a in along], axis=0)
    return np.where(there, np.where(np.isfinite(linear), linear, nearest), np.nan)
