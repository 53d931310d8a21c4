"""Covariates of observations, read off the grid that has them."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..warn import warn
from .grid import xarray
from .sklearn import DroppedRows
from .table import is_table, named, with_levels

if TYPE_CHECKING:
    import xarray as xr

CLOSED = 1.5
"""How many of its largest steps may lie between the last and the first place of an axis that goes round the globe."""


def with_itself(target: Any, covariates: Sequence[Hashable]) -> Any:
    """A target, of which a covariate may be the DataArray itself."""
    array = hasattr(target, "to_dataset") and hasattr(target, "name") and not hasattr(target, "children")
    return target.to_dataset() if array and target.name in covariates and target.name not in target.coords else target


def only_of_the_target(covariates: Sequence[Hashable], observations: Any, target: Any) -> list[Hashable]:
    """Which of the covariates a gridded target has, and observations have not. **Raises** `ValueError` for one that
    nobody has, or only a table."""
    seen = named(with_levels(observations, covariates) if is_table(observations) else observations)
    others, gridded = [name for name in covariates if name not in seen], not is_table(target)
    lost = [repr(name) for name in others if not gridded or name not in named(target)]
    if lost and len(seen):
        why = "nor has `target`" if gridded else "and reads it off `target` only where that is a grid"
        raise ValueError(
            f"`observations` has no {', '.join(lost)}, {why}; it has {', '.join(map(repr, seen))}"
            + (f", and `target` {', '.join(map(repr, named(target)))}." if gridded else ".")
        )
    return others


class Read(NamedTuple):
    """What was read off at places: `values [n p]`, NaN where there is none; which are `outside [n]` the grid."""

    values: np.ndarray
    outside: np.ndarray


def sampled(
    places: Mapping[Hashable, np.ndarray],
    names: Sequence[Hashable],
    axes: Mapping[Hashable, xr.Variable],
    *,
    around: Hashable | None = None,
) -> Read:
    """The variables `names` of a grid at `places`, coordinates `[n]` by name: linear between places of the grid, where
    true or false that of the nearest; beside gaps that of the nearest that has a value, and up to half a cell beyond
    the outermost places the value there.

    `axes`: coordinates and variables of the grid, by name, in numbers such as those of `places`; `around`: a coordinate
    that comes round again after 360 degrees.

    **Warns** where a coordinate is one number, of which no variable can be told to be constant along it, and places
    have others. **Raises** `ValueError` where a variable varies along a dimension that is not the axis of one
    coordinate.
    """
    dims = [dim for name in places for dim in axes[name].dims]
    of_dims = {axes[n].dims[0]: n for n in places if axes[n].ndim == 1 and dims.count(axes[n].dims[0]) == 1}
    positions = {dim: _Position(axes[n].to_numpy(), places[n], n == around) for dim, n in of_dims.items()}
    columns, n = [], len(next(iter(places.values())))
    outside = np.zeros(n, bool)
    for name in names:
        own = axes[name].squeeze([dim for dim, size in axes[name].sizes.items() if size == 1 and dim not in of_dims])
        other = [dim for dim in own.dims if dim not in of_dims]
        if other:
            raise ValueError(
                f"`observations` has no {name!r}, and it cannot be read off `target`, where it varies along "
                f"{other[0]!r}, which is the axis of none of the coordinates {[*places]}: add it to `observations`, or "
                "pass a grid with these axes (`target.unstack()`, if it is stacked)."
            )
        along = [positions[dim] for dim in own.dims]
        outside |= ~np.all([position.there for position in along], axis=0)
        columns.append(np.broadcast_to(_read(own, along), n))
    for name in places:
        if axes[name].ndim == 0 and not np.isin(places[name][np.isfinite(places[name])], axes[name].to_numpy()).all():
            warn(
                f"{', '.join(map(repr, names))} is read off `target`, which has one {name!r} only, for observations at "
                f"others, too: that is right where it does not vary along it. Else select it as an axis, in a list."
            )
    return Read(np.where(outside[:, None], np.nan, np.stack(columns, axis=1)), outside)


def without_unread(read: Read, names: Sequence[Hashable], index: Any, *, drop: bool) -> np.ndarray:
    """Which rows of observations have all covariates `names` that were read off; `index`: what rows are called. The
    others are told, or, unless to `drop` or if they are all, **raise** `ValueError`."""
    there = np.asarray(np.isfinite(read.values).all(axis=1))
    if there.all():
        return there
    outside, inside = int(np.sum(read.outside)), read.values[~read.outside]
    where = [f"{outside:,} lie outside `target`"] if outside else []
    if np.isnan(inside).any():
        which = ", ".join(repr(name) for name, column in zip(names, inside.T, strict=True) if np.isnan(column).any())
        where += [f"{np.sum(~there) - outside:,} where it has no value of {which}"]
    first = index[~there].tolist()[0]
    told = f"Of {len(there):,} rows of `observations` {' and '.join(where)}, the first of them {first!r}"
    if not drop or not there.any():
        raise ValueError(f"{told}: leave these rows out, or add {', '.join(map(repr, names))} to `observations`.")
    warn(f"{told}; they are left out.", DroppedRows)
    return there


class _Position:
    """Where places `[n]` lie on an axis: between those of the indices `lower` and `upper`, at the `share` of the way;
    `there`: which lie no more than half a cell beyond its ends, where the share is that of the end."""

    def __init__(self, axis: np.ndarray, places: np.ndarray, around: bool):
        known = np.flatnonzero(np.isfinite(axis))
        at = np.where(np.isfinite(places), places, np.nan)
        axis = _onwards(axis[known]) if around else axis[known]
        order = np.argsort(axis, kind="stable")
        axis, order = np.asarray(axis[order], np.float64), known[order]
        if around and len(axis):
            at = axis[0] + (at - axis[0]) % 360.0
            if len(axis) > 1 and axis[0] + 360.0 - axis[-1] <= CLOSED * np.diff(axis).max():
                axis, order = np.append(axis, axis[0] + 360.0), np.append(order, order[0])
        steps = np.diff(axis) if len(axis) > 1 else np.zeros(1)
        first, last = (axis[0], axis[-1]) if len(axis) else (np.nan, np.nan)
        if around:  # what lies less than half a cell west of the first
            at = np.where(at - 360.0 >= first - steps[0] / 2, np.where(at > last + steps[-1] / 2, at - 360.0, at), at)
        self.there = (at >= first - steps[0] / 2) & (at <= last + steps[-1] / 2)
        at = np.where(self.there, np.clip(at, first, last), first)
        below = np.clip(np.searchsorted(axis, at, "right") - 1, 0, max(len(axis) - 2, 0))
        above = np.minimum(below + 1, max(len(axis) - 1, 0))
        apart = axis[above] - axis[below]
        self.share = (at - axis[below]) / np.where(apart > 0, apart, 1.0)
        self.lower, self.upper = order[below], order[above]


def _onwards(lon):
    """Longitudes that go on from the end of the largest gap between them."""
    turned = np.sort(lon % 360.0)
    if not len(turned):
        return lon
    gaps = np.append(turned[1:], turned[0] + 360.0) - turned
    start = turned[(int(np.argmax(gaps)) + 1) % len(turned)]
    return start + (lon - start) % 360.0


def _read(variable, along):
    """A variable at places whose position along each of its dimensions is known, `[n]`."""
    corners = [*itertools.product((False, True), repeat=len(along))]
    ends = [[p.upper if end else p.lower for p, end in zip(along, corner, strict=True)] for corner in corners]
    shares = [[p.share if end else 1 - p.share for p, end in zip(along, corner, strict=True)] for corner in corners]
    weights = np.stack([np.prod(each, axis=0) for each in shares])
    at = dict(zip(variable.dims, map(np.concatenate, zip(*ends, strict=True)), strict=True))  # all in one reading
    found = variable.isel({dim: xarray().Variable("place", index) for dim, index in at.items()})
    values = np.asarray(found, np.float64).reshape(len(corners), -1)
    counts = np.where(np.isfinite(values) & (weights > 0), weights, 0.0)
    nearest = np.where(
        counts.max(axis=0) > 0, np.take_along_axis(values, counts.argmax(axis=0)[None], axis=0)[0], np.nan
    )
    if variable.dtype.kind == "b":
        return nearest
    linear = np.sum(counts * np.where(counts > 0, values, 0.0), axis=0)
    return np.where(counts.sum(axis=0) > 1 - 1e-9, linear, nearest)
