from itertools import zip_longest
from pathlib import Path
from typing import Annotated, cast

import numpy as np
import typer

from . import options as of
from ._process import INTERRUPTED, check_output, clear_errors, err, out


def predict(
    observations: of.Observations,
    x: of.X,
    y: of.Y,
    covariates: of.Covariates = None,
    error: of.Error = None,
    counts: of.OfCounts = None,
    exposure: of.Exposure = None,
    lognormal: of.LogNormal = False,
    at: Annotated[
        Path | None,
        typer.Option(help="Where to predict: a table of points, or a grid (.nc, .zarr).", show_default=False),
    ] = None,
    resolution: Annotated[
        list[float] | None,
        typer.Option(
            help="Predict on a grid over the observations: the size of its cells, one for all coordinates or one for "
            "each; of dates in days.",
            metavar="SIZE...",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="What to write: .nc, .csv, .parquet; or .zarr, for grids of any size.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="A picture: .png, .pdf, .svg.", show_default=False)] = None,
    coords: of.OfCoords = of.Coords.planar,
    model: of.Model = "gp-universal",
    finetune: of.Finetune = 0,
    strategy: of.OfStrategy = of.Strategy.auto,
    views: of.Views = True,
    noise: of.Noise = True,
    quantiles: of.Quantiles = None,
    above: of.Above = None,
) -> None:
    """Predict values and their uncertainty anywhere, from a table of observations.

    Examples:

      npax predict floats.csv --x lon lat --y temp --coords latlon --resolution 1 -o map.nc --plot map.png

      npax predict soil.csv --x x y --y zinc --lognormal --at points.csv -o zinc.parquet

      npax predict soil.csv --x x y --covariates sqrt_dist elev --y zinc --at points.csv -o zinc.parquet

      npax predict cases.csv --x date --y rate --resolution 1 -o days.csv --plot days.png

      npax predict villages.csv --x lon lat --y positive --counts binomial --exposure tested --coords latlon
      --resolution 0.1 --quantiles 0.025 0.975 --above 0.2 -o prevalence.nc

      npax predict floats.csv --x lon lat --y temp --coords latlon --resolution 0.01 -o map.zarr

      npax predict floats.csv --x lon lat date --y temp salt --coords latlon --resolution 1 1 30 -o months.nc

    Coordinates may be dates, written 2020-01-31, 2020-01-31T12:00 or 31.01.2020, where each is of a unit of its own
    (planar, and after longitude and latitude). Those of a time zone are predicted in UTC: a grid of --resolution is in
    UTC, places of --at keep theirs.

    A .zarr folder is written block by block: memory stays bounded, and whatever ends the process (Ctrl-C, a crash), the
    same command goes on where it stopped.

    Writes columns or variables Y_mean and Y_std, the mean and the standard deviation of a new observation (--no-noise:
    of the function that is observed with noise); with --counts of the rate of one unit of exposure. With --quantiles
    and --above further ones, of the same. Where the points or the grid to predict at have a column or variable Y too,
    the prediction is scored on it (not on a grid that is written to .zarr); with --no-noise as on values of the
    function; with --error as on values that have the errors of the same column there, with --counts as on counts of the
    exposure there.
    """
    with clear_errors():
        from ..estimators.dates import scaled_by_themselves
        from ..estimators.degrees import refuse_latitude_first
        from . import tables
        from ._draw import checked_plot, draw
        from ._scores import Scored, print_scores
        from .regular_grid import MOST_CELLS, regular_grid

        if (at is None) == (not resolution):
            raise ValueError("Say where to predict: either --at FILE or --resolution SIZE.")
        beside, errors = list(covariates or []), list(error or [])
        if beside and at is None:
            raise ValueError("--covariates must be known where values are predicted: give these places by --at FILE.")
        of.check_kind(counts, exposure, lognormal)
        if output is None and plot is None:
            raise ValueError("Say what to write: -o FILE (.nc, .csv, .parquet, .zarr), --plot PICTURE or both.")
        if output is not None:
            tables.checked_suffix(output)
        if plot is not None:
            checked_plot(plot, x, y)
        for path in filter(None, (output, plot)):
            check_output(path, observations, at)
        if output is not None:
            tables.check_names([*x, *y], output)
        if coords is of.Coords.latlon:
            refuse_latitude_first(x)
        dated = scaled_by_themselves(x, coords.value)
        given, observed = of.read_observed(observations, [*x, *y], beside, [*errors, exposure], dated, at)
        table = tables.with_floats(tables.as_table(observed, [*x, *y]), [*x, *y])
        store = output if output is not None and tables.ending(output) == ".zarr" else None
        wanted = None
        if at is None:
            most = np.inf if store else MOST_CELLS
            target = regular_grid(table, x, cast(list[float], resolution), most, coords=coords.value)
        else:
            wanted, target = of.read_points(at, [*x, *beside], dated, given, [*y, *errors, exposure])
            if output is not None:
                tables.check_names(target, output)
                tables.check_kinds(target, output)

        from ..estimators import interpolate

        options = of.library_options(coords, model, finetune, strategy, views)
        options |= {"covariates": beside, "error": errors or None, "include_noise": noise}
        options |= {"counts": of.kind_of(counts), "exposure": exposure, "lognormal": lognormal}
        options |= {"quantiles": quantiles or (), "above": above or ()}
        try:
            if store is not None:
                prediction = interpolate(
                    observed, tables.as_grid(target, [*x, *beside]), x=x, y=y, store=store, **options
                )
            else:
                prediction = interpolate(observed, target, x=x, y=y, **options)
        except KeyboardInterrupt:
            if store is None:
                raise
            err.print(f"\nStopped. The same command goes on with the blocks that are missing in {store}.")
            raise typer.Exit(INTERRUPTED) from None
        if output is not None and store is None:
            own = {}
            if wanted is not None and tables.ending(output) in (".csv", ".parquet"):  # these hold zones
                own = {name: wanted[name] for name in dated if tables.of_zones(wanted[name])}
            tables.write(prediction.assign(**own), output)
        out.print(f"strategy: {of.described(prediction, y)}")  # not before: nobody may be reading
        if output is not None:
            out.print(f"prediction: {output}")
        if plot is not None:
            seen, name = table, y[0]
            if counts is not None:
                seen, name = _rates(observed, x, y[0], exposure), f"rate of {y[0]}"
            draw(_thinned(prediction), seen, x, y[0], coords.value, plot, name)
            out.print(f"picture: {plot}")
        if store is None or not hasattr(target, "data_vars"):  # that of a store may be too large
            for name, of_it in zip_longest(y, errors):
                scored = Scored(name, of_it, noise, options["counts"], exposure, lognormal)
                print_scores(scored, prediction, target, table[[*x, name]])


def _rates(observed, x, y, exposure):
    """Counts as the rates that are predicted: of one unit of exposure."""
    from .tables import as_table

    if exposure is None:
        return as_table(observed, [*x, y])
    table = as_table(observed, [*x, y, exposure])
    return table.assign(**{y: table[y] / table[exposure]})


def _thinned(prediction, most=4_000_000):
    """A grid of at most so many cells, every second, third, ... in each direction; a table as it is."""
    if not hasattr(prediction, "data_vars"):
        return prediction
    sizes = prediction.sizes
    long = max(sum(n > 1 for n in sizes.values()), 1)
    step = int(np.ceil((np.prod([*sizes.values()], dtype=float) / most) ** (1 / long)))
    return prediction.isel({d: slice(None, None, min(max(step, 1), max(n - 1, 1))) for d, n in sizes.items()})
