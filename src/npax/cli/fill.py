from pathlib import Path
from typing import Annotated

import typer

from ._process import clear_errors, err, out
from .predict import Coords


def fill(
    field: Annotated[Path, typer.Argument(help="The field with gaps (NaN): .nc or .zarr.", show_default=False)],
    y: Annotated[str, typer.Option(help="The variable to fill.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="What to write: .nc or .zarr.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="A drawing of the first picture: .png, .pdf, .svg.", show_default=False)
    ] = None,
    coords: Annotated[
        Coords, typer.Option(help="What the drawing is of; latlon: a map. The answer does not depend on it.")
    ] = Coords.planar,
    model: Annotated[
        str, typer.Option(help="A pretrained model of pictures or a file of weights.")
    ] = "field-universal",
    finetune: Annotated[
        int, typer.Option(min=0, metavar="STEPS", help="Adapt the model to the field first; 100 is good.")
    ] = 0,
) -> None:
    """Fill the gaps of a field on a grid, such as a satellite's picture under clouds, and say how sure that is.

    Example:

      npax fill sst.nc --y sst -o filled.nc --plot filled.png

    A picture is the last two dimensions of the variable; those of a stack (of times, of depths) are filled one by one.
    Writes the variables Y_mean and Y_std, at all pixels: the mean and the standard deviation of a new observation.
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
        found = tables.read_grid(field)
        if y not in found.data_vars:
            raise ValueError(f"'{field}' has no variable '{y}'; it has: {', '.join(map(str, found.data_vars))}.")

        from ..estimators import fill_gaps

        filled = fill_gaps(found, y, model=model, finetune=finetune, progress=err.is_terminal)
        seen = found[y].notnull()
        if output is not None:
            tables.write(filled, output)
            out.print(f"filled: {output}", soft_wrap=True)
        if plot is not None:
            first = dict.fromkeys(filled[f"{y}_mean"].dims[:-2], 0)
            down, across = filled[f"{y}_mean"].dims[-2:]
            draw_grid(filled.isel(first), (str(across), str(down)), y, coords.value, plot)
            out.print(f"picture: {plot}", soft_wrap=True)
        err.print(f"{int(seen.sum()):,} of {seen.size:,} pixels were seen.")
