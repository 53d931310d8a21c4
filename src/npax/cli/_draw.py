"""Pictures of predictions, on disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..data import is_land
from ..files import replaced

MOST_DOTS = 5000
"""Of more observations the places are not drawn: they would hide the map."""


def checked_plot(path: Path, x: Sequence[str] = ()) -> None:
    """**Raises** where a picture cannot be drawn, before the work is done."""
    from .. import plot as _  # noqa: F401  (says early which extra is missing)

    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"`--plot` must end in .png, .pdf or .svg, got '{path}'.")
    if len(x) > 2:
        raise ValueError(f"`--plot` draws one or two coordinates, got {len(x)}: {', '.join(x)}.")


def draw(prediction: Any, table: Any, x: Sequence[str], y: str, coords: str, path: Path, name: str) -> None:
    """A curve, a pair of maps or a pair of maps of points, as suits the coordinates `x` of a prediction; `name`: what
    `y` is of, in words."""
    gridded = hasattr(prediction, "data_vars") and all(name in prediction[f"{y}_mean"].dims for name in x)
    if len(x) == 2 and gridded:
        seen = table[np.isfinite(table[y])]
        observed = (seen[x[0]], seen[x[1]])
        return draw_grid(prediction, (x[0], x[1]), y, coords, path, observed, name, dots=len(seen) <= MOST_DOTS)
    from matplotlib.figure import Figure

    from ..plot import posterior, scattered

    mean, std = (np.asarray(prediction[f"{y}_{part}"], float) for part in ("mean", "std"))
    places = [_broadcast(prediction, name, y) for name in x]
    units = _units(prediction, y)
    probabilities = _probabilities(prediction, y, name)
    if len(x) == 1:
        heights = [4.0, 2.0] if probabilities else [4.0]
        figure = Figure(figsize=(8, sum(heights)), layout="constrained")
        ax, *others = figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights).ravel()
        posterior(ax, places[0], mean, std, context=(table[x[0]], table[y]))
        ax.set(ylabel=f"{name} ({units})" if units else name)
        for below in others:
            _curves(below, places[0], probabilities)
        (others or [ax])[-1].set(xlabel=x[0])
    else:
        across, down, mean, std = (np.ravel(a) for a in (*places, mean, std))
        style = {"coords": coords, "title": name, "name": name, "units": units, "axes": (x[0], x[1])}
        there = ~(pd.isna(across) | pd.isna(down))  # of swaths, what has a place
        seen = table[np.isfinite(table[y])]
        style["observed"] = (seen[x[0]], seen[x[1]]) if len(seen) <= MOST_DOTS else None
        style["probabilities"] = {label: np.ravel(values)[there] for label, values in probabilities.items()}
        figure = scattered(across[there], down[there], mean[there], std[there], **style)
    _save(figure, path)


def _probabilities(prediction, y, name):
    """Those of more than a threshold, by how they are called."""
    start = f"{y}_above_"
    kinds = [str(column)[len(start) :] for column in prediction if str(column).startswith(start)]
    return {f"probability of {name} above {kind}": prediction[start + kind] for kind in kinds}


def _curves(ax, x, probabilities):
    order = np.argsort(np.asarray(x), kind="stable")
    for label, values in probabilities.items():
        ax.plot(np.asarray(x)[order], np.asarray(values, float).ravel()[order], label=label)
    ax.set(ylim=(-0.02, 1.02), ylabel="probability")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)


def _broadcast(prediction, name, y):
    """The coordinate of every predicted value, of a grid whose axes have other names too."""
    if not hasattr(prediction, "data_vars"):
        return np.asarray(prediction[name])
    return np.asarray(prediction[name].broadcast_like(prediction[f"{y}_mean"]).transpose(*prediction[f"{y}_mean"].dims))


def draw_grid(
    prediction: Any,
    x: tuple[str, str],
    y: str,
    coords: str,
    path: Path,
    observed: tuple[Any, Any],
    name: str,
    *,
    dots: bool = False,
) -> None:
    """Mean and standard deviation on a grid, side by side; the first of the dimensions `x` goes across. `observed`:
    where, `[n]` and `[n]`, as `dots` too; if that is the ocean, land is drawn over the field. `name`: what `y` is of,
    in words."""
    from ..plot import mean_and_std

    mean, std = (prediction[f"{y}_{part}"].transpose(x[1], x[0]).to_numpy() for part in ("mean", "std"))
    across, down = (places(prediction, axis) for axis in x)
    style = {"coords": coords, "title": name, "name": name, "units": _units(prediction, y), "axes": x}
    style["land"] = coords == "latlon" and _at_sea(*observed)
    style["observed"] = observed if dots else None
    maps = _probabilities(prediction, y, name)
    style["probabilities"] = {label: values.transpose(x[1], x[0]).to_numpy() for label, values in maps.items()}
    _save(mean_and_std(across, down, mean, std, **style), path)


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


def _at_sea(lon, lat):
    """Whether hardly any of some thousand observations are on land; near coasts a few may seem to be."""
    lon, lat = (np.asarray(a, float)[:: max(1, len(a) // 1000)] for a in (lon, lat))
    return bool(np.mean(is_land(lon, lat)) < 0.1)


def places(prediction: Any, name: str) -> np.ndarray:
    """The coordinates of a dimension; its pixels are counted where it has none, or names such as those of stations."""
    from ..estimators.dates import of_calendar  # here, since it imports scikit-learn

    found = prediction.coords.get(name)
    counted = found is None or (found.dtype.kind not in "iufmM" and not of_calendar(found))
    return np.arange(prediction.sizes[name]) if counted else np.asarray(found)


def _units(prediction, y):
    return str(prediction[f"{y}_mean"].attrs.get("units", ""))


def _save(figure, path):
    with replaced(path) as partial:
        figure.savefig(partial, dpi=150)
