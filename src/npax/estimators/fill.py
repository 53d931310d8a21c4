"""Gaps in fields: xarray in, xarray out."""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arguments import true_or_false, whole_number
from ..inference import fill
from ..models import GridConvCNP
from ..progress import Progress
from ..serialise import load
from ..training import finetune_pictures
from ..warn import warn
from .dates import are_dates, refuse_dates
from .degrees import LONGITUDE, is_called, is_latitude, is_longitude
from .grid import MAPPING, OF_CELLS, require, xarray
from .likelihood import warn_of_noise, warn_of_shape
from .missing import refuse_marks, refuse_undecoded, warn_of_codes
from .scale import warn_of_no_scale
from .summary import Summary, what

if TYPE_CHECKING:
    import xarray as xr

TIMES = ("time", "t", "date", "month", "year", "step")
TIME = "time"
"""What a dimension is called that is none of a picture's, or how its name ends, unless one says so; as one that has
dates."""
OF_PLACES = ("station", "sensor", "site", "well", "gauge", "id")
"""What a dimension is called, or several of them, that is of places in any order."""
ACROSS = ("x", "projection_x_coordinate", "rlon", "grid_longitude")
DOWN = ("y", "projection_y_coordinate", "rlat", "grid_latitude")
"""What the coordinates of a map that is projected or turned are called: names, axes and standard names."""
UNEVEN = 0.1
"""How much the steps between coordinates may differ, as a share of their median: months may."""
ROUND = 128
"""Pixels from beyond either end that a picture sees where it goes round the globe, at most."""


def fill_gaps(
    field: xr.DataArray | xr.Dataset,
    y: Hashable | None = None,
    *,
    dims: Sequence[Hashable] | None = None,
    model: str | Path | GridConvCNP = "field-universal",
    include_noise: bool = True,
    quantiles: float | Sequence[float] | np.ndarray = (),
    above: float | Sequence[float] | np.ndarray = (),
    finetune: int = 0,
    mirrored: bool = True,
    progress: bool = False,
) -> xr.Dataset:
    r"""Fills the gaps (NaN) of a field on a grid, and says how sure that is: `<y>_mean` and `<y>_std`, and if asked for
    quantiles and probabilities.

    ```python
    filled = npax.fill_gaps(sst)  # a DataArray, NaN under clouds
    complete = sst.fillna(filled.sst_mean)
    ```

    A pretrained network looks at the whole picture at once (in parts beyond 1,536 pixels a side), at all its scales;
    nothing is fitted. Each picture of a stack (of times, of depths) is filled by itself.

    **Arguments:**

    - `field`: a DataArray, or a Dataset with the variable `y` (or only one of two dimensions and more), on an evenly
      spaced grid. Chunked by dask it is filled lazily, a picture at a time, under any scheduler. Several variables take
      a call each; `xarray.merge` joins them.
    - `dims`: the two dimensions of a picture, down and across; default: those of a map (latitude and longitude, or y
      and x, by their names, units, standard names or axes, or those along which two-dimensional longitudes and
      latitudes lie), or else all that are not of time; of more than two of these the last, with a warning.
    - `model`: the name of a pretrained model of pictures, the path of a saved one, or the model.
    - `include_noise`: standard deviation of a new observation, or of the noiseless field.
    - `quantiles`: probabilities, such as `[0.025, 0.975]` for the ends of 95 % intervals, called `<y>_q0.025` and
      `<y>_q0.975`; `above`: thresholds, such as 20 for `<y>_above_20`, the probability that the value is larger.
    - `finetune`: steps of training on gaps like those of the field, moved to where it is seen
      (`npax.training.finetune_pictures`, which says when that helps; 50 to 200 are good). It takes the field into
      memory.
    - `progress`: show how far it is, unless `field` is lazy.
    - `mirrored`: see `npax.inference.fill`, whose cost this has for each picture.

    **Returns** a Dataset on the dimensions and coordinates of `field`, whose variables carry its attributes, units
    included, in its precision, float32 at least. There are means and standard deviations at all pixels: at those that
    are seen, of another observation there. Pictures of which nothing is seen stay NaN.

    **Pitfalls:** distances are counted in pixels, whatever the coordinates say: on a grid of longitudes and latitudes
    that reaches far to the north a pixel is not the same width everywhere. (Longitudes that go round the globe do so
    here: the ends are neighbours, or, as 0 and 360 degrees, the same.) All that is NaN is a gap, land in an ocean too:
    `filled.where(ocean)` leaves it out. What is hidden is taken to be like what is seen: where gaps have to do with the
    values, as clouds that gather over warm ground, means are off and intervals too narrow. (Values beside the gaps that
    differ from those farther away tell.) What is next to each other is taken to be alike along both dimensions: of 4 to
    60 sensors in any order beside time 95 % intervals hold 23 to 83 %; give their places to `npax.interpolate`. At
    pixels that are seen, where it was not trained, intervals are too narrow:
    where noise is 0.3 of the field's deviation, those of 95 % hold 70 % of new observations and 72 % of the noiseless
    field, where it is as strong 84 and 81 %; in gaps 91 % and nearly all. Where all that is seen of a picture is one
    value, nothing says how large deviations are: they are taken to be about 1, with a warning. For scattered data,
    uneven grids and other places than the pixels, `npax.interpolate`.

    **Warns** of infinite pixels, which are gaps too; of numbers such as -999 far from all others, which often stand for
    what is missing; of a dimension of stations in any order, by its names or the coordinates along it; and where there
    are no gaps at all, or nothing else (but not of a lazy field).

    **Raises:** `ValueError` for `quantiles` that are no probabilities and `above` that are no numbers, names that are
    not there, dates, durations and text, fewer than two dimensions, values that stand for what is missing
    (`_FillValue`), coordinates that are not evenly spaced, the name of a model of another kind; `TypeError` for what is
    not xarray's, or such a model itself.
    """
    true_or_false(include_noise=include_noise, mirrored=mirrored, progress=progress)
    xr = xarray()
    given = field
    field, name = _chosen(field, y)
    if dims is None:
        _warn_of_other_dims(field, name)
    dims = list(picture_dims(field) if dims is None else dims)
    if len(field.dims) < 2:
        raise ValueError(
            f"`field` must have at least two dimensions, got {list(field.dims)}: npax.interpolate fills a series."
        )
    if len(set(dims)) != 2 or len(dims) != 2:
        raise ValueError(
            f"`dims` must be two dimensions of `field`, got {dims}; it has {', '.join(map(repr, field.dims))}."
        )
    require(field.dims, dims, "field")
    summary = Summary.of(None, quantiles, above, what(None, include_noise))
    summary.refuse_taken(field.coords, [name], "field")
    for dim in dims:
        _warn_of_places(field, dim)
        _check_even(field, dim)
    net = _network(model)
    warn_of_noise(net.likelihood, include_noise)
    if summary.quantiles or summary.above:
        warn_of_shape(net.likelihood)
    whole_number(0, finetune=finetune)
    if finetune:
        values = field.transpose(..., *dims).to_numpy()
        refuse_marks(values, field.attrs, name, "`field`")
        net = finetune_pictures(net, values, steps=finetune, progress=progress).model

    lazy = bool(field.chunks) and field.size > 0
    if not lazy:
        _warn_of_no_gaps(field.to_numpy(), name)
    whole = _in_pictures(field, dims) if lazy else field.compute()
    rings = [_ring(field, dim) for dim in dims]
    closed = [axis for axis, ring in enumerate(rings) if ring.repeated]
    beyond = [(min(ROUND, ring.pixels // 2),) * 2 for ring in rings]
    inside = tuple(slice(width, -width or None) for width, _ in beyond)
    kept = np.result_type(field.dtype, np.float32)
    attrs = dict(field.attrs)  # not the field, which each lazy task would carry
    with Progress("Filling", field.size, shown=progress and not lazy) as bar:

        def told(picture):
            refuse_marks(picture, attrs, name, "`field`")
            picture = np.asarray(picture, np.float64)
            _warn_of_infinity(picture)
            if np.isnan(picture).any():  # of what may stand for gaps where there are none is told above
                warn_of_codes({f"A picture of {name!r}": picture[np.isfinite(picture)]})
            _check_scale(picture)
            picture = np.where(np.isfinite(picture), picture, np.nan)
            padded = np.pad(functools.reduce(_opened, closed, picture), beyond, mode="wrap")
            share = picture.size / max(padded.size, 1)
            found = fill(net, padded, mirrored=mirrored, advance=lambda pixels: bar.advance(share * pixels))
            moments = (functools.reduce(_closed, closed, a[inside]) for a in (found.mean, found.std(include_noise)))
            return tuple(np.moveaxis(summary(np.stack([*moments], axis=-1)), -1, 0).astype(kept))

        about = list(summary.variables([name], {name: attrs}))
        parts = xr.apply_ufunc(
            told,
            whole,
            input_core_dims=[dims],
            output_core_dims=[dims] * len(about),
            vectorize=True,
            dask="parallelized",
            output_dtypes=[kept] * len(about),
        )
    found: dict[Any, Any] = {}
    for part, (of, own) in zip(parts, about, strict=True):
        found[of] = part.chunk() if field.chunks and not lazy else part
        found[of].attrs = own
    named = str(model) if isinstance(model, str | Path) else ""
    of_all = given.attrs if isinstance(given, xr.Dataset) else {}
    filled = xr.Dataset(found).transpose(*field.dims).assign_attrs({**of_all, "model": named})
    mapping = attrs.get(MAPPING)
    if mapping not in field.coords and not (isinstance(given, xr.Dataset) and mapping in given):
        return filled
    for part in filled.values():
        part.attrs[MAPPING] = mapping
    return filled.assign_coords({mapping: given[mapping]})


def _in_pictures(field, dims):
    """A lazy field, a picture in each chunk where its chunks cut them: all of these would become one otherwise."""
    whole = dict.fromkeys(dims, -1)
    cut = any(len(field.chunksizes[dim]) > 1 for dim in dims)
    return field.chunk(dict.fromkeys(field.dims, 1) | whole if cut else whole)


def _chosen(field, y):
    """The array of numbers that is meant, and its name."""
    xr = xarray()
    if isinstance(field, xr.Dataset):
        names = fields_of(field)
        if y is None and len(names) != 1:
            raise ValueError(f"`y` must name the variable to fill; the dataset has {', '.join(map(repr, field))}.")
        y = names[0] if y is None else y
        if not isinstance(y, Hashable):
            raise TypeError(f"`y` must be the name of one variable, got {y!r}; several take a call each.")
        require(field.data_vars, [y], "field")
        field = field[y]
    if not isinstance(field, xr.DataArray):
        remedy = 'An array becomes one by `xarray.DataArray(array, dims=("y", "x"))`, a tree by `tree.to_dataset()`'
        raise TypeError(f"`field` must be an xarray DataArray or Dataset, got {type(field).__name__}. {remedy}.")
    if y is not None and field.name is not None:
        require([field.name], [y], "field")
    name = field.name if y is None else y
    name = "y" if name is None else name
    refuse_dates([(name, np.empty(0, field.dtype))], "`field`")
    if field.dtype.kind in "OSTUc":
        raise ValueError(f"`field` must hold numbers, got {field.dtype}.")
    refuse_undecoded(field, name, "`field`")
    return field, name


def fields_of(dataset: xr.Dataset) -> list[Hashable]:
    """The variables that can be filled, of numbers and at least two dimensions; where there is only one, that. Ends of
    cells, as the CF conventions have them, are none."""
    ends = {str(of.attrs.get(word)) for of in dataset.variables.values() for word in OF_CELLS}
    names = [name for name in dataset.data_vars if str(name) not in ends]
    pictures = [name for name in names if dataset[name].ndim >= 2 and dataset[name].dtype.kind in "buif"]
    return names if len(names) == 1 else pictures


def _network(model):
    """**Raises** for what is no model of pictures, by its name or itself."""
    net = load(model) if isinstance(model, str | Path) else model
    if not isinstance(net, GridConvCNP):
        kind = ValueError if isinstance(model, str | Path) else TypeError
        raise kind(f"`model` must be a model of pictures, a GridConvCNP; got {type(net).__name__}.")
    return net


def picture_dims(field: xr.DataArray) -> tuple[Hashable, ...]:
    """Those of a map, that of longitude or x last; or both, or of more the last two that are not of time; fewer where
    there are fewer."""
    mapped = _map_dims(field)
    if mapped or len(field.dims) == 2:
        return mapped or field.dims
    return _not_of_time(field)[-2:]


def _not_of_time(field):
    return tuple(dim for dim in field.dims if not _of_time(field, dim))


def _warn_of_other_dims(field, name):
    """Warns where nothing says which dimensions are those of a picture."""
    others = _not_of_time(field)
    if len(others) > 2 and not _map_dims(field):
        warn(
            f"The names do not say which dimensions of {name!r} are those of a picture: {others[-2]!r} and "
            f"{others[-1]!r} are taken, the last of {', '.join(map(repr, others))}. Choose others by `dims`."
        )


def _map_dims(field):
    """The dimensions of latitude and longitude, or of y and x, where there is one of each, or those of a longitude and
    a latitude of two dimensions."""
    is_x, is_y = (functools.partial(is_called, words=words) for words in (ACROSS, DOWN))
    for kinds in ((is_longitude, is_latitude), (is_x, is_y)):
        east, north = ([dim for dim in field.dims if is_kind(field.coords[dim])] for is_kind in kinds)
        if len(east) == len(north) == 1 and east != north:
            return north[0], east[0]
    east, north = (
        {frozenset(c.dims) for c in field.coords.values() if c.ndim == 2 and is_kind(c)}
        for is_kind in (is_longitude, is_latitude)
    )
    if len(east) == 1 and east == north:
        return tuple(dim for dim in field.dims if dim in next(iter(east)))
    return ()


def _of_time(field, dim):
    about = field.coords[dim].attrs if dim in field.coords else {}
    named = str(dim).lower() in TIMES or str(dim).lower().endswith(TIME)
    named = named or about.get("axis") == "T" or about.get("standard_name") == "time"
    return named or (dim in field.coords and are_dates(field[dim][:1]))


class _Ring(NamedTuple):
    """How many pixels of a dimension go round the globe, and how many of the last are the first ones again."""

    pixels: int
    repeated: int


def _ring(field, dim):
    """Of longitudes all round the globe: their ends are neighbours, or one meridian (0 and 360)."""
    if dim in field.coords and field[dim].size >= 3 and is_longitude(field[dim]):
        at = field[dim].to_numpy().astype(float)
        step = abs(at[-1] - at[0]) / (at.size - 1)
        for repeated in (0, 1):
            if abs(step * (at.size - repeated) - 360) < step / 10:
                return _Ring(at.size - repeated, repeated)
    return _Ring(0, 0)


def _opened(picture, axis):
    """Without the last pixels, which are the first: those have what either sees."""
    first, last = (np.take(picture, [at], axis) for at in (0, -1))
    return np.concatenate([np.where(np.isfinite(first), first, last), np.delete(picture, [0, -1], axis)], axis)


def _closed(picture, axis):
    return np.concatenate([picture, np.take(picture, [0], axis)], axis)


def _warn_of_no_gaps(values, name):
    """Warns where nothing is to be filled, perhaps since a number, far from all others, stands for what is missing."""
    if values.size and not np.isfinite(values).any():
        warn(
            f"No pixel of {name!r} is seen: nothing can be filled. Look whether it is the right variable, or its mask."
        )
        return
    if not values.size or not np.isfinite(values).all():
        return
    doubt, values = "", np.asarray(values, np.float64)
    for mark in (values.min(), values.max()):
        others = values[values != mark]
        if others.size and np.abs(others - mark).min() > np.ptp(others) > 0:  # of two values neither is far
            doubt = (
                f" Does {mark:g}, which is there {values.size - others.size:,} times, stand for what is missing? Then "
                f"make it NaN: `field.where(field != {mark:g})`."
            )
    warn(f"No pixel of {name!r} is NaN: nothing is filled.{doubt}")


def _check_scale(picture):
    remedy = "Fill such a picture with its value, or leave it out."
    warn_of_no_scale(picture[np.isfinite(picture)], "All pixels that are seen in a picture", remedy)


def _warn_of_infinity(picture):
    infinite = np.isinf(picture).sum()
    if infinite:
        warn(
            f"{infinite:,} pixels of `field` are infinite; they are filled as gaps. In the field itself "
            "`field.where(numpy.isfinite(field))` makes gaps of them.",
        )


def _warn_of_places(field, dim):
    """Warns of a side of a picture along which there are names, or places in any order: they are taken to be in
    order."""
    if field.sizes[dim] < 3:
        return
    named = dim in field.coords and field[dim].dtype.kind not in "iufmM" and not are_dates(field[dim].to_numpy())
    beside = [
        name for name in field.coords if name != dim and field[name].dims == (dim,) and _in_any_order(field[name])
    ]
    if named:
        what = f"The coordinates `{dim}` are names, such as {field[dim].to_numpy().tolist()[0]!r}"
        remedy = "leave names away to fill as they are (`field.drop_vars`)"
    elif {word.removesuffix("s") for word in re.findall("[a-z]+", str(dim).lower())} & {*OF_PLACES}:
        what = f"The dimension `{dim}` has the name of places in any order"
        remedy = "rename it to fill as they are (`field.rename`)"
    elif len(beside) > 1 and not _of_time(field, dim):
        what = f"The dimension `{dim}` has coordinates in any order, {' and '.join(map(repr, beside))}"
        remedy = "leave these away to fill as they are (`field.drop_vars`)"
    else:
        return
    warn(
        f"{what}: what is next to each other is taken to be alike, and steps to be even. Of stations or sensors in any "
        f"order use npax.interpolate, with their places as coordinates; {remedy}."
    )


def _in_any_order(coordinate):
    """Whether it is of numbers that neither rise nor fall all along, as on a way."""
    steps = np.diff(coordinate.to_numpy().astype(float)) if coordinate.dtype.kind in "iuf" else np.zeros(1)
    return bool(steps.min() < 0 < steps.max())


def _check_even(field, dim):
    """**Raises** for coordinates that are numbers or dates, and not evenly spaced."""
    if dim not in field.coords or field[dim].size < 3:
        return
    at = field[dim].to_numpy()
    if at.dtype.kind == "O" and are_dates(at):  # of other calendars
        at = np.array([(date - at[0]) / timedelta(microseconds=1) for date in at]).astype("m8[us]")
    if at.dtype.kind not in "iufmM":  # names
        return
    steps, even = _steps(at)
    if not even:
        anew = _anew(at, dim) if str(dim).lower() in LONGITUDE else ""
        raise ValueError(
            f"The coordinates `{dim}` are not evenly spaced: their steps go from {steps.min():g} to {steps.max():g}"
            f"{' days' if at.dtype.kind in 'mM' else ''}. {anew}If they are only out of order, sort them by "
            f"`field.sortby({dim!r})`; else use npax.interpolate, which takes any coordinates."
        )


def _steps(at):
    """The steps between coordinates, of dates in days, and whether they are even."""
    rounded = 4 * np.finfo(at.dtype).eps * np.abs(at).max() if at.dtype.kind == "f" else 0.0
    steps = np.diff(at) / np.timedelta64(1, "D") if at.dtype.kind in "mM" else np.diff(at.astype(float))
    middle = np.median(steps)
    return steps, middle != 0 and bool(np.all(np.abs(steps - middle) <= UNEVEN * abs(middle) + rounded))


def _anew(at, dim):
    """What puts longitudes in order that begin anew, where anything does."""
    east = f"field[{dim!r}]"
    for words, order in ((f"{east} % 360", at % 360), (f"({east} + 180) % 360 - 180", (at + 180) % 360 - 180)):
        if _steps(np.sort(order))[1]:
            return f"Longitudes that begin anew are in order in `field.assign_coords({dim}={words}).sortby({dim!r})`. "
    return ""
