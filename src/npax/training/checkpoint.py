"""Checkpoints: written whole or not at all, checked when read, the one before kept."""

import re
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import numpy as np

from ..devices import alike, numbers, on_host
from ..files import write_atomically
from ..packed import DamagedFile, pack, unpack
from ..warn import warn

T = TypeVar("T")
_NAME = re.compile(r"step-(\d{9})\.safetensors")


def write_checkpoint(folder: Path, step: int, state, about: dict, keep: int = 2) -> Path:
    """Saves the arrays of a PyTree as `step-000001234.safetensors`; the `keep` newest stay. Those of later steps go."""
    leaves = jax.tree.leaves(eqx.filter(state, eqx.is_array))
    path = folder / f"step-{step:09d}.safetensors"
    write_atomically(path, pack({f"{i:05d}": on_host(a) for i, a in enumerate(leaves)}, {**about, "step": step}))
    found = checkpoints(folder)
    after = found.index(path) + 1
    for old in (*found[: max(after - keep, 0)], *found[after:]):  # later steps are of a run that this one replaces
        old.unlink()
    for leftover in folder.glob("step-*.safetensors.partial-*"):
        leftover.unlink()
    return path


def read_checkpoint(folder: Path, state: T) -> tuple[T, dict] | None:
    """The newest sound checkpoint, poured into a PyTree of the same structure; None where there is none.

    A damaged file is named in a warning and passed over. **Raises** `ValueError` where the newest sound one is of
    another model or optimiser.
    """
    found = newest(folder)
    if found is None:
        return None
    path, arrays, about = found
    dynamic, static = eqx.partition(state, eqx.is_array)
    leaves, treedef = jax.tree.flatten(dynamic)
    stored = [arrays[name] for name in sorted(arrays)]
    if [(a.shape, a.dtype) for a in stored] != [(a.shape, a.dtype) for a in map(numbers, leaves)]:
        raise ValueError(
            f"{path} belongs to another model, optimiser or number of seeds than the one given. "
            "Use another `checkpoint` folder, or the arguments that this one was started with."
        )
    found = [alike(jax.device_put(a), leaf) for a, leaf in zip(stored, leaves, strict=True)]
    return eqx.combine(jax.tree.unflatten(treedef, found), static), about


def newest(folder: Path) -> tuple[Path, dict[str, np.ndarray], dict] | None:
    """The newest sound checkpoint: its file and what was packed; None where there is none.

    A damaged file is named in a warning and passed over.
    """
    for path in reversed(checkpoints(folder)):
        try:
            return path, *unpack(path)
        except DamagedFile as error:
            warn(f"{error} Going back to the checkpoint before it.")
    return None


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoint files of a folder, oldest first."""
    return sorted(path for path in folder.glob("step-*.safetensors") if _NAME.fullmatch(path.name))
