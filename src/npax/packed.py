"""Arrays and a description in one file, which tells whether it is what was written."""

import hashlib
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError


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
