"""Pictures of predictions, on disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..files import replaced


def checked_plot(path: Path, x: Sequence[str] = (), y: Sequence[str] = ()) -> None:
    """**Raises** where a picture cannot be drawn, before the work is done."""
    from .. import plot as _  # noqa: F401  (says early which extra is missing)

    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"`--plot` must end in .png, .pdf or .svg, got '{path}'.")
    if len(x) > 2:
        raise ValueError(f"`--plot` draws one or two coordinates, got {len(x)}: {', '.join(x)}.")
    if len(y) > 1:
        raise ValueError(f"`--plot` draws one column of values, got {len(y)}: {', '.join(y)}. Predict them one by one.")


def draw(found: Any, table: Any, x: Sequence[str], y: str, coords: str, path: Path, name: str) -> None:
    """`npax.plot.prediction`."""
    from ..plot import prediction

    _save(prediction(found, x, y, coords=coords, observations=table, name=name), path)


def draw_grid(
    found: Any, x: tuple[str, str], y: str, coords: str, path: Path, observed: tuple[Any, Any], name: str
) -> None:
    """The same of a grid, where pixels are counted that have no coordinates; `observed`: where, `[n]` and `[n]`."""
    from ..plot.predictions import maps

    _save(maps(found, x, y, coords, observed, name), path)


def draw_regions(rows: Any, by: Sequence[str], y: str, path: Path, name: str) -> None:
    """Averages and their 95 % intervals, a row for each region; of names one below the other, the largest first."""
    from matplotlib.figure import Figure

    from ..plot import regions
    from ..plot.regions import NAMED

    names = rows[by[0]] if len(by) == 1 else pd.Series([", ".join(map(str, row)) for row in rows[list(by)].to_numpy()])
    ordered = names.dtype.kind in "iufM"
    if not ordered:
        order = np.argsort(-np.asarray(rows[f"{y}_mean"], float), kind="stable")
        names, rows = names.iloc[order], rows.iloc[order]
    height = 4.0 if ordered else max(2.0, 0.6 + 0.22 * min(len(rows), NAMED))
    figure = Figure(figsize=(8, height), layout="constrained")
    ax = figure.subplots()
    regions(ax, names, *(rows[f"{y}_{kind}"] for kind in ("mean", "q0.025", "q0.975")))
    ax.set(xlabel=by[0], ylabel=name) if ordered else ax.set(xlabel=name)
    _save(figure, path)


def _save(figure, path):
    with replaced(path) as partial:
        figure.savefig(partial, dpi=150)
