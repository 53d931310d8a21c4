"""What tells one computation from another: a digest of arrays, models and plain values."""

import hashlib
import inspect
import re
from collections.abc import Iterable
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

PIECE = 2**16
"""Numbers that are read at a time."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Of a function among settings: another in every process."""


def fingerprint(parts: Iterable[Any]) -> str:
    """The same in every process for the same arrays, PyTrees of them (models, tasks) and plain values. Functions count
    by their names, defaults and what they close over, without what decorators put around them; variables that are not
    in memory are read piece by piece."""
    digest = hashlib.sha256()
    _update(digest, parts, ())
    return digest.hexdigest()


def _update(digest, parts, within):
    for part in parts:
        leaves, structure = jax.tree.flatten(part)
        digest.update(_ADDRESS.sub("", f"{type(part).__name__} {structure}").encode())
        leaf: Any
        for leaf in leaves:
            leaf = inspect.unwrap(leaf) if isinstance(leaf, FunctionType) else leaf  # of checks of types, for one
            if isinstance(leaf, FunctionType) and leaf not in within:  # it may call itself
                cells = (cell.cell_contents for cell in leaf.__closure__ or ())
                _update(digest, (*cells, leaf.__defaults__, leaf.__kwdefaults__), (*within, leaf))
            if not hasattr(leaf, "shape"):
                digest.update(_ADDRESS.sub("", repr(leaf)).encode())
                continue
            leaf = _on_host(leaf)
            digest.update(f"{getattr(leaf, 'dims', '')} {leaf.shape} {leaf.dtype}".encode())
            rows = max(1, PIECE * len(leaf) // max(leaf.size, 1)) if leaf.ndim else 1
            for start in range(0, len(leaf) if leaf.ndim else 1, rows):
                piece = np.ascontiguousarray(leaf[start : start + rows] if leaf.ndim else leaf)
                digest.update(repr(piece.tolist()).encode() if piece.dtype.hasobject else piece.tobytes())


def _on_host(leaf):
    """An array of JAX's as one of numpy's, keys as their numbers; whatever else has a shape as it is."""
    if not isinstance(leaf, jax.Array):
        return leaf
    return np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)
