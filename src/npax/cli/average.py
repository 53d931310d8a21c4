from pathlib import Path
from typing import Annotated

import typer

from . import options as of
from ._process import check_output, clear_errors, err, out

SHOWN = 60
"""Rows that are printed; a file has all."""


def average(
    observations: of.Observations,
    x: of.X,
    y: of.Y,
    at: Annotated[
        Path,
        typer.Option(
            help="Places all over the regions: a table of points, or a grid (.nc, .zarr).", show_default=False
        ),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns or variables of --at that name the region of each place; none: all are one.",
            metavar="COLUMN...",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="The column of --at of what each place counts, its area or the people there; none: all the same, "
            "but cells of a grid of longitudes and latitudes by their area.",
            metavar="COLUMN",
            show_default=False,
        ),
    ] = None,
    covariates: of.Covariates = None,
    error: of.Error = None,
    counts: of.OfCounts = None,
    exposure: of.Exposure = None,
    lognormal: of.LogNormal = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="What to write: .csv, .parquet, .nc or .zarr.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="A picture of averages and 95 % intervals: .png, .pdf, .svg.", show_default=False),
    ] = None,
    coords: of.OfCoords = of.Coords.planar,
    model: of.Model = "gp-universal",
    finetune: of.Finetune = 0,
    strategy: of.OfStrategy = of.Strategy.auto,
    views: of.Views = True,
    quantiles: of.Quantiles = None,
    above: of.Above = None,
) -> None:
    """Predict averages over regions and their uncertainty, from a table of observations.

    Examples:

      npax average floats.csv --x lon lat --y temp --coords latlon --at basins.nc --by basin -o basins.csv

      npax average villages.csv --x lon lat --y positive --counts binomial --exposure tested --coords latlon
      --at census.csv --by district --weights people

    Prints, and with -o writes, a row for each region: Y_mean and Y_std, the average and its standard deviation, which
    is more than that of as many independent cells, for their errors are alike; with --counts of the average rate. With
    --quantiles and --above further columns, of the average: for the share of a region above a threshold average the
    column of `npax predict --above`.
    """
    with clear_errors():
        from ..estimators.dates import scaled_by_themselves
        from ..estimators.degrees import refuse_latitude_first
        from . import tables
        from ._draw import checked_plot, draw_regions

        of.check_kind(counts, exposure, lognormal)
        by, beside = list(by or []), list(covariates or [])
        if output is not None:
            tables.checked_suffix(output)
            tables.check_names([*by, *y], output)
        if plot is not None:
            checked_plot(plot, y=y)
        for path in filter(None, (output, plot)):
            check_output(path, observations, at)
        if coords is of.Coords.latlon:
            refuse_latitude_first(x)
        dated = scaled_by_themselves(x, coords.value)
        others = [*(error or []), exposure]
        given, observed = of.read_observed(observations, [*x, *y], beside, others, dated, at)
        columns = [*x, *beside, *([] if weights is None else [weights])]
        wanted, target = of.read_places(at, columns, dated, given, [name for name in by if name not in columns])
        tables.check_there(target, by, at)
        if output is not None and hasattr(target, "columns"):
            tables.check_kinds(target[by], output)

        from ..estimators import average as averages

        asked = list(quantiles or [])
        drawn = [] if plot is None else [q for q in (0.025, 0.975) if q not in asked]  # of no other picture
        found = averages(
            observed,
            target,
            x=x,
            y=y,
            by=by or None,
            weights=weights,
            covariates=beside,
            error=error,
            counts=of.kind_of(counts),
            exposure=exposure,
            lognormal=lognormal,
            quantiles=[*asked, *drawn],
            above=above or (),
            **of.library_options(coords, model, finetune, strategy, views),
        )
        for name in filter(dated.__contains__, by):
            if tables.of_zones(wanted[name]):  # as they were written
                found = found.rename(index=dict(zip(target[name], wanted[name], strict=True)), level=name)
        if plot is not None:
            draw_regions(tables.of_regions(found, by), by, y[0], plot, _in_words(found, y[0], counts))
        found = _without(found, [f"{y[0]}_q{q}" for q in drawn])
        rows = tables.of_regions(found, by)
        if output is not None:  # before anything is printed: nobody may be reading
            gridded = tables.ending(output) in (".nc", ".zarr")
            tables.write(_as_dataset(found) if gridded else rows, output)
        _print(rows, len(by))
        out.print(f"strategy: {of.described(found, y)}")
        if left_out := found.attrs["places_in_no_region"]:
            err.print(f"places in no region: {left_out:,}")
        if output is not None:
            out.print(f"averages: {output}")
        if plot is not None:
            out.print(f"picture: {plot}")


def _without(found, names):
    return found.drop_vars(names) if hasattr(found, "data_vars") else found.drop(columns=names)


def _in_words(found, y, counts):
    """What is averaged, and in which units."""
    units = found[f"{y}_mean"].attrs.get("units", "") if hasattr(found, "data_vars") else ""
    name = y if counts is None else f"rate of {y}"
    return f"average of {name} ({units})" if units else f"average of {name}"


def _as_dataset(found):
    """With a dimension for what names the regions."""
    return found if hasattr(found, "data_vars") else found.to_xarray()


def _print(rows, names):
    """The first `names` columns are those of the region."""
    from rich.table import Table

    table = Table(*map(str, rows.columns), box=None)
    for row in rows.head(SHOWN).itertuples(index=False):
        table.add_row(*map(str, row[:names]), *(f"{value:.4g}" for value in row[names:]))
    out.print(table)
    if len(rows) > SHOWN:
        out.print(f"and {len(rows) - SHOWN:,} more regions")
