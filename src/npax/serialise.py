"""Models on disk: weights as safetensors, and a JSON card that says how to build the model around them."""

import dataclasses
import importlib
import json
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from .arguments import instance
from .files import write_atomically
from .packed import DamagedFile, pack, plain, unpack
from .pretrained import find, is_shipped
from .warn import warn

_FORMAT = 1
_TRUSTED = ("npax.", "tinygp.kernels.", "tinygp.transforms.", "equinox.nn.")


def save(path: str | Path, model: eqx.Module, card: dict[str, Any] | None = None) -> None:
    """Writes a model to `path` (`.safetensors`), and its card beside it (`.json`).

    The weights file is complete in itself: arrays, the structure of the model (names of classes and functions, and
    plain values; never code) and a checksum. The card repeats what a person wants to know: `card` (how it was trained,
    how good it is) and the number of parameters. Both are written whole or not at all. Parts may be of classes of your
    own, which `load` is then told.

    **Raises:** `ValueError` for a path that does not end in `.safetensors`; `TypeError` for a part that is no Equinox
    module, array, number, text, function of `jax.nn` or `jax.numpy`, tuple or list of such: a dictionary, say.
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

    **Arguments:** `path`: of the file, or a name; `classes`: those of the model's parts that are neither of npax,
    tinygp nor `equinox.nn`, such as a bias of your own: `npax.load("model.safetensors", [MyBias])`. A file cannot bring
    code with it, and their `__init__` is not called.

    **Raises:** `FileNotFoundError` where there is no such file and no such pretrained model; `DamagedFile` where the
    content is not what was written, or asks for a class that is not known; `ValueError` for several `classes` of the
    same name, none of which is the one that was saved.
    """
    _check_classes(classes)
    file = find(path)
    if is_shipped(file):
        return _shipped(file, jax.config.jax_default_device)  # pyright: ignore[reportAttributeAccessIssue]
    return _read(file, classes)


@lru_cache(maxsize=8)
def _shipped(file, device):
    """Read once, and shared: a model never changes. `device` is where its arrays are then."""
    del device
    return _read(file, ())


def _check_classes(classes):
    if not (isinstance(classes, Sequence) and all(isinstance(c, type) and issubclass(c, eqx.Module) for c in classes)):
        raise TypeError(f"`classes` must list classes of Equinox modules, such as [MyBias]; got {classes!r}.")


def _read(path, classes):
    arrays, about = _unpacked(path)
    try:
        classes = _all_told(about["structure"], classes)
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
    if name_of := _name_of_function(part):
        return {"function": name_of}
    kind = _kind(type(part))
    if not isinstance(part, eqx.Module):
        raise TypeError(
            f"Cannot save `{name.lstrip('.') or 'model'}`, a {kind}: a part must be an Equinox module, an array, a "
            "number, a text, a function of jax.nn or jax.numpy, a tuple or a list of such. Write others by "
            "`equinox.tree_serialise_leaves`, and read them by `tree_deserialise_leaves` into a model made by the same "
            "code."
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
        case {"function": name}:
            if name not in _functions():
                raise DamagedFile(f"The file asks for the function '{name}', which this JAX does not have.")
            return _functions()[name]
        case {"module": kind, "fields": fields}:
            cls = classes[kind] if kind in classes else _trusted_class(kind)
            names = [f.name for f in dataclasses.fields(cls)]
            newer = {f.name: _default(f) for f in dataclasses.fields(cls) if f.name not in fields}
            if not set(fields) <= set(names) or any(value is dataclasses.MISSING for value in newer.values()):
                raise DamagedFile(
                    f"The file's '{kind}' is of another version of it: its parts are {sorted(fields)}, the class's "
                    f"{sorted(names)}. New ones need a default."
                )
            module = object.__new__(cls)
            for name, value in newer.items():
                object.__setattr__(module, name, value)
            for name, field in fields.items():
                object.__setattr__(module, name, _build(field, arrays, classes))
            return module
    raise DamagedFile(f"Cannot read a part of the model: {str(node)[:100]}.")


def _trusted_class(kind):
    """The class, in the module that the file names or, where that is no more, in the nearest package around it."""
    *path, name = kind.split(".")
    for end in range(len(path), 0, -1):
        try:
            found = getattr(importlib.import_module(".".join(path[:end])), name, None)
        except ImportError:
            continue
        if isinstance(found, type) and issubclass(found, eqx.Module):
            return found
    raise DamagedFile(f"The file asks for '{kind}', which is not a part of this npax.")


def _all_told(structure, classes):
    """The classes of one's own by the names that the file has for them: of those given the one that is there, or else
    the only one that is called alike. **Raises** `DamagedFile` with all that are missing."""
    wanted = sorted(kind for kind in _kinds(structure) if not kind.startswith(_TRUSTED))
    exact = {kind: [c for c in classes if _kind(c) == kind] for kind in wanted}
    others = [c for c in classes if _kind(c) not in wanted]
    told = {kind: exact[kind] or [c for c in others if c.__name__ == _last(kind)] for kind in wanted}
    missing = [kind for kind in wanted if not told[kind]]
    if missing:
        listed = ", ".join(dict.fromkeys(_last(kind) for kind in missing))
        raise DamagedFile(
            f"The file asks for {', '.join(map(repr, missing))}, not part of this npax. Say which classes are yours: "
            f"`npax.load(path, [{listed}])`, which estimators and functions take as `model`."
        )
    for kind, found in told.items():
        if len(set(found)) > 1:
            raise ValueError(
                f"`classes` has several called {_last(kind)}, and none is '{kind}': give the one that is meant."
            )
    return {kind: found[0] for kind, found in told.items()}


def _kinds(node):
    """The names of all classes in a description."""
    if isinstance(node, dict):
        own = {node["module"]} if isinstance(node.get("module"), str) and "fields" in node else set()
        return own.union(*map(_kinds, node.values()))
    return set().union(*map(_kinds, node)) if isinstance(node, list) else set()


def _last(kind):
    return kind.rpartition(".")[2]


def _kind(cls):
    """Where a class is found; those of Equinox and npax by their public names, whatever module they are in."""
    name, path = cls.__qualname__, cls.__module__.split(".")
    packages = [".".join(path[:end]) for end in range(2, len(path))] if path[0] == "npax" else []
    public = (p for p in ["equinox.nn", *packages] if getattr(sys.modules[p], name, None) is cls)
    return f"{next(public, cls.__module__)}.{name}"


def _default(field):
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


@lru_cache(maxsize=1)
def _functions():
    """Activations and the like by their public names, and what Equinox's `MLP` has at its end unless told otherwise."""
    found = {f"{m.__name__}.{name}": getattr(m, name) for m in (jax.nn, jnp) for name in dir(m) if name[0] != "_"}
    of_numbers = {name: f for name, f in found.items() if callable(f) and not isinstance(f, type)}
    return {"equinox.nn.identity": eqx.nn.MLP(1, 1, 1, 0, key=jr.key(0)).final_activation, **of_numbers}


def _name_of_function(part):
    if not callable(part) or isinstance(part, eqx.Module):
        return None
    return next((name for name, function in _functions().items() if function is part), None)


def count_parameters(model: eqx.Module) -> int:
    """The number of floating-point values, fixed random features (`FavorAttention`) included."""
    return sum(a.size for a in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))
