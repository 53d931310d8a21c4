import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..arguments import whole_number
from ..task import Task


def split(
    key: PRNGKeyArray,
    x: Float[Array, "n dx"],
    y: Float[Array, "n dy"],
    valid: Bool[Array, " n"],
    *,
    low: int,
    high: int,
    nt: int,
) -> Task:
    r"""Observations as a task: $n_c \sim U\{\texttt{low}, \dots, \texttt{high}\}$ of them, drawn at random, are the
    context, up to `nt` of the others the targets. What is not `valid` is neither.

    Where fewer than `high + 1` are valid, one of them at least stays a target.

    **Shapes:** `high` context slots, `nt` targets. All others are targets with `nt = n - low`.
    """
    u = jr.uniform(key, (len(x) + 1,))
    order = jax.lax.top_k(jnp.where(valid, u[1:], -1.0), min(high + nt, len(x)))[1]
    count = jnp.sum(valid, dtype=jnp.int32)
    size = low + jnp.floor(u[0] * (high - low + 1)).astype(jnp.int32)
    size = jnp.minimum(size, jnp.maximum(count - 1, 0))
    at = size + jnp.arange(nt)
    context, targets = order[:high], order[jnp.minimum(at, len(order) - 1)]
    x, y = (jnp.where(valid[:, None], a, 0.0) for a in (x, y))
    mask_c = jnp.arange(high) < size
    return Task(x[context], y[context], mask_c, x[targets], y[targets], at < count)


def check_sizes(low: int, high: int, nt: int | None, n: int) -> int:
    """The number of target slots, `n - low` if `nt` is None. **Raises** `ValueError` for sizes that cannot be."""
    whole_number(0, low=low, high=high)
    if not low <= high < n:
        raise ValueError(
            f"The context sizes must satisfy 0 <= low <= high < {n}, the number of points; got low={low}, high={high}."
        )
    if nt is not None and not 1 <= nt <= n - low:
        raise ValueError(f"`nt` must be between 1 and {n - low}, the most points that are not context; got {nt}.")
    return n - low if nt is None else nt
