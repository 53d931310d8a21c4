"""Gaps in pictures, filled by a model of grids."""

import functools
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import numpy as np

from ..arrays import floats
from ..devices import as_here, cores_each, local_mesh
from ..likelihoods import marginals, noiseless
from ..models import GridConvCNP
from .predict import Prediction, side_by_side
from .standardise import Standardiser

_AS_IT_IS, _BACKWARDS = slice(None), slice(None, None, -1)
MIRRORED = tuple((rows, columns) for rows in (_AS_IT_IS, _BACKWARDS) for columns in (_AS_IT_IS, _BACKWARDS))
"""A picture and its mirror images, as indices of rows and columns."""

OVERLAP = 6
"""Of two windows, in nodes of the model's coarsest level."""


def fill(
    model: GridConvCNP,
    y: np.ndarray,
    *,
    mirrored: bool = True,
    window: int = 1536,
    advance: Callable[[float], object] | None = None,
) -> Prediction:
    """What a model of pictures says of every pixel, given those that are seen, in the unit of `y`.

    Values are standardised by those that are seen, in float64. Where a pixel is seen, the answer is that for another
    observation of it.

    **Arguments:** `y [rows columns]` or `[rows columns dy]`, NaN or masked in the gaps (those of any column are gaps of
    all that the model takes at once). `mirrored`: the geometric mean of the answers to the picture and to its three
    mirror images, as in `npax.Symmetrised`: four times the work, and more accurate. `window`: a picture of longer sides
    is filled in parts of at most so many pixels a side, which overlap by `OVERLAP * model.stride` and are blended
    without seams; what lies beyond its window counts for nothing. `advance(pixels)` is called when so many more are
    done.

    **Returns** a `Prediction` whose arrays have the shape of `y`; NaN where nothing at all is seen.

    **Cost:** O(pixels): some 2 microseconds for each and mirror image on a CPU core; half a kilobyte of memory for each
    of a window on each core. Sides are padded to 1, 2, 3, 4, 6, 8, ... times `model.stride`, so that few shapes are
    compiled, about ten seconds each (`npax.devices.keep_compiled_programs`).

    **Raises:** `ValueError` for a shape that is not a picture's, another number of columns than the model takes, or a
    `window` that is not twice as wide as the overlap, and infinite values.
    """
    y = floats(y)
    if np.isinf(y).any():
        raise ValueError(f"`y` holds infinity in {np.count_nonzero(np.isinf(y)):,} pixels: make them NaN for gaps.")
    values, dy = (y if y.ndim == 3 else y[..., None]), model.likelihood.dy
    if y.ndim not in (2, 3) or model.dx != 2 or values.shape[-1] % dy:
        raise ValueError(
            f"`y` must have the shape [rows columns {dy}]{' or [rows columns]' if dy == 1 else ''}, got {y.shape}."
        )
    overlap = OVERLAP * model.stride
    if window < 2 * overlap:
        raise ValueError(f"`window` must be at least {2 * overlap}, twice the overlap of two; got {window}.")
    windows = list(itertools.product(*(_windows(n, window, overlap, model.stride) for n in y.shape[:2])))
    groups = np.split(values, values.shape[-1] // dy, axis=-1)
    found = side_by_side(_fill(model, group, mirrored, windows, advance or (lambda _: None)) for group in groups)
    return Prediction(*(a.reshape(y.shape) for a in found))


def _windows(n, most, overlap, stride):
    """Parts of `n` pixels, at most `most` each, as slices, and the weights of their pixels, which sum to one.

    They start at multiples of `stride`. A pixel has no weight where it is closer to an end of its window than a quarter
    of the overlap, and all where no other window has it further inside.
    """
    count = max(1, -(-(n - overlap) // (most // stride * stride - overlap)))
    side = -(-(n + (count - 1) * overlap) // (count * stride)) * stride
    starts = np.arange(count) * (side - overlap)
    way = np.clip(2 * (np.arange(n) - starts[1:, None] + 0.5) / overlap - 0.5, 0.0, 1.0)
    entered = np.concatenate([np.ones((1, n)), way**2 * (3 - 2 * way), np.zeros((1, n))])
    parts = [slice(start, min(start + side, n)) for start in starts.tolist()]
    return [(part, weight[part]) for part, weight in zip(parts, entered[:-1] - entered[1:], strict=True)]


def _fill(model, y, mirrored, windows, advance):
    mask = np.isfinite(y).all(axis=-1)
    if not mask.any():
        advance(mask.size)
        return Prediction(*np.full((3, *y.shape), np.nan))
    standardiser = Standardiser.of(y[mask])
    standard = np.where(mask[..., None], standardiser(y), 0.0).astype(np.float32)
    totals = [np.zeros(y.shape) for _ in range(4)]
    for (rows, row_weights), (columns, column_weights) in windows:
        weights = (row_weights[:, None] * column_weights)[..., None]
        answers = _fill_window(model, standard[rows, columns], mask[rows, columns], mirrored)
        for total, part in zip(totals, (*answers, np.square(answers[0])), strict=True):
            total[rows, columns] += weights * part
        advance(weights.sum())
    mean, function_variance, noise, squares = totals
    function_variance += np.maximum(squares - np.square(mean), 0.0)  # where windows differ, as of a mixture
    stds = (np.sqrt(variance) * standardiser.std for variance in (function_variance + noise, function_variance))
    return Prediction(standardiser.undo(mean), *stds)


def _fill_window(model, standard, mask, mirrored):
    """Mean, variance of the function and of the noise at every pixel of a standardised picture."""

    def answer(picture):
        rows, columns = mask[picture].shape
        ends = [(0, padded_side(n, model.stride) - n) for n in (rows, columns)]
        found = _answer(model, np.pad(standard[picture], [*ends, (0, 0)]), np.pad(mask[picture], ends))
        return [np.asarray(a, np.float64)[:rows, :columns][picture] for a in found]

    answers = _workers(cores_each(local_mesh())).map(as_here(answer), MIRRORED if mirrored else MIRRORED[:1])
    mean, variance, noise = (np.stack(each) for each in zip(*answers, strict=True))
    precision = np.mean(1 / variance, axis=0)
    mean, function_variance = np.mean(mean / variance, axis=0) / precision, 1 / precision
    noise = np.exp(np.mean(np.log(np.maximum(noise, 1e-30)), axis=0))
    return mean, function_variance, noise


@functools.cache
def _workers(number):
    """For all pictures that are filled at the same time: a window on each core, and no more, is in memory."""
    return ThreadPoolExecutor(number)


@eqx.filter_jit
def _answer(model, y, mask):
    """Mean and variance of the function, and the variance of the noise."""
    distribution = model.on_grid(y, mask)
    observation, function = marginals(distribution), marginals(noiseless(distribution))
    return function.mean, function.variance, observation.variance - function.variance


def padded_side(n: int, stride: int) -> int:
    """The side that a picture of `n` pixels a side is padded to."""
    power = 1 << max(0, -(-n // stride) - 1).bit_length()
    return stride * (power * 3 // 4 if power >= 4 and n <= stride * power * 3 // 4 else power)
