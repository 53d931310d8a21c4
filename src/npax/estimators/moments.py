"""Means and standard deviations: at the places of a grid, at once or block by block under dask; what they say of a
threshold."""

import functools
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.utils import check_array

from ..inference import Predictor
from ..links import Link
from .grid import points
from .options import thresholds


def moments_at(predictor: Predictor, places: np.ndarray, include_noise: bool) -> np.ndarray:
    """Means and standard deviations, `[n 2 dy]`; NaN at places with a coordinate that is NaN, as swaths have them."""
    rules: dict[str, Any] = {"ensure_min_samples": 0, "ensure_all_finite": "allow-nan", "input_name": "target"}
    places = check_array(places, dtype="float64", **rules)
    there = ~np.isnan(places).any(axis=1)
    prediction = predictor(places[there])
    moments = np.concatenate([prediction.mean, prediction.std(include_noise)], axis=1)
    if there.all():
        return moments
    whole = np.full((len(places), moments.shape[1]), np.nan)
    whole[there] = moments
    return whole


def lazy_moments(predictor, grid, include_noise) -> Any:
    """The moments as a dask array, with the chunks of the target: `[*dims 2 dy]`. What all blocks share (the model, or
    the predictor where there is no part of it for each) is one task; the rest of a block is its own."""
    import dask.array as da
    from dask.delayed import delayed

    from_array: Any = da.from_array
    dims, in_parts = tuple(grid.sizes), predictor.in_tiles and not grid.lazy
    parts = np.full([len(grid.chunks[d]) for d in dims], None)
    if in_parts:
        for index, region in grid.blocks(grid.chunks):
            parts[index] = predictor.part(complete(grid.points(region))).of(None)
    shared = delayed(predictor.model if in_parts else predictor, pure=False, traverse=False)
    axes = [
        axis.chunk({d: grid.chunks[d] for d in axis.dims}).data
        if axis.chunks
        else from_array(axis.to_numpy(), tuple(grid.chunks[d] for d in axis.dims))
        for axis in grid.axes
    ]
    return da.blockwise(
        functools.partial(_block, dims, [axis.dims for axis in grid.axes], include_noise),
        (*dims, "npax_moments"),
        *(from_array(parts, chunks=1, name=False), dims, shared, None),
        *(given for data, axis in zip(axes, grid.axes, strict=True) for given in (data, axis.dims)),
        new_axes={"npax_moments": 2 * predictor.dy},
        adjust_chunks={d: grid.chunks[d] for d in dims},
        align_arrays=False,
        dtype=np.float64,
        meta=np.empty((0,) * (len(dims) + 1)),
    )


def _block(dims, of_axes, include_noise, part: np.ndarray, shared: Any, *columns) -> np.ndarray:
    """The moments `[*dims 2 dy]` of one block, from its part of the predictor, what all share and its coordinates."""
    import xarray as xr

    axes = [xr.Variable(own, column) for own, column in zip(of_axes, columns, strict=True)]
    sizes = {d: size for axis in axes for d, size in axis.sizes.items()}
    (own_part,) = part.ravel()
    moments = moments_at(shared if own_part is None else own_part.of(shared), points(axes, dims), include_noise)
    return moments.reshape(*(sizes[d] for d in dims), moments.shape[1])


def complete(places: np.ndarray) -> np.ndarray:
    """The places `[n d]` none of whose coordinates is NaN."""
    return places[~np.isnan(places).any(axis=1)]


def exceedance(mean: np.ndarray, std: np.ndarray, threshold: Any, link: Link | None = None) -> np.ndarray:
    """The probability that a value is above one threshold or several, of the shape of `mean`, then that of `threshold`.
    `mean` and `std` are those of the value, or of its level. **Raises** `ValueError` for what is no threshold."""
    levels = thresholds(threshold, "threshold")
    if link is not None:
        levels = np.array([link.level(value) for value in levels])
    told = above(mean[..., None], std[..., None], levels)
    return told if np.ndim(threshold) else told[..., 0]


def above(mean: np.ndarray, std: np.ndarray, threshold: Any) -> np.ndarray:
    """The probability that what is normal is above a threshold."""
    return ndtr((mean - threshold) / np.maximum(std, np.finfo(float).tiny))
