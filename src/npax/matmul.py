"""The product of tokens and weights, with a gradient that is fast on CPUs."""

import contextlib
import functools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

# JAX knows of these: what was traced under other ones, within a `jit`, is traced again.
_summed = jax.make_user_context(False)
_awaited = jax.make_user_context(False)
"""Whether the promised gradient is still to come: one that is taken by now is another, such as a step within a step."""


def matmul(x: Float[Array, "n size_in"], w: Float[Array, "size_in size_out"]) -> Float[Array, "n size_out"]:
    """`x @ w`, with a faster gradient in code traced inside `summed_over_tasks()`."""
    return _product(x, w) if _summed.value else x @ w


@contextlib.contextmanager
def summed_over_tasks() -> Iterator[None]:
    """A promise about the code traced inside: wherever it is mapped over tasks by `vmap`, gradients are taken of the
    mapped function and thus summed over tasks, as in `jax.grad(lambda w: jnp.mean(jax.vmap(loss)(w, tasks)))`.

    The gradient of a weight is then one product over the rows of all tasks. Left to itself, autodiff contracts tasks
    and rows as two axes, for which XLA's CPU backend first transposes every activation: a training step of a wide
    network takes twice as long. `fit` trains this way.

    Derivatives of reverse mode that are taken inside, of each task by itself, are their own, as without the promise.
    **Pitfall:** forward mode (`jax.jvp`) is not there inside, nor are second derivatives of the sum itself.
    """
    with _summed(True), _awaited(True):
        yield


def as_now() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """What restores the promise that holds now: for gradients of custom rules, traced when the `with` has ended."""
    return functools.partial(_summed, True) if _summed.value else contextlib.nullcontext


@jax.custom_vjp
def _product(x, w):
    return x @ w


def _forward(x, w):
    return x @ w, (x, w)


def _backward(residuals, d_y):
    x, w = residuals
    d_w = _over_rows(x, d_y) if _awaited.value else _gradient_of_weight(x, d_y, w)
    return (d_y @ w.T).astype(x.dtype), d_w.astype(w.dtype)


_product.defvjp(_forward, _backward)


@custom_vmap
def _gradient_of_weight(x, d_y, w):
    """`x.T @ d_y`; `w` is there to tell whether it is shared."""
    # XLA's CPU backend copies what stands on the left, transposed: let it be the narrower of the two. The barrier keeps
    # it from changing sides again.
    if x.shape[-1] > d_y.shape[-1]:
        return jax.lax.optimization_barrier(_over_rows(d_y, x)).T
    return _over_rows(x, d_y)


def _over_rows(a, b):
    return jax.lax.dot_general(a, b, (((0,), (0,)), ((), ())))


@_gradient_of_weight.def_vmap
def _gradient_under_vmap(size, batched, x, d_y, w):
    x, d_y = (a if b else jnp.broadcast_to(a, (size, *a.shape)) for a, b in zip((x, d_y), batched[:2], strict=True))
    if batched[2]:
        return jnp.einsum("bni,bno->bio", x, d_y), True
    # Only the sum over tasks is seen: an equal part of it for each serves, and XLA drops the detour.
    total = _gradient_of_weight(x.reshape(-1, x.shape[-1]), d_y.reshape(-1, d_y.shape[-1]), w)
    return jnp.broadcast_to(total / size, (size, *total.shape)), True
