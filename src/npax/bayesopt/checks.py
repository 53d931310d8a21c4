"""What a search is given, checked."""

import math
import sys
from numbers import Integral
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from scipy.optimize import Bounds

from ..arrays import floats
from ..models import AbstractNeuralProcess, GridConvCNP
from ..serialise import load
from .box import Box


def checked_box(bounds, integrality=None) -> Box:
    """Lower and upper ends, float64, those of whole numbers within them."""
    low, high = checked_bounds(bounds)
    try:
        given = np.asarray(False if integrality is None else integrality)
        if given.dtype.kind not in "biu" or not np.isin(given, (0, 1)).all() or given.shape not in ((), low.shape):
            raise ValueError("not true or false, of each or of all")
        whole = np.broadcast_to(given, low.shape).astype(bool)
    except ValueError as error:
        raise ValueError(
            f"`integrality` must say whether each of the {len(low)} coordinates is a whole number, True or False, or "
            f"whether all are; got {integrality!r}."
        ) from error
    low, high = np.where(whole, np.ceil(low), low), np.where(whole, np.floor(high), high)
    if np.any(low > high):
        i = np.argmax(low > high)
        raise ValueError(f"Pair {i} of `bounds` holds no whole number, as `integrality` asks for; got {bounds!r}.")
    return Box(low, high, whole)


def checked_bounds(bounds):
    """Lower and upper ends `[d]`, float64."""
    if isinstance(bounds, Bounds):
        bounds = np.stack(np.broadcast_arrays(bounds.lb, bounds.ub), axis=-1)
    try:
        pairs = np.asarray(bounds, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`bounds` must be pairs of numbers, `[(low, high), ...]`, got {bounds!r}.") from error
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(
            f"`bounds` must be one pair for each coordinate, `[(low, high), ...]`; got an array of shape {pairs.shape}."
        )
    for i, (low, high) in enumerate(pairs):
        with np.errstate(over="ignore", invalid="ignore"):
            side = high - low
        if not (np.isfinite(side) and side > np.finfo(float).tiny):
            rule = "must be finite with low < high, and so must be the distance between them"
            raise ValueError(f"Pair {i} of `bounds` {rule}; got ({low:g}, {high:g}).")
    return pairs[:, 0], pairs[:, 1]


def numbers(y) -> np.ndarray:
    """Real numbers as float64, NaN where they are masked. `None` and text are refused, which NumPy would convert."""
    try:
        if isinstance(y, Integral):  # of more than 64 bits NumPy makes an object
            y = float(y) if abs(int(y)) <= sys.float_info.max else math.inf if y > 0 else -math.inf
        if y is None or not (np.asarray(y).dtype.kind in "biuf" or jnp.issubdtype(np.asarray(y).dtype, jnp.floating)):
            raise TypeError("not numbers")
        return floats(y)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Values of the function must be real numbers, got {y!r}.") from error


def coordinates(x) -> np.ndarray:
    """Coordinates as float64. **Raises** `ValueError` for what are no numbers."""
    try:
        return floats(x)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`x` must hold real numbers, one for each coordinate; got {x!r}.") from error


def as_model(model) -> AbstractNeuralProcess:
    if isinstance(model, str | Path):
        model = load(model)
    if not isinstance(model, AbstractNeuralProcess):
        from ..estimators import NeuralProcessRegressor  # here, since it imports scikit-learn

        if not isinstance(model, NeuralProcessRegressor):
            raise TypeError(
                "`model` must be the name of a pretrained model, a path, a model or a NeuralProcessRegressor; "
                f"got {type(model).__name__}."
            )
        return as_model(getattr(model, "model_", model.model))  # fine-tuned, perhaps
    if isinstance(model, GridConvCNP):
        raise ValueError(
            '`model` is one of pictures, and evaluations are points: choose one of points, such as "gp-universal".'
        )
    return model
