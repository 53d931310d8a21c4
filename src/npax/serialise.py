"""Models on disk: weights as safetensors, and a JSON card that says how to build the model around them."""

import dataclasses
import importlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .arguments import instance
from .files import write_atomically
from .pretrained import find, is_shipped
from .training.checkpoint import DamagedFile, pack, plain, unpack
from .warn import warn

_FORMAT = 1
_TRUSTED = ("npax.", "tinygp.kernels.", "tinygp.transforms.", "equinox.nn.")


def save(path: str | Path, model: eqx.Module, card: dict[str, Any] | None = None) -> None:
    """Writes a model to `path` (`.safetensors`), and its card beside it (`.json`).

    The weights file is complete in itself: arrays, the structure of the model (class names and plain values; never
    code) and a checksum. The card repeats what a person wants to know: `card` (how it was trained, how good it is)
    and the number of parameters. Both are written whole or not at all. Parts may be of classes of your own, which
    `load` is then told.

    **Raises:** `ValueError` for a path that does not end in `.safetensors`; `TypeError` for a part that is no Equinox
    module, array, number, text, tuple or list of such: a function, say.
    """
    instance(eqx.Module, model=model)
    path = _checked(path)
    arrays: dict[str, np.ndarray] = {}
    about = {"format": _FORMAT, "structure": _describe(model, "", arrays), "card": card or {}}
    write_atomically(path, pack(arrays, about))
    summary = {**(card or {}), "model": type(model).__name__, "parameters": sum(a.size for a in arrays.values())}
    write_atomically(path.with_suffix(".json"), (json.dumps(summary, indent=2, default=plain) + "\n").encode())


def load(path: str | Path, classes: Sequence[type[eqx.Module]] = ()) -> Any:
    """The model that `save` wrote, or a pretrained one by its name (`npax.pretrained()` lists them).

    **Arguments:** `classes`: those of the model's parts that are neither of npax, tinygp nor `equinox.nn`, such as a
    bias of your own: `npax.load("model.safetensors", [MyBias])`. A file cannot bring code with it, and their
    `__init__` is not called.

    **Raises:** `FileNotFoundError` where there is no such file and no such pretrained model; `DamagedFile` where the
    content is not what was written, or asks for a class that is not known.
    """
    file = find(path)
    if is_shipped(file):
        return _shipped(file, jax.config.jax_default_device)  # pyright: ignore[reportAttributeAccessIssue]
    return _read(file, _named(classes))


@lru_cache(maxsize=8)
def _shipped(file, device):
    """Read once, and shared: a model never changes. `device` is where its arrays are then."""
    del device
    return _read(file, {})


def _named(classes):
    if not (isinstance(classes, Sequence) and all(isinstance(c, type) and issubclass(c, eqx.Module) for c in classes)):
        raise TypeError(f"`classes` must list classes of Equinox modules, such as [MyBias]; got {classes!r}.")
    return {cls.__name__: cls for cls in classes}


def _read(path, classes):
    arrays, about = _unpacked(path)
    try:
        found = _build(about["structure"], arrays, classes)
    except (KeyError, TypeError, AttributeError) as error:
        raise DamagedFile(f"{path} describes no model: {error!r}.") from error
    if not isinstance(found, eqx.Module):
        raise DamagedFile(f"{path} describes no model: {found!r}.")
    return found


def load_card(path: str | Path) -> dict[str, Any]:
    """What was said of the model when it was saved."""
    return _unpacked(find(path))[1].get("card", {})


def _unpacked(path):
    arrays, about = unpack(path)
    if "step" in about and "format" not in about:
        raise DamagedFile(
            f"{path} is a checkpoint of `fit`, not a model: `fit` with the same arguments and its folder as "
            "`checkpoint` returns the model, which `npax.save` writes."
        )
    if about.get("format") != _FORMAT:
        raise DamagedFile(f"{path} is of format {about.get('format')!r}; this npax reads format {_FORMAT}.")
    return arrays, about


def _checked(path):
    path = Path(path).expanduser()
    if path.suffix != ".safetensors":
        raise ValueError(f"`path` must end in '.safetensors', got '{path}'.")
    return path


def _describe(part, name, arrays):
    part = part.item() if isinstance(part, np.generic) else part
    if part is None or isinstance(part, bool | int | float | str):
        return {"value": part}
    if eqx.is_array(part) and not jnp.issubdtype(part.dtype, jax.dtypes.prng_key):
        arrays[name] = np.asarray(part)
        return {"array": name}
    if isinstance(part, tuple | list):
        items = [_describe(item, f"{name}.{i}", arrays) for i, item in enumerate(part)]
        return {"tuple" if isinstance(part, tuple) else "list": items}
    kind = f"{type(part).__module__}.{type(part).__qualname__}"
    if not isinstance(part, eqx.Module):
        raise TypeError(
            f"Cannot save `{name.lstrip('.') or 'model'}`, a {kind}: a part must be an Equinox module, an array, a "
            "number, a text, a tuple or a list of such. Write others by `equinox.tree_serialise_leaves`, and read them "
            "by `tree_deserialise_leaves` into a model made by the same code."
        )
    fields = {f.name: _describe(getattr(part, f.name), f"{name}.{f.name}", arrays) for f in dataclasses.fields(part)}
    return {"module": kind, "fields": fields}


def _build(node, arrays, classes):
    match node:
        case {"value": value}:
            return value
        case {"array": name}:
            array = jax.device_put(arrays[name])
            if array.dtype != arrays[name].dtype:
                warn(
                    f"Weights of {arrays[name].dtype} become {array.dtype}, for JAX has no others now: "
                    '`jax.config.update("jax_enable_x64", True)` before loading keeps them.'
                )
            return array
        case {"tuple": items}:
            return tuple(_build(item, arrays, classes) for item in items)
        case {"list": items}:
            return [_build(item, arrays, classes) for item in items]
        case {"module": kind, "fields": fields}:
            cls = _trusted_class(kind) if kind.startswith(_TRUSTED) else _told(kind, classes)
            defaults = {f.name: f.default for f in dataclasses.fields(cls)}
            newer = {name: value for name, value in defaults.items() if name not in fields}
            if not set(fields) <= set(defaults) or any(value is dataclasses.MISSING for value in newer.values()):
                raise DamagedFile(f"The file's '{kind}' is of another version of it: its parts are {sorted(fields)}.")
            module = object.__new__(cls)
            for name, value in newer.items():
                object.__setattr__(module, name, value)
            for name, field in fields.items():
                object.__setattr__(module, name, _build(field, arrays, classes))
            return module
    raise DamagedFile(f"Cannot read a part of the model: {str(node)[:100]}.")


def _trusted_class(kind):
    module, _, name = kind.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        found = None
    if not (isinstance(found, type) and issubclass(found, eqx.Module)):
        raise DamagedFile(f"The file asks for '{kind}', which is not a part of this npax.")
    return found


def _told(kind, classes):
    name = kind.rpartition(".")[2]
    if name not in classes:
        raise DamagedFile(
            f"The file asks for '{kind}', which is not a part of this npax. If the class is yours, say it: "
            f"`npax.load(path, [{name}])`."
        )
    return classes[name]


def count_parameters(model: eqx.Module) -> int:
    """The number of floating-point values, fixed random features (`FavorAttention`) included."""
    return sum(a.size for a in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))
