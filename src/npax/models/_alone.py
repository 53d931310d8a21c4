"""Methods that compile themselves where nobody else does."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import equinox as eqx
import jax
from jax.core import Tracer

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def compiled_alone(method: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The method, which is one compiled program where it is called by itself, on numbers.

    Within `jax.jit` and other transformations, whose arguments are tracers, it is as it stands. By itself it would have
    its loops compiled anew at every call, each for good: seconds, and after some hundred calls the end of the process,
    at the number of memory maps that Linux grants.
    """
    program = eqx.filter_jit(method)

    @functools.wraps(method)
    def alone_or_within(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((args, kwargs)))
        return (method if traced else program)(*args, **kwargs)

    return alone_or_within
