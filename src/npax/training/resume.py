"""Going on with a training: whose checkpoint it is, and who may write to its folder."""

import contextlib
import dataclasses
import functools
import inspect
import sys
import tempfile
from types import CodeType, FunctionType, MethodType

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from ..files import held
from ..fingerprint import content, fingerprint
from ..warn import warn
from .checkpoint import read_checkpoint, write_checkpoint

LIBRARIES = "npax", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "tinygp", "numpyro", *sys.stdlib_module_names
"""Whose code has a version, which checkpoints need not tell."""
MANY = 2**16
"""Entries of an array that tell it from others."""


@contextlib.contextmanager
def alone(folder):
    """Keeps other trainings out of a folder, where there is one; they would delete one another's checkpoints.

    **Raises** `OSError` where nothing can be written there, before anything is trained."""
    with contextlib.ExitStack() as stack:
        if folder is not None:
            try:
                stack.enter_context(held(folder))
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except BlockingIOError:
                raise ValueError(
                    f"Another training is running in '{folder}': use another `checkpoint` folder, or wait for its end."
                ) from None
        yield


def resumed(state, about, folder):
    """The state of the newest checkpoint, if it is of the run that is asked for; `state` where there is none."""
    found = read_checkpoint(folder, state) if folder is not None else None
    if found is None:
        return state
    state, stored = found
    if stored.get("key", about["key"]) != about["key"]:
        raise ValueError(
            f"'{folder}' holds a run with another `key`: going on with it would not be the run that is asked for. Use "
            "another `checkpoint` folder for each run, the same `key`, or `resume=False` to replace it."
        )
    if stored.get("run", about["run"]) != about["run"]:
        raise ValueError(
            f"'{folder}' holds a run of another model, on other tasks, with another objective, optimiser, batch size "
            "or, in a curriculum, `chunk` (or of another version of npax): going on with it would not be the run that "
            "is asked for. Use another `checkpoint` folder for each run, or `resume=False` to replace it."
        )
    start = stored.get("start", about["start"])
    known = None not in (start, about["start"])
    if known and about["start"] not in (start, fingerprint((state.model,))):
        raise ValueError(
            f"'{folder}' holds a run of a model that started with other weights than the one given: going on with it "
            "would forget these. Use another `checkpoint` folder for each run, or `resume=False` to replace it."
        )
    about["start"] = start
    if int(state.step) > about["steps"]:
        raise ValueError(
            f"'{folder}' holds a run of {int(state.step)} steps, more than `steps`={about['steps']}. Ask for at least "
            "as many, use another `checkpoint` folder, or `resume=False` to replace it."
        )
    return state


def fingerprint_of_run(state, curriculum, objective, optimizer, chunk):
    """Of all that a run depends on beside its key, the number of steps and the optimiser's rates: these may change."""
    shapes = jax.tree.map(lambda a: a.shape if eqx.is_array(a) else a, (state.model, state.opt_state))
    of_curriculum = chunk if len(curriculum.stages) > 1 else None
    samplers = sorted(_codes_of_samplers([stage.tasks for stage in curriculum.stages]))
    others = (samplers,) if samplers else ()
    params = eqx.filter(state.model, eqx.is_inexact_array)
    others += tuple(_chosen(optimizer, params))
    return fingerprint((shapes, curriculum, objective, _code(objective), _updates(optimizer), of_curriculum, *others))


def _codes_of_samplers(part):
    """What the methods of samplers of a user's own do, and those of Equinox modules that they hold, such as a prior."""
    if isinstance(part, list | tuple):
        return set().union(*map(_codes_of_samplers, part))
    if not (isinstance(part, eqx.Module) or hasattr(part, "sample")):
        return set()
    own = [kind for kind in type(part).__mro__ if kind.__module__.split(".")[0] not in LIBRARIES]
    methods = [(name, inspect.unwrap(getattr(kind, name))) for kind in own for name in vars(kind)]
    found = {f"{name} {_code(method)}" for name, method in methods if isinstance(method, FunctionType)}
    fields = dataclasses.fields(part) if isinstance(part, eqx.Module) else ()
    return found.union(*(_codes_of_samplers(getattr(part, field.name, None)) for field in fields))


def code_of_run(curriculum, objective):
    """What the objective and the samplers do, where they are a user's own, and the values that they read of modules."""
    return fingerprint((_code(objective), sorted(_codes_of_samplers([stage.tasks for stage in curriculum.stages]))))


def _code(function):
    """What a function of a user's own does: where it is edited, or a value that it reads of its module is another, it
    is another. npax's have a version."""
    function = _plain(function)
    own = isinstance(function, FunctionType) and str(function.__module__).split(".")[0] != "npax"
    return f"{_instructions(function.__code__)} {_values_read(function)}" if own else ""


def _values_read(function):
    """Of the numbers, texts and arrays that a function reads of its module, whether they are the same: of large arrays
    a part tells."""
    found = {name: function.__globals__.get(name) for name in _names(function.__code__)}
    plain = bool | int | float | complex | str | np.ndarray | np.generic | jax.Array
    found = {name: _thinned(a) for name, a in found.items() if isinstance(a, plain) and not isinstance(a, Tracer)}
    return fingerprint(sorted(found.items())) if found else ""


def _thinned(a):
    """Every so many of the entries of a large array, and its shape."""
    if not hasattr(a, "shape") or a.size <= MANY:
        return a
    entries = a.flat if isinstance(a, np.ndarray) else a.reshape(-1)
    return a.shape, entries[:: a.size // MANY]


def _names(code):
    """Those that code reads, and code within it."""
    return {*code.co_names}.union(*(_names(part) for part in code.co_consts if isinstance(part, CodeType)))


def _plain(function):
    """What is within partial, bound, jitted or decorated functions; of another object how it is called."""
    if isinstance(function, functools.partial | eqx.Partial):
        return _plain(function.func)
    if isinstance(function, MethodType):
        return _plain(function.__func__)
    if hasattr(function, "__wrapped__"):
        return _plain(function.__wrapped__)
    return function if isinstance(function, FunctionType) else inspect.unwrap(type(function).__call__)


def _instructions(code):
    return f"{code.co_code.hex()} {code.co_names} {_constant(code.co_consts)}"


def _constant(a):
    """In words that are the same in every process: the order of a set is not."""
    if isinstance(a, CodeType):
        return _instructions(a)
    if isinstance(a, tuple | frozenset):
        parts = list(map(_constant, a))
        return str(parts if isinstance(a, tuple) else sorted(parts))
    return repr(a)


def _updates(optimizer):
    """The names of the functions that update: Yogi's state looks like Adam's."""
    functions = (function for function in _functions(optimizer) if "update" in function.__name__)
    return sorted(f"{function.__module__} {function.__qualname__}" for function in functions)


def _chosen(optimizer, params):
    """Which parameters a user's own masks and labels choose, those that stay as they are, say."""
    found = []
    for function in _functions(optimizer):
        held = dict(zip(function.__code__.co_freevars, map(content, function.__closure__ or ()), strict=True))
        for choice in (held.get("mask"), held.get("param_labels")):  # as optax calls them
            if callable(choice):
                library = str(_plain(choice).__module__).split(".")[0] in LIBRARIES
                choice = None if library else choice(params)
            if choice is not None:
                found.append(str([leaf for leaf in jax.tree.leaves(choice) if isinstance(leaf, int | str)]))
    return sorted(set(found))


def _functions(optimizer):
    """Those that an optimiser is made of, one within another."""
    left, seen = [optimizer.update], set()
    while left:
        part = left.pop()
        if id(part) in seen:  # it may call itself
            continue
        seen.add(id(part))
        if isinstance(part, FunctionType):
            yield part
            left += [content(cell) for cell in part.__closure__ or ()]
        elif isinstance(part, functools.partial | eqx.Partial):
            left += [part.func, *part.args, *part.keywords.values()]
        elif isinstance(part, MethodType):
            left += [part.__func__, *getattr(part.__self__, "__dict__", {}).values()]
        elif isinstance(part, dict):
            left += part.values()
        elif isinstance(part, tuple | list):
            left += part


def write_last(folder, step, state, about, keep):
    """What was trained is not to be lost because it cannot be saved."""
    try:
        write_checkpoint(folder, step, state, about, keep)
    except OSError as error:
        warn(f"The checkpoint of step {step:,} could not be written to '{folder}': {error}.", RuntimeWarning)
