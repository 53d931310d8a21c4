"""Stacks of identical blocks: stored as one block whose arrays have a leading axis, compiled once."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

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


def write_memories(stack: Any, zc: Float[Array, "nc size"], xc: Float[Array, "nc dx"], mask: Bool[Array, " nc"]) -> Any:
    """What targets read of the context at each depth of a stack of blocks that `memorise` and `update`, stacked.

    The last block's update of the context feeds nothing and is not computed.
    """
    blocks, last = split_last(stack)

    def through(zc, block):
        memory = block.memorise(zc, xc, mask)
        return block.update(zc, xc, memory), memory

    zc, memories = scan_blocks(through, zc, blocks)
    end = last.memorise(zc, xc, mask)
    return jax.tree.map(lambda m, end: jnp.concatenate([m, end[None]]), memories, end)


def read_memories(
    stack: Any, memories: Any, zt: Float[Array, "nt size"], xt: Float[Array, "nt dx"]
) -> Float[Array, "nt size"]:
    """Target tokens after all blocks of a stack, each with its memory of the context."""

    def through(zt, layer):
        block, memory = layer
        return block.update(zt, xt, memory), None

    return scan_blocks(through, zt, (stack, memories))[0]


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
