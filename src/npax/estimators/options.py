"""What estimators are asked: models, seeds, probabilities."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..models import AbstractNeuralProcess, GridConvCNP
from ..serialise import load

COARSEST = 0.5
"""The largest spacing of a grid in [-2, 2] that can tell places apart."""


def probabilities(q: Any, name: str = "q") -> np.ndarray:
    """One or several, `[number]`. **Raises** `ValueError` for others."""
    levels = np.atleast_1d(np.asarray(q))
    if levels.ndim > 1 or (levels.size and levels.dtype.kind not in "iuf") or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"`{name}` must be probabilities above 0 and below 1, one or a list; got {q}.")
    return levels


def thresholds(given: Any, name: str) -> np.ndarray:
    """One or several numbers, `[number]`. **Raises** `ValueError` for others."""
    levels = np.atleast_1d(np.asarray(given))
    if levels.ndim > 1 or (levels.size and levels.dtype.kind not in "iuf") or not np.isfinite(levels).all():
        raise ValueError(f"`{name}` must be a number or a list of numbers, all finite; got {given}.")
    return levels


def refuse_both(return_std: bool, return_cov: bool) -> None:
    """**Raises** `ValueError` where both are asked for."""
    if return_std and return_cov:
        raise ValueError("At most one of `return_std` and `return_cov` can be asked for; got both.")


def seed_of(random_state: Any, otherwise: Any) -> int:
    """A seed from what users of scikit-learn give; from `otherwise` where they give None."""
    given, most = otherwise if random_state is None else random_state, np.iinfo(np.int32).max
    generator = isinstance(given, np.random.Generator)
    return int(given.integers(most) if generator else check_random_state(given).randint(most))


def model_of(model: Any, normalize: bool) -> AbstractNeuralProcess:
    """The model, of a name or a path too. **Raises** `TypeError` for what is none, `ValueError` for one of pictures."""
    if isinstance(model, str | Path):
        model = load(model)
    if not isinstance(model, AbstractNeuralProcess):
        raise TypeError(f"`model` must be a model, the name of a pretrained one or a path; got {type(model).__name__}.")
    if normalize and isinstance(model, GridConvCNP) and model.grid.spacing > COARSEST:
        raise ValueError(
            f"`model` is one of pictures, whose nodes are {model.grid.spacing:g} apart, and coordinates are brought to "
            "[-2, 2]. Fill gridded fields by npax.fill_gaps; for points choose another model, such as "
            '"gp-universal".'
        )
    return model
