"""In which views of the observations a model is asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..models import AbstractNeuralProcess, Symmetrised, View, turned
from ..pretrained import pretrained

UP_TO = 1500
"""Observations up to which a pretrained model is asked in several."""


def check_views(views: Any) -> None:
    """**Raises** `ValueError` for what are none."""
    given = () if views is None or (isinstance(views, str) and views == "auto") else views
    if isinstance(given, str) or not (isinstance(given, Sequence) and all(isinstance(view, View) for view in given)):
        raise ValueError(f'`views` must be "auto", None or a sequence of npax.models.View; got {views!r}.')


def in_views(
    views: Any, model: AbstractNeuralProcess, name: Any, *, observations: int, columns: int
) -> AbstractNeuralProcess:
    """The model as it is, or one that asks it in the `views`; of its own accord in four where it is a pretrained one
    by its `name` and sees few `observations`, of so many `columns`. Others may have learned that directions matter."""
    if isinstance(views, str):
        few = observations <= UP_TO and isinstance(name, str | Path) and str(name) in pretrained()
        views = turned(model.dx, min(columns, model.dx)) if few else None
    return model if views is None else Symmetrised(model, views)


def number_of_views(model: AbstractNeuralProcess) -> int:
    """In how many it is asked."""
    return len(model.views) if isinstance(model, Symmetrised) else 1
