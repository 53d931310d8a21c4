from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ._process import check_output, clear_errors, err, out
from .options import Above, Coords, Noise, Quantiles


def fill(
    field: Annotated[Path, typer.Argument(help="The field with gaps (NaN): .nc or .zarr.", show_default=False)],
    y: Annotated[
        str | None, typer.Option(help="The variable to fill.", show_default="the only one of two dimensions and more")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="What to write: .nc or .zarr.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="A drawing of the first picture that is not empty: .png, .pdf, .svg.", show_default=False),
    ] = None,
    coords: Annotated[
        Coords | None,
        typer.Option(
            help="What the drawing is of; latlon: a map. The answer does not depend on it.",
            show_default="latlon where there are longitudes and latitudes, else planar",
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="A pretrained model of pictures or a file of weights.")
    ] = "field-universal",
    finetune: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="STEPS",
            help="Adapt the model to gaps like those of the field, cut into it; 100 is usual. Score it: it may lose.",
        ),
    ] = 0,
    dims: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="The two dimensions of a picture.",
            metavar="ROWS COLUMNS",
            show_default="those of a map, else the last two not of time",
        ),
    ] = None,
    noise: Noise = True,
    quantiles: Quantiles = None,
    above: Above = None,
) -> None:
    """Fill the gaps of a field on a grid, such as a satellite's picture under clouds, and say how sure that is.

    Example:

      npax fill sst.nc --y sst -o filled.nc --plot filled.png

    The pictures of a stack (of times, of depths) are filled one by one. Writes the variables Y_mean and Y_std, at all
    pixels: the mean and the standard deviation of a new observation (--no-noise: of the noiseless field), and what
    --quantiles and --above ask for.
    """
    with clear_errors():
        from . import tables
        from ._draw import checked_plot, draw_grid

        if output is None and plot is None:
            raise ValueError("Say what to write: -o FILE (.nc, .zarr), --plot PICTURE or both.")
        for path in filter(None, (field, output)):
            if tables.ending(path) not in (".nc", ".zarr"):
                raise ValueError(f"'{path}' must end in .nc or .zarr: a field on a grid.")
        if output is not None and tables.ending(output) == ".zarr" and output.exists():
            raise FileExistsError(f"'{output}' is there already. Delete it, or choose another name.")
        if plot is not None:
            checked_plot(plot)
        for path in filter(None, (output, plot)):
            check_output(path, field)
        found = tables.read_grid(field)
        y = _only(found, field) if y is None else y
        if y not in found.data_vars:
            raise ValueError(f"'{field}' has no variable '{y}'; it has: {', '.join(map(str, found.data_vars))}.")

        from ..estimators import fill_gaps
        from ..estimators.fill import picture_dims

        drawn = picture_dims(found[y]) if dims is None else dims
        if coords is None:
            coords = Coords.latlon if _on_a_map(found[y], drawn) else Coords.planar
        if plot is not None and coords is Coords.latlon:
            drawn = _north_and_east(found[y], drawn)
        options = {"model": model, "finetune": finetune, "include_noise": noise, "progress": err.is_terminal}
        options |= {"quantiles": quantiles or (), "above": above or ()}
        filled = fill_gaps(found, y, dims=dims, **options)
        seen = found[y].where(np.isfinite(found[y])).notnull()
        if output is not None:
            tables.write(filled, output)
            out.print(f"filled: {output}")
        if plot is not None:
            from ..plot.predictions import places

            down, across = map(str, drawn)
            first = _first(filled[f"{y}_mean"], (down, across))
            rows, columns = np.nonzero(seen.isel(first).transpose(down, across).to_numpy())
            observed = places(filled, across)[columns], places(filled, down)[rows]
            draw_grid(filled.isel(first), (across, down), y, coords.value, plot, observed, y)
            out.print(f"picture: {plot}{_which(filled, first)}")
        err.print(f"{int(seen.sum()):,} of {seen.size:,} pixels were seen.")


def _first(filled, dims):
    """Where in a stack the first picture is that holds anything; the first of all where none does."""
    holds = filled.notnull().any(dims)
    return {dim: int(index) for dim, index in holds.argmax(holds.dims).items()}


def _which(filled, index):
    """The places in a stack, by their coordinates where there are any."""
    found = (f"{dim} {filled.get_index(dim)[i]}" for dim, i in index.items())
    return f" ({', '.join(found)})" if index else ""


def _on_a_map(field, dims):
    """Whether the dimensions of a picture are a latitude and a longitude."""
    from ..estimators.degrees import is_latitude, is_longitude

    kinds = ([is_kind(field[dim]) for dim in dims] for is_kind in (is_longitude, is_latitude))
    return all(dim in field.coords for dim in dims) and all(sum(of_kind) == 1 for of_kind in kinds)


def _north_and_east(field, dims):
    """The two dimensions of a map, that of longitudes last."""
    from ..estimators.degrees import is_longitude

    east = [dim for dim in dims if dim in field.coords and is_longitude(field[dim])]
    if len(dims) != 2 or len(east) != 1:
        raise ValueError(
            "`--coords latlon` draws a map: one of the dimensions of a picture must be named lon or longitude, or have "
            f"the units degrees_east; they are {', '.join(map(str, dims)) or 'none'}. Leave it out to draw pixels."
        )
    return next(dim for dim in dims if dim not in east), east[0]


def _only(dataset, path):
    from ..estimators.fill import fields_of

    names = fields_of(dataset)
    if len(names) != 1:
        there = ", ".join(map(str, dataset.data_vars)) or "none"
        raise ValueError(f"Say by --y which variable of '{path}' to fill; it has: {there}.")
    return str(names[0])
