"""What tells one computation from another: a digest of arrays, models and plain values."""

import dataclasses
import functools
import hashlib
import inspect
import re
from collections.abc import Iterable
from types import FunctionType, MethodType, ModuleType
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .devices import on_host

PIECE, CHUNK = 2**16, 2**25
"""Numbers that are read at a time, and of what comes in chunks, which are computed whole, at most (256 MB)."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Of a function among settings: another in every process."""


_TOLD = (type(None), bool, int, float, str, slice)
"""Settings of which the text of a structure says all."""


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
        _update(digest, _static(part), within)
        leaf: Any
        for leaf in leaves:
            leaf = inspect.unwrap(leaf) if isinstance(leaf, FunctionType) else leaf  # of checks of types, for one
            if not any(leaf is other for other in within):  # it may call itself
                _update(digest, _made_of(leaf), (*within, leaf))
            if not hasattr(leaf, "shape"):
                name = object.__repr__(leaf) if _is_plain_object(leaf) else repr(leaf)
                digest.update(_ADDRESS.sub("", name).encode())
                continue
            leaf = _on_host(leaf)
            digest.update(f"{getattr(leaf, 'dims', '')} {leaf.shape} {leaf.dtype}".encode())
            rows = _rows(leaf) if leaf.ndim else 1
            for start in range(0, len(leaf) if leaf.ndim else 1, rows):
                piece = np.ascontiguousarray(leaf[start : start + rows] if leaf.ndim else leaf)
                digest.update(repr(piece.tolist()).encode() if piece.dtype.hasobject else piece.tobytes())


def _rows(leaf):
    """Of an array, those that are read at a time: of one in chunks a whole row of these, within bounds."""
    piece, most = (n * len(leaf) // max(leaf.size, 1) for n in (PIECE, CHUNK))
    chunks = getattr(leaf, "chunks", None)
    return max(1, piece, min(most, chunks[0][0]) if chunks else 0)


def _made_of(leaf):
    """What a function, or an object that says nothing of itself, holds."""
    if isinstance(leaf, FunctionType):
        return (*map(content, leaf.__closure__ or ()), leaf.__defaults__, leaf.__kwdefaults__)
    if isinstance(leaf, functools.partial):
        return leaf.func, leaf.args, leaf.keywords
    if isinstance(leaf, MethodType):
        return leaf.__func__, leaf.__self__
    if isinstance(leaf, set | frozenset):
        return sorted(leaf, key=repr)
    return (vars(leaf),) if _is_plain_object(leaf) else ()


def _is_plain_object(leaf):
    """Whether it is what its attributes, or elements of a set, say: `repr` says less of arrays, and in no fixed order
    of sets."""
    named = isinstance(leaf, type | ModuleType | FunctionType | MethodType | functools.partial)
    holds = hasattr(leaf, "__dict__") and not hasattr(leaf, "shape")
    return isinstance(leaf, set | frozenset) or (holds and not named)


def content(cell: Any) -> Any:
    """What a function closes over."""
    try:
        return cell.cell_contents
    except ValueError:  # a name that is bound later
        return None


def _static(part):
    """Functions and objects in fields that are settings of a PyTree: its structure tells their names alone."""
    for node in jax.tree.leaves(part, is_leaf=lambda node: isinstance(node, eqx.Module)):
        for field in dataclasses.fields(node) if isinstance(node, eqx.Module) else ():
            value = getattr(node, field.name, None)
            if not field.metadata.get("static", False):
                yield from _static(value)
            elif not isinstance(value, _TOLD):
                yield value


def _on_host(leaf):
    """An array of JAX's as one of numpy's, keys as their numbers; whatever else has a shape as it is."""
    return on_host(leaf) if isinstance(leaf, jax.Array) else leaf
