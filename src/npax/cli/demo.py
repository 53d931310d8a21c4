from pathlib import Path
from typing import Annotated

import typer

from ._process import check_ending, check_output, clear_errors, out


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the map as NetCDF.")] = Path("argo.nc"),
    plot: Annotated[Path, typer.Option(help="Where to write the picture of the map.")] = Path("argo.png"),
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the random hold-out.")] = 0,
    holdout: Annotated[float, typer.Option(help="Share of the profiles that is held out.")] = 0.1,
    model: Annotated[str, typer.Option(help="A pretrained model's name or a file of weights.")] = "gp-universal",
) -> None:
    """Map the world's ocean temperature from 32,436 Argo profiles, with uncertainty.

    The data come with the package; no network and no GPU are needed. Prints how good the prediction is on held-out
    profiles, beside two usual methods, and writes the map.
    """
    with clear_errors():
        import netCDF4 as _  # noqa: F401  (says early what is missing)

        from ..demo import run
        from ._draw import checked_plot

        check_ending(output, ".nc")
        checked_plot(plot)
        for path in (output, plot):
            check_output(path)
        run(output, plot, seed=seed, holdout=holdout, model=model, console=out)
