from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from ..arrays import floats
from ._grid import checked_axes

UNSEEN = (0.16, 0.28, 0.62)
"""The colour of pixels without a value."""


def image(
    ax: Axes, pixels: ArrayLike, *, values: tuple[float, float] = (-1.0, 1.0), cmap: str | None = None
) -> AxesImage:
    """An image of one channel (grey, or colours of `cmap`) or of three (red, green, blue); NaN: not seen, dark blue.

    **Shapes:** `pixels [rows columns]`, `[rows columns 1]` or `[rows columns 3]`. `values`: black and white; what lies
    beyond is cut.
    """
    pixels = floats(pixels)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3):
        raise ValueError(f"`pixels` must be [rows, columns] or [rows, columns, 1 or 3], got {pixels.shape}.")
    low, high = values
    shares = np.clip((pixels - low) / (high - low), 0, 1)
    if shares.shape[2] == 1:
        colours = colormaps["gray" if cmap is None else cmap](np.nan_to_num(shares[..., 0]))[..., :3]
    else:
        colours = np.nan_to_num(shares)
    colours = np.where(np.isnan(pixels).any(axis=2, keepdims=True), UNSEEN, colours)
    ax.set(xticks=[], yticks=[])
    return ax.imshow(colours, interpolation="nearest")


def completion(
    axes: Sequence[Axes] | np.ndarray,
    context: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    values: tuple[float, float] = (-1.0, 1.0),
) -> None:
    """An image completed from some of its pixels: what is seen, the predicted mean, its standard deviation (the mean
    over channels; bright: uncertain).

    **Shapes:** `axes`: three of them; `context`, `mean`, `std [rows columns channels]`, NaN in `context` where a pixel
    is not seen. The sizes may differ: super-resolution.
    """
    axes = checked_axes(axes, 3)
    spread = floats(std)
    spread = spread.mean(axis=2) if spread.ndim == 3 else spread
    image(axes[0], context, values=values)
    image(axes[1], mean, values=values)
    image(axes[2], spread, values=(0.0, float(np.max(spread[np.isfinite(spread)], initial=0.0)) or 1.0), cmap="magma")
