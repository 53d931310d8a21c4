"""Methods that compile themselves where nobody else does."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def compiled_alone(
    method: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[Concatenate[Any, Arguments], Result]:
    """The method of a module, which is one compiled program where it is called by itself, on arrays.

    Within `jax.jit` and other transformations, whose arguments are tracers, and of anything that JAX may refuse or
    convert (masked arrays, tables, lists) it is as it stands. By itself it would have its loops compiled anew at every
    call, each for good: seconds, and after some hundred calls the end of the process, at the number of memory maps that
    Linux grants.
    """
    program = eqx.filter_jit(method)

    @functools.wraps(method)
    def alone_or_within(module: Any, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        given = jax.tree.leaves((args, kwargs))
        arrays = all(isinstance(leaf, jax.Array | int) or type(leaf) is np.ndarray for leaf in given)
        traced = any(isinstance(leaf, Tracer) for leaf in [*given, *jax.tree.leaves(module)])
        return (program if arrays and not traced else method)(module, *args, **kwargs)

    return alone_or_within
