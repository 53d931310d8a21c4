"""Where the files of data sets are that do not come with the package."""

import os
from pathlib import Path

VARIABLE = "NPAX_DATA"
"""The environment variable that names the folder of data sets."""


def find(name: str, title: str, contents: str, licence: str, path: str | Path | None) -> Path:
    """The file `name`, at `path`, in the folder `path` or, without one, in the folder that NPAX_DATA names.

    **Raises** `FileNotFoundError`, which says what to put where and under what licence it comes.
    """
    folder = os.environ.get(VARIABLE)
    remedy = (
        f"put '{name}' ({contents}) into a folder and name it by the environment variable {VARIABLE}, by `--data` or "
        f"by `path`. Licence: {licence}."
    )
    if path is None and not folder:
        raise FileNotFoundError(f"{title} does not come with npax: {remedy}")
    place = Path(folder or ".") if path is None else Path(path)
    place = place / name if place.is_dir() else place
    if not place.is_file():
        raise FileNotFoundError(f"There is no '{place}': {remedy}")
    return place
