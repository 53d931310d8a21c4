"""What the commands that read a table of observations ask for, and how they read it."""

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer


class Coords(enum.StrEnum):
    planar = "planar"
    isotropic = "isotropic"
    latlon = "latlon"


class Strategy(enum.StrEnum):
    auto = "auto"
    exact = "exact"
    tiled = "tiled"


class Counts(enum.StrEnum):
    poisson = "poisson"
    binomial = "binomial"


Observations = Annotated[
    Path,
    typer.Argument(
        metavar="OBS",
        help="The observations: .csv (commas, semicolons, tabs or spaces), .parquet, .nc or .zarr.",
        show_default=False,
    ),
]
X = Annotated[
    list[str], typer.Option(help="Columns of the coordinates: one to three.", metavar="X...", show_default=False)
]
Y = Annotated[
    list[str],
    typer.Option(
        help="The column of the values, or several, each predicted by itself: not with --plot, --counts or "
        "--lognormal, and with -o X.zarr only if they are missing in the same rows.",
        metavar="Y...",
        show_default=False,
    ),
]
Covariates = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that tell something of the values beside the places, such as an elevation; of --at, too. What "
        "OBS lacks is read off a grid of --at.",
        metavar="COLUMN...",
        show_default=False,
    ),
]
Error = Annotated[
    list[str] | None,
    typer.Option(
        help="The column of known standard errors of the values; of several columns of values one of each.",
        metavar="COLUMN...",
        show_default=False,
    ),
]
OfCounts = Annotated[
    Counts | None,
    typer.Option(
        help="The values are counts: of events, or of positives among those who were tested. Writes rates.",
        show_default=False,
    ),
]
Exposure = Annotated[
    str | None,
    typer.Option(
        help="The column of what counts are of: people, years, expected cases, how many were tested.",
        metavar="COLUMN",
        show_default=False,
    ),
]
LogNormal = Annotated[
    bool,
    typer.Option(
        "--lognormal",
        help="The values are positive and skewed, such as concentrations or rain: their logarithm is predicted as "
        "normal.",
    ),
]
OfCoords = Annotated[
    Coords,
    typer.Option(
        help="What the coordinates are: of units of their own, of one unit, or longitude and latitude in degrees, "
        "and others after them."
    ),
]
Model = Annotated[str, typer.Option(help="A pretrained model's name or a file of weights.")]
Finetune = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="STEPS",
        help="Adapt the model to the observations first, from about 1,000 on: 100 to 500 "
        "steps. Compare on blocks that are held out.",
    ),
]
OfStrategy = Annotated[
    Strategy, typer.Option(help="Every place sees all observations, or those around it; auto: by number and noise.")
]
Views = Annotated[
    bool,
    typer.Option(
        help="Ask the model four times, in coordinates that are turned, mirrored and a little scaled, where there are "
        "up to 1,500 observations and the model is a pretrained one: more accurate, and takes four times as long."
    ),
]
Quantiles = Annotated[
    list[float] | None,
    typer.Option(
        help="Probabilities whose quantiles are written, as Y_q0.025: 0.025 0.975 for the ends of 95 % intervals.",
        metavar="Q...",
        show_default=False,
    ),
]
Above = Annotated[
    list[float] | None,
    typer.Option(
        help="Thresholds: the probability that the value (of counts: the rate) is larger is written, as Y_above_0.2, "
        "and drawn.",
        metavar="VALUE...",
        show_default=False,
    ),
]
Noise = Annotated[bool, typer.Option(help="Standard deviation of a new observation, or of the noiseless function.")]


def read_observed(
    path: Path,
    columns: Sequence[str],
    covariates: Sequence[str],
    others: Sequence[str | None],
    dated: Sequence[str],
    at: Path | None,
) -> Any:
    """The file as it is, and with dates in the columns `dated`, as it is interpolated. **Raises** `ValueError` where
    one of the `columns`, `covariates` or `others` (but None) is missing, or is not of numbers; of the covariates some
    may be missing where `at` is a grid."""
    from . import tables

    given = tables.read(path)
    observed = tables.with_dates(given, dated)
    gridded = at is not None and tables.ending(at) in (".nc", ".zarr")
    beside = [name for name in covariates if not gridded or name in observed]
    tables.check_columns(
        observed, [*columns, *beside, *(name for name in others if name is not None)], path, dated=dated
    )
    return given, observed


def read_places(
    path: Path, columns: Sequence[str], dated: Sequence[str], observations: Any, names: Sequence[str]
) -> Any:
    """The same of where to predict averages; `observations`: the file as it is, whose dates have a zone where these do;
    `names`: columns that are names, as they are written."""
    from . import tables

    return _places(tables.read(path, lambda column: column.name in names), path, columns, dated, observations)


def read_points(
    path: Path, columns: Sequence[str], dated: Sequence[str], observations: Any, scored: Sequence[str | None]
) -> Any:
    """The same of where to predict values; all but the `columns` and those that are `scored` are only copied."""
    from . import tables

    used = {*columns, *scored}
    wanted = tables.read(path, lambda column: column.name not in used, tables.copied)
    return _places(wanted, path, columns, dated, observations)


def _places(wanted, path, columns, dated, observations):
    from . import tables

    target = tables.with_dates(wanted, dated)
    tables.check_columns(target, columns, path, dated=dated)
    tables.check_zones(observations, wanted, dated)
    return wanted, target


def check_kind(counts: Counts | None, exposure: str | None, lognormal: bool) -> None:
    """**Raises** `ValueError` for an exposure of no counts, and counts that are log-normal."""
    if exposure is not None and counts is None:
        raise ValueError("--exposure is of counts: say which, --counts poisson or --counts binomial.")
    if lognormal and counts is not None:
        raise ValueError("--counts have distributions of their own: leave --lognormal out.")


def library_options(coords: Coords, model: str, finetune: int, strategy: Strategy, views: bool) -> dict[str, Any]:
    """What these are called in `npax.interpolate` and `npax.average`, and whether a bar is shown."""
    from ._process import err

    return {
        "coords": coords.value,
        "model": model,
        "finetune": finetune,
        "strategy": strategy.value,
        "views": "auto" if views else None,
        "progress": err.is_terminal,
    }


def described(found: Any, y: Sequence[str]) -> str:
    """The strategy of what was predicted, in words: one of all columns, or of each."""
    words = {"exact": "every place sees all observations", "tiled": "a place sees the observations around it"}
    gridded = hasattr(found, "data_vars")
    told = {name: found[f"{name}_mean"].attrs["strategy"] for name in y} if gridded else found.attrs["strategy"]
    each: dict[str, str] = told if isinstance(told, dict) else dict.fromkeys(y, str(told))
    if len({*each.values()}) == 1:
        each = {"": each[y[0]]}
    return "; ".join(f"{name} {strategy} ({words[strategy]})".strip() for name, strategy in each.items())


def kind_of(counts: Counts | None) -> Any:
    """npax's own, or None."""
    from .. import counts as kinds

    return None if counts is None else {Counts.poisson: kinds.Poisson, Counts.binomial: kinds.Binomial}[counts]()
