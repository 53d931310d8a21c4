"""Stacks of identical blocks: stored as one block whose arrays have a leading axis, compiled once."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

_unroll = contextvars.ContextVar("unroll", default=False)


def scan_blocks(through: Callable[[Any, Any], tuple[Any, Any]], carry: Any, stacked: Any) -> tuple[Any, Any]:
    """`carry, out = through(carry, block)` for each block in turn; the outputs are stacked.

    `stacked` is any PyTree whose arrays have a leading block axis. One block is compiled and looped over, but for
    code traced inside `unrolled()`.
    """
    arrays, rest = eqx.partition(stacked, eqx.is_array)

    def body(carry, block):
        return through(carry, eqx.combine(block, rest))

    if jax.tree.leaves(arrays)[0].shape[0] == 0:  # which `lax.scan` refuses where jit is disabled
        one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), arrays)
        _, out = jax.eval_shape(body, carry, one)
        return carry, jax.tree.map(lambda a: jnp.zeros((0, *a.shape), a.dtype), out)
    return jax.lax.scan(body, carry, arrays, unroll=_unroll.get())


def split_last(stacked: Any) -> tuple[Any, Any]:
    """All blocks but the last, still stacked, and the last."""
    arrays, rest = eqx.partition(stacked, eqx.is_array)
    first, last = jax.tree.map(lambda a: a[:-1], arrays), jax.tree.map(lambda a: a[-1], arrays)
    return eqx.combine(first, rest), eqx.combine(last, rest)


@contextlib.contextmanager
def unrolled() -> Iterator[None]:
    """Code traced inside writes all blocks out: slower to compile, but gradients no longer pass through a loop that
    copies what every block keeps for them. `fit` trains this way, about 1.5 times faster on CPUs.
    """
    token = _unroll.set(True)
    try:
        yield
    finally:
        _unroll.reset(token)
