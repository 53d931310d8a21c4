"""Checks of arguments that classes share."""

import inspect
import sys
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import jax
import jax.random as jr
import numpy as np


def whole_number(least: int, **numbers: Any) -> None:
    """**Raises** `ValueError` for the first argument that is none, or is below `least`; `True` is none."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"`{name}` must be a whole number, at least {least}; got {value!r}.")


def true_or_false(**flags: Any) -> None:
    """**Raises** `ValueError` for the first argument that is neither: a text such as "no" would be taken for yes."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool):
            raise ValueError(f"`{name}` must be True or False, got {value!r}.")


def widths(**layers: Any) -> None:
    """**Raises** `TypeError` for the first argument that is no sequence; the network knows what its widths may be."""
    for name, sizes in layers.items():
        if not isinstance(sizes, Sequence):
            raise TypeError(f"`{name}` must list the widths of its layers, such as (64, 64); got {sizes!r}.")


def instance(kind: type, **parts: Any) -> None:
    """**Raises** `TypeError` for the first argument that is of another kind: a class, say, its name, or a function."""
    for name, part in parts.items():
        if not isinstance(part, kind):
            meant = _meant(kind, part)
            called = f"; write `{_call(meant)}`" if meant else ""
            raise TypeError(f"`{name}` must be an instance of {kind.__name__}; got {part!r}{called}.")


def _meant(kind, part):
    """The class that was given in place of an instance, itself or by its name."""
    if isinstance(part, type):
        return part if issubclass(part, kind) else None
    named = (k for k in kind.__subclasses__() if isinstance(part, str) and k.__name__.lower() == part.lower())
    return next(named, None)


def _call(kind):
    """How one is made, of the package that has it."""
    package = kind.__module__.rpartition(".")[0]
    public = getattr(sys.modules.get(package), kind.__name__, None) is kind
    arguments = "..." if inspect.signature(kind).parameters else ""
    return f"{package + '.' if public else ''}{kind.__name__}({arguments})"


def one_key(key: Any) -> None:
    """**Raises** `TypeError` for a `key` that is none of JAX's, such as a number; `ValueError` for several."""
    if not isinstance(key, jax.Array | np.ndarray):
        example = key if isinstance(key, int | np.integer) else 0
        raise TypeError(f"`key` must be a key, such as `jax.random.key({example})`; got {key!r}.")
    try:
        one = jr.key_data(key).ndim == 1
    except TypeError:  # JAX knows what a key is
        one = False
    if not one:
        raise ValueError(f"`key` must be one key, such as `jax.random.key(0)`; got an array {key.dtype}{[*key.shape]}.")


def booleans(**masks: Any) -> None:
    """**Raises** `TypeError` for the first mask of something else: 255 would count 255 times."""
    for name, mask in masks.items():
        dtype = getattr(mask, "dtype", None) or np.asarray(mask).dtype
        if not np.issubdtype(dtype, np.bool):
            raise TypeError(f"`{name}` must be of True and False, got {dtype}: write `{name} != 0`.")
