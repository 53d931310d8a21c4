"""A directory of one's own data sets as tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ..inference import Standardiser, coordinates
from ..inference.buckets import pad
from ..warn import warn
from .stations import StationTask


def from_directory(
    path: str | Path,
    x: str | Sequence[str],
    y: str | Sequence[str],
    *,
    coords: str = "planar",
    low: int = 1,
    high: int | None = None,
    nt: int | None = None,
) -> StationTask:
    """Tasks from a directory of files, each of which is one field or data set: one model is trained on all of them.

    ```python
    tasks = npax.tasks.from_directory("surveys/", x=["easting", "northing"], y="lead")
    model = npax.fit(npax.models.presets.tnp_kr_sa(2, 1, key=key), tasks, steps=5000, key=key).model
    npax.NeuralProcessRegressor(model=model).fit(X, y)  # a new survey
    ```

    Every draw picks a file and cuts it into context and targets anew. Files of different sizes are padded to the
    largest and masked. Locations fill [-2, 2] in each file, and values have mean 0 and standard deviation 1 in each
    context, as `NeuralProcessRegressor` has it.

    **Arguments:**

    - `path`: the directory, of .csv (columns divided by commas, semicolons, tabs or spaces), .parquet, .nc and .zarr;
      other files are not looked at.
    - `x`, `y`: columns of tables; coordinates and variables of NetCDF and Zarr, which are laid out with one row per
      value. Text in them is an error, and so is NaN in `x`; NaN in `y` is missing. Of several `y` rows are taken that
      have all of them (with a warning where others have some: models know no missing columns).
    - `coords`: "planar", "isotropic", or "latlon" for `x` = longitude and latitude (then the model takes three
      coordinates).
    - `low`, `high`, `nt`: as for `StationTask`, `high` half of the largest file.

    **Raises:** `ValueError` which names the file; `FileNotFoundError` where there are none.
    **Pitfalls:** all is in memory, each file as large as the largest. Some dozens of files make a specialist of what
    they have in common; with a few, fine-tune a pretrained model instead (`npax.finetune`).
    """
    folder, xs, ys = Path(path), *([names] if isinstance(names, str) else list(names) for names in (x, y))
    if not folder.is_dir():
        raise FileNotFoundError(f"`path` must be a directory, and there is no '{folder}'.")
    from ..data.tables import SUFFIXES, ending  # needs pandas and xarray

    files = sorted(file for file in folder.iterdir() if ending(file) in SUFFIXES)
    if not files:
        raise FileNotFoundError(f"'{folder}' holds none of {', '.join(SUFFIXES)}: put one file per data set there.")
    parts = [_points(file, xs, ys, coords) for file in files]
    partly = sum(some for *_, some in parts)
    if partly:
        of_all = partly + sum(len(values) for _, values, _ in parts)
        warn(
            f"{partly:,} of {of_all:,} rows hold some of {', '.join(ys)} and not all: they are left out. To keep them, "
            "train a model of one column for each `y`."
        )
    n = max(len(values) for _, values, _ in parts)
    locations = jnp.asarray(np.stack([pad(a, n) for a, _, _ in parts]), jnp.float32)
    values = jnp.asarray(np.stack([pad(b, n) for _, b, _ in parts]), jnp.float32)
    valid = jnp.asarray(np.arange(n) < np.array([[len(b)] for _, b, _ in parts]))
    high = n // 2 if high is None else high
    return StationTask(locations, values, valid, low=low, high=high, nt=nt, standardise=True)


def _points(file, x, ys, coords):
    """Locations and values of a file, as a model wants them, and how many rows have some of the values, not all."""
    from ..data.tables import as_table, check_columns, read

    found = read(file)
    check_columns(found, [*x, *ys], file)
    table = as_table(found, [*x, *ys])
    if table is not found:
        found.close()
    locations, values = (table[names].to_numpy(np.float64) for names in (x, ys))
    bad = ~np.isfinite(locations).all(axis=1)
    if bad.any():
        raise ValueError(f"'{file}' has {bad.sum():,} rows where {', '.join(x)} is NaN or infinite: remove them.")
    there = np.isfinite(values).all(axis=1)
    if there.sum() < 2:
        raise ValueError(f"'{file}' has {there.sum()} values of {', '.join(ys)}: a data set needs two at least.")
    system = coordinates(coords)
    try:
        positions = system.positions(locations[there])
    except ValueError as error:
        raise ValueError(f"'{file}': {error}") from error
    partly = int(np.sum(np.isfinite(values).any(axis=1) & ~there))
    return system.frame(positions)(positions), Standardiser.of(values[there])(values[there]), partly
