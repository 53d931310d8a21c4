"""Tasks of a batch one after another: for work that must stay in the cache, or would not fit memory at once."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from .matmul import as_now


def in_turns(function: Callable[..., Any], together: int) -> Callable[..., Any]:
    """The function, of which `vmap` computes at most `together` at a time, with the same numbers.

    `function(operands, *others)`: leaves are arrays. Its gradient, in the `operands` alone, takes turns too (as
    does that of the gradient), and computes the function again: nothing of it stays behind but the arguments.
    """

    @jax.custom_vjp
    def turn(operands, *others):
        return _mapped(function, together)(operands, *others)

    def forward(*arguments):
        return turn(*arguments), arguments

    promise = as_now()

    def pull(operands_and_slope, *others):
        operands, d_out = operands_and_slope
        with promise():
            return jax.vjp(lambda operands: function(operands, *others), operands)[1](d_out)[0]

    def backward(arguments, d_out):
        operands, *others = arguments
        return in_turns(pull, together)((operands, d_out), *others), *(None for _ in others)

    turn.defvjp(forward, backward)
    return turn


def _mapped(function, together):
    turn = jax.custom_batching.custom_vmap(function)

    @turn.def_vmap
    def _(size, batched, *arguments):
        each, shared = eqx.partition(arguments, tuple(batched))

        group = max(n for n in range(1, min(together, size) + 1) if size % n == 0) if size else 1
        step = turn if group == 1 else function
        out = jax.lax.map(lambda each: step(*eqx.combine(each, shared)), each, batch_size=None if group == 1 else group)
        return out, jax.tree.map(lambda _: True, out)

    return turn
