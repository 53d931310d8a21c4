"""Checkpoints: written whole or not at all, checked when read, the one before kept."""

import hashlib
import json
import re
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from ..devices import alike, numbers, on_host
from ..files import write_atomically
from ..warn import warn

T = TypeVar("T")
_NAME = re.compile(r"step-(\d{9})\.safetensors")


class DamagedFile(ValueError):
    """A file whose content is not what was written."""


def pack(arrays: dict[str, np.ndarray], about: dict) -> bytes:
    """Arrays and a description as one safetensors file with a checksum."""
    arrays = {name: np.asarray(a, order="C") for name, a in arrays.items()}
    text = json.dumps(about, default=plain)
    about = {"about": text, "sha256": _digest(arrays), "about_sha256": _digest_text(text)}
    foreign = {name: str(a.dtype) for name, a in arrays.items() if a.dtype.kind == "V"}  # bfloat16, which NumPy lacks
    if foreign:
        about["dtypes"] = json.dumps(foreign)
    arrays |= {name: arrays[name].view(f"u{arrays[name].itemsize}") for name in foreign}
    return _in_order(safetensors.numpy.save(arrays, about))


def _in_order(content: bytes) -> bytes:
    """The same file with the entries of its header in order: safetensors writes those of its description in any."""
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def plain(value):
    """For JSON, a number of NumPy's or JAX's as one of Python's."""
    if np.ndim(value) == 0 and hasattr(value, "item"):
        return value.item()
    raise TypeError(f"A description holds numbers, texts, lists and dictionaries of such; got {value!r}.")


def unpack(path: Path) -> tuple[dict[str, np.ndarray], dict]:
    """What `pack` packed. **Raises** `DamagedFile` where the content does not match its checksum."""
    try:
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + size])["__metadata__"]
        arrays = safetensors.numpy.load(content)
        foreign = json.loads(metadata.get("dtypes", "{}"))
        arrays |= {name: arrays[name].view(jnp.dtype(dtype)) for name, dtype in foreign.items()}
        text, checksum = metadata["about"], metadata["sha256"]
        about = json.loads(text)
        if not isinstance(about, dict):
            raise TypeError(f"its description is {text[:100]}")
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFile(f"{path} is damaged or not a file that npax wrote: {error}") from error
    if checksum != _digest(arrays) or metadata.get("about_sha256", _digest_text(text)) != _digest_text(text):
        raise DamagedFile(f"{path} is damaged: its content does not match its checksum.")
    return arrays, about


def _digest(arrays):
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _digest_text(text):
    return hashlib.sha256(text.encode()).hexdigest()


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
