"""Tasks of a batch one after another: for work that must stay in the cache, or would not fit memory at once."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax


def in_turns(function: Callable[..., Any], together: int) -> Callable[..., Any]:
    """The function, of which `vmap` computes at most `together` at a time, with the same numbers.

    `function` takes positional arguments whose leaves are arrays. It is not differentiated: wrap it in a
    `jax.custom_vjp` whose two halves take turns.
    """
    turn = jax.custom_batching.custom_vmap(function)

    @turn.def_vmap
    def _(size, batched, *arguments):
        each, shared = eqx.partition(arguments, tuple(batched))

        group = max(n for n in range(1, min(together, size) + 1) if size % n == 0)
        step = turn if group == 1 else function
        out = jax.lax.map(lambda each: step(*eqx.combine(each, shared)), each, batch_size=None if group == 1 else group)
        return out, jax.tree.map(lambda _: True, out)

    return turn
