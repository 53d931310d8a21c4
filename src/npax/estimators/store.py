"""Predictions on disk: Zarr, written block by block, resumable."""

import json
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..files import held, replaced, write_atomically
from ..fingerprint import fingerprint
from ..progress import Progress
from ..warn import warn
from .grid import OWN, Grid

BLOCK = 2**16
"""Places predicted and written at a time."""
COORDINATES = 2**25
"""Numbers of a lazy coordinate up to which it is read once, not a part for each block (256 MB)."""
REQUEST, BLOCKS, DONE = f"{OWN}request", f"{OWN}blocks", f"{OWN}blocks_done"
"""The attributes of the store that say what was asked for, and how much of it is there."""
TEXT = np.dtypes.StringDType()
"""How text is written: of a fixed length it has no specification in format 3."""


class Store:
    """A folder that is filled with a prediction on a grid: a Zarr group (format 3) that xarray opens.

    The group is made whole or not at all, its coordinates with it. Then blocks follow, each a chunk of every variable;
    after each the group's metadata count it, atomically. So whatever kills the process, at most one block is lost.
    Places that are not there yet are NaN.

    **Arguments:** `path`; `grid`; `variables`: name and attributes of each column of what is predicted; `request`:
    what the prediction depends on beside the grid, arrays and plain values: the model, the observations, options.

    **Raises** `FileExistsError` where the folder holds something else, or the answer to another request;
    `BlockingIOError` in `fill` while another process fills it.
    """

    def __init__(self, path: Path, grid: Grid, variables: Sequence[tuple[str, dict[str, Any]]], request: tuple):
        self.path, self.grid, self.names = path, grid.read(COORDINATES), [name for name, _ in variables]
        lengths = grid.even_chunks(BLOCK)
        self.chunks = {d: _cut(grid.sizes[d], length) for d, length in lengths.items()}
        self.count = int(np.prod([len(lengths) for lengths in self.chunks.values()]))
        frame = sorted(self.grid.frame.variables.items(), key=lambda item: str(item[0]))
        places = (tuple(grid.sizes), tuple(lengths.values()), *self.grid.axes, *frame)
        digest = fingerprint((version("npax"), variables, *places, *request))
        if not path.exists():
            self._make(variables, tuple(lengths.values()), digest)
        about = self._about()
        if REQUEST not in about:
            raise FileExistsError(
                f"'{path}' is there already, and is no prediction that npax wrote. Delete it, or choose another name."
            )
        if about[REQUEST] != digest:
            raise FileExistsError(
                f"'{path}' holds {about[DONE]} of {about[BLOCKS]} blocks of another prediction: other observations, "
                "places, attributes, model, options or version of npax. Delete it, or choose another name."
            )

    def fill(self, predict: Callable[[np.ndarray], np.ndarray], *, progress: bool) -> Any:
        """Writes what is missing, `predict(places [n d]) -> [n columns]`, and opens the whole, lazily."""
        import xarray as xr

        if self._about()[DONE] == self.count > 0:
            warn(f"'{self.path}' holds all of this prediction: nothing is computed again.")
            return xr.open_zarr(self.path)
        try:
            with held(self.path):
                self._fill(predict, progress)
        except BlockingIOError as error:
            raise BlockingIOError(f"'{self.path}' is being written by another process: wait for its end.") from error
        return xr.open_zarr(self.path)

    def _fill(self, predict, progress):
        import zarr

        done = self._about()[DONE]
        group = zarr.open_group(self.path, mode="r+", use_consolidated=False)
        arrays: list[Any] = [group[name] for name in self.names]
        for leftover in self.path.glob("*.partial-*"):
            leftover.unlink()
        with Progress("Predicting", self.grid.size, shown=progress) as bar:
            for number, (_, region) in enumerate(self.grid.blocks(self.chunks)):
                slices = tuple(region.values())
                size = int(np.prod([s.stop - s.start for s in slices]))
                if number < done:
                    bar.advance(size)
                    continue
                found = predict(self.grid.points(region)).reshape(*(s.stop - s.start for s in slices), -1)
                for i, array in enumerate(arrays):
                    array[slices] = found[..., i]
                self._count(number + 1)
                bar.advance(size)

    def _make(self, variables, lengths, digest):
        """The group with all its metadata and coordinates, without predictions; under its name once it is whole."""
        import dask.array as da
        import xarray as xr

        frame = self.grid.frame.drop_encoding()  # that of another format of Zarr, perhaps
        frame = frame.assign_attrs({REQUEST: digest, BLOCKS: self.count, DONE: 0})
        empty = da.full(tuple(self.grid.sizes.values()), np.nan, chunks=-1)
        columns: dict[Any, Any] = {name: (tuple(self.grid.sizes), empty, given) for name, given in variables}
        answers = xr.Dataset(columns)
        text = {name: {"dtype": TEXT} for name, variable in frame.variables.items() if variable.dtype.kind == "U"}
        try:
            with replaced(self.path) as partial, warnings.catch_warnings():
                # format 3 does not have this copy of all metadata; xarray looks for it
                warnings.filterwarnings("ignore", message="Consolidated metadata")
                at_least_one = tuple(max(length, 1) for length in lengths)  # an axis may be empty, a chunk not
                chunks = {name: {"chunks": at_least_one} for name in self.names}
                new: dict[str, Any] = {"mode": "w", "zarr_format": 3, "consolidated": False}
                answers.to_zarr(partial, **new, compute=False, encoding=chunks)
                # last, for it says of the whole group which variables are coordinates
                frame.to_zarr(partial, mode="a", encoding=text, consolidated=True)
        except OSError:
            if not self.path.exists():  # or another process has made it in the meantime
                raise

    def _about(self):
        try:
            return json.loads((self.path / "zarr.json").read_text())["attributes"]
        except (OSError, ValueError, KeyError):
            return {}

    def _count(self, done):
        """So many blocks are there."""
        metadata = json.loads((self.path / "zarr.json").read_text())
        metadata["attributes"][DONE] = done
        write_atomically(self.path / "zarr.json", json.dumps(metadata, indent=2).encode())


def _cut(size, length):
    return tuple(min(length, size - start) for start in range(0, size, max(length, 1)))
