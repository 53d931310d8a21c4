"""Places on a grid, whole or block by block."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arrow import dates_of_numpy
from .dates import in_days, reader_of_dates, refuse_dates
from .missing import MARKS, refuse_undecoded

if TYPE_CHECKING:
    import xarray as xr

STORAGE = (*MARKS, "scale_factor", "add_offset", "_Unsigned", "valid_range", "valid_min", "valid_max", "actual_range")
"""Attributes that say how numbers are stored, and between which numbers, as stored, they lie: predictions may not."""
MAPPING = "grid_mapping"
"""The attribute that names another variable, which describes the projection."""
Region = dict[Hashable, slice]
OWN = "npax_"
"""How the attributes begin by which a stored prediction tells how far it is: no matter of what is predicted there."""


OF_CELLS = ("bounds", "climatology")
"""Attributes of the CF conventions that name a variable with the ends of cells."""


def _without_dangling(frame):
    """Without attributes that name ends of cells, or a projection, which are not kept."""
    frame = frame.copy()
    for variable in frame.variables.values():
        for word in (*OF_CELLS, MAPPING):
            if word in variable.attrs and str(variable.attrs[word]).split(":")[0].strip() not in frame.variables:
                del variable.attrs[word]
    return frame


def _is_mapping(variable):
    """Whether it describes a projection, as the CF conventions and rioxarray have it."""
    return variable.ndim == 0 and any(
        word in variable.attrs for word in ("grid_mapping_name", "crs_wkt", "spatial_ref")
    )


class Grid(NamedTuple):
    """The coordinates `x` of a gridded target, the dimensions that they span together, and what the prediction keeps.

    `frame`: coordinates and attributes of the target, no data; `axes`: a variable for each coordinate, in memory or
    chunked; `sizes`: of the dimensions, in the order of the target; `chunks`: theirs, none where the target has none.
    """

    frame: xr.Dataset
    axes: tuple[xr.Variable, ...]
    sizes: Mapping[Hashable, int]
    chunks: Mapping[Hashable, tuple[int, ...]]

    @property
    def mapping(self) -> dict[str, str]:
        """The attribute that names the projection, of a target that describes one."""
        names = [str(name) for name, coordinate in self.frame.coords.items() if _is_mapping(coordinate)]
        return {MAPPING: names[0]} if len(names) == 1 else {}

    @classmethod
    def of(cls, target: Any, x: Sequence[Hashable], starts: Sequence[Any] | None = None) -> Grid:
        """`starts`: for each of `x` what its dates or durations are counted from, in days, or None. **Raises**
        `TypeError` for what is not a grid, `ValueError` where a coordinate is missing or holds dates otherwise."""
        xr = xarray()
        if isinstance(target, xr.DataArray):
            dims, chunks, frame = target.dims, target.chunksizes, target.coords.to_dataset()
        elif isinstance(target, Mapping) and not isinstance(target, xr.DataTree):  # a Dataset, or coordinates
            dataset = target if isinstance(target, xr.Dataset) else xr.Dataset(coords=target)
            require(dataset.variables, x, "target")
            dims, chunks = tuple(dataset.sizes), dataset.chunksizes
            others = [name for name in dataset.data_vars if name not in x]
            kept = [name for name in others if _is_mapping(dataset[name])]
            frame = dataset.drop_vars([name for name in others if name not in kept]).set_coords(kept)
            frame.attrs = {k: v for k, v in dataset.attrs.items() if not str(k).startswith(OWN)}
        else:
            remedy = (
                f" Pass `{{{x[0]!r}: values}}`." if len(x) == 1 else " Pass a table of points, or coordinates by name."
            )
            remedy = " Pass `target.to_pandas()`." if hasattr(target, "to_pandas") else remedy
            raise TypeError(
                "`target` must be a pandas DataFrame, an xarray Dataset or DataArray, or a mapping from coordinate "
                f"names to values; got {type(target).__name__}.{remedy}"
            )
        require(frame.variables, x, "target")
        frame = _without_dangling(frame)
        axes = tuple(_of_numpy(frame[name].variable.to_base_variable()) for name in x)  # an index has no chunks
        if starts is not None:
            axes = tuple(axis.copy(data=in_days(axis.data, s)) for axis, s in zip(axes, starts, strict=True))
        in_memory = (axis[:0] if axis.chunks and axis.ndim else axis for axis in axes)
        refuse_dates(zip(x, in_memory, strict=True), "`target`")
        for name, axis in zip(x, axes, strict=True):
            if axis.dtype.kind in "STUc":
                reader = reader_of_dates(axis[:0] if axis.chunks else axis)
                remedy = f" Read dates by {reader}." if reader else ""
                raise ValueError(f"The coordinate {name!r} of `target` must hold numbers, got {axis.dtype}.{remedy}")
            refuse_undecoded(axis, name, "`target`")
        sizes = {d: frame.sizes[d] for d in dims if any(d in axis.dims for axis in axes)}
        lazy = any(d in chunks for d in sizes)
        return cls(frame, axes, sizes, {d: chunks.get(d, (n,)) for d, n in sizes.items()} if lazy else {})

    def told(self, about: Mapping[Hashable, Mapping[str, Any]]) -> Grid:
        """The same, where a coordinate that has no units has the attributes `about` it."""
        frame = self.frame.copy()  # in place: levels of a stacked coordinate cannot be assigned
        for name, given in about.items():
            own = frame.variables[name].attrs
            if "units" not in own:
                frame.variables[name].attrs = {**given, **own}
        return self._replace(frame=frame)

    @property
    def size(self) -> int:
        return int(np.prod([*self.sizes.values()], dtype=np.int64))

    @property
    def lazy(self) -> bool:
        """Whether coordinates are still to be computed."""
        return any(axis.chunks is not None for axis in self.axes)

    def read(self, most: int) -> Grid:
        """The same, with lazy coordinates of up to `most` numbers in memory."""
        small = [n for n, v in self.frame.variables.items() if v.chunks is not None and v.size <= most]
        frame = self.frame.assign({name: self.frame[name].compute() for name in small})
        axes = (axis.compute() if axis.chunks is not None and axis.size <= most else axis for axis in self.axes)
        return self._replace(frame=frame, axes=tuple(axes))

    def points(self, region: Region | None = None) -> np.ndarray:
        """The places `[n d]` of a region, or all of them, the last dimension varying fastest."""
        axes = [axis.isel({d: region[d] for d in axis.dims}) if region else axis for axis in self.axes]
        return points(axes, tuple(self.sizes))

    def some(self, most: int) -> np.ndarray:
        """At most `most` of the places, `[n d]`, or all of them: evenly spread, those at the ends among them."""
        chosen = {d: np.linspace(0, self.sizes[d] - 1, n).astype(int) for d, n in self.even_chunks(most).items()}
        axes = [axis.isel({d: chosen[d] for d in axis.dims}) for axis in self.axes]
        return points(axes, tuple(self.sizes))

    def blocks(self, chunks: Mapping[Hashable, tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], Region]]:
        """Number and region of each block, for the sizes of the blocks along each dimension."""
        ends = {d: np.cumsum([0, *chunks[d]]) for d in self.sizes}
        for index in itertools.product(*(range(len(chunks[d])) for d in self.sizes)):
            yield (
                index,
                {d: slice(int(ends[d][i]), int(ends[d][i + 1])) for d, i in zip(self.sizes, index, strict=True)},
            )

    def even_chunks(self, most: int) -> dict[Hashable, int]:
        """Lengths of blocks of at most `most` places, about as long as broad."""
        lengths = dict(self.sizes)
        while np.prod([*lengths.values()], dtype=np.int64) > most:
            longest = max(lengths, key=lambda d: lengths[d])
            lengths[longest] = -(-lengths[longest] // 2)
        return lengths


def points(axes: Sequence[xr.Variable], dims: Sequence[Hashable]) -> np.ndarray:
    """Coordinates broadcast against each other: `[n d]`, the last of the dimensions varying fastest."""
    sizes = {d: size for axis in axes for d, size in axis.sizes.items()}
    sizes = {d: sizes[d] for d in dims}
    return np.stack([flat(axis, sizes) for axis in axes], axis=1)


def flat(variable: xr.Variable, sizes: Mapping[Hashable, int]) -> np.ndarray:
    """Its values at all places of a grid of these `sizes`, `[n]`, the last dimension varying fastest."""
    return np.asarray(variable.set_dims(sizes).transpose(*sizes)).ravel()


def require(there: Any, names: Sequence[Hashable], where: str) -> None:
    """**Raises** `ValueError` naming what is missing, and what there is."""
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError(
            f"`{where}` has no {', '.join(map(repr, missing))}; it has {', '.join(repr(name) for name in there)}."
        )


def xarray():
    """The library. **Raises** `ImportError` with the extra that brings it."""
    try:
        import xarray
    except ImportError as error:
        raise ImportError("Grids need xarray: pip install 'npax[geo]'.") from error
    return xarray


def _of_numpy(axis):
    """A coordinate whose dates are NumPy's where they are Arrow's."""
    if not hasattr(axis.dtype, "pyarrow_dtype"):
        return axis
    import pandas as pd

    return axis.copy(data=dates_of_numpy(pd.Series(axis.data)).to_numpy())
