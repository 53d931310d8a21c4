from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..arguments import booleans
from ..bias import AbstractBias
from ._base import AbstractAttention


def dense_attention(
    q: Float[Array, "heads nq d"],
    k: Float[Array, "heads nk d"],
    v: Float[Array, "heads nk dv"],
    *,
    bias: AbstractBias | None = None,
    xq: Float[Array, "nq dx"] | None = None,
    xk: Float[Array, "nk dx"] | None = None,
    mask: Bool[Array, " nk"] | None = None,
) -> Float[Array, "heads nq dv"]:
    r"""Softmax attention with an optional bias: $\mathrm{softmax}(q k^\top / \sqrt d + B(x_q, x_k))\, v$, per head.

    Materialises the `[heads nq nk]` logits: right for training-sized sets; `scan_attention` gives the same numbers
    in bounded memory. Keys under a `False` mask take no part, whatever they hold; a query without any key (all
    masked, or all biases $-\infty$) receives zeros, and its gradients are zeros. Operands of 16 bits are computed with
    in float32.

    **Raises:** `ValueError` for shapes that do not fit, a bias without locations or of another number of heads.
    """
    check_operands(q, k, v, bias, xq, xk, mask)
    dtype = q.dtype
    q, k, v, bias, xq, xk = widened((q, k, v, bias, xq, xk))
    k, v, xk = hide(mask, k, v, xk)
    s = logits(q, k, bias, xq, xk, mask)
    return jnp.einsum("hqk,hkd->hqd", softmax(s), v).astype(dtype)


def check_operands(q, k, v, bias, xq, xk, mask) -> None:
    """**Raises** `ValueError` where queries, keys, values, mask and locations do not belong together."""
    fits = q.ndim == k.ndim == v.ndim == 3 and len(q) == len(k) == len(v)
    if not (fits and q.shape[2] == k.shape[2] > 0 and k.shape[1] == v.shape[1]):
        raise ValueError(
            "`q`, `k` and `v` must have the shapes [heads, nq, d], [heads, nk, d] and [heads, nk, dv]; got "
            f"{[*q.shape]}, {[*k.shape]} and {[*v.shape]}."
        )
    whole = [name for name, a in {"q": q, "k": k, "v": v}.items() if not jnp.issubdtype(a.dtype, jnp.floating)]
    if whole:
        raise TypeError(f"`{whole[0]}` must be of real numbers, got {(q, k, v)['qkv'.index(whole[0])].dtype}.")
    if mask is not None:
        booleans(mask=mask)
        if mask.shape != k.shape[1:2]:
            raise ValueError(f"`mask` must have the shape [{k.shape[1]}], one for each key; got {[*mask.shape]}.")
    if bias is None:
        return
    if xq is None or xk is None:
        raise ValueError("A `bias` needs the locations `xq` and `xk` of queries and keys; at least one is missing.")
    if (len(xq), len(xk)) != (q.shape[1], k.shape[1]):
        raise ValueError(
            f"`xq` and `xk` must have a row for each of the {q.shape[1]} queries and {k.shape[1]} keys; got {len(xq)} "
            f"and {len(xk)}."
        )


def widened(operands):
    """Numbers of 16 bits in float32, parameters of a bias too; others as they are."""
    return jax.tree.map(lambda a: a.astype(jnp.float32) if _is_short(a) else a, operands)


def _is_short(a):
    return eqx.is_array(a) and jnp.issubdtype(a.dtype, jnp.floating) and a.dtype.itemsize < 4


def softmax(s: Float[Array, "*axes nk"]) -> Float[Array, "*axes nk"]:
    """Softmax over the last axis; zeros, with gradients of zero, where all logits are minus infinity."""
    top = jax.lax.stop_gradient(jnp.max(s, axis=-1, keepdims=True, initial=-jnp.inf))
    p = jnp.exp(s - jnp.where(jnp.isfinite(top), top, 0.0))
    total = jnp.sum(p, axis=-1, keepdims=True)
    return p / jnp.where(total > 0, total, 1.0)


def logits(q, k, bias, xq, xk, mask):
    """`scores` with a bias of the locations."""
    return scores(q, k, None if bias is None else of_pairs(bias(xq, xk), q, k), mask)


def of_pairs(bias, q, k):
    """**Raises** `ValueError` for the bias of another number of heads, or of what are no pairs of queries and keys."""
    got, (heads, nq, nk) = getattr(bias, "shape", type(bias).__name__), (len(q), q.shape[1], k.shape[1])
    if got[1:] == (nq, nk) and got[0] != heads:
        raise ValueError(f"The `bias` has {got[0]} heads and the attention {heads}: make both the same.")
    if got != (heads, nq, nk):
        raise ValueError(
            f"The `bias` of {nq} queries and {nk} keys must have the shape [heads, nq, nk], {[heads, nq, nk]}; got "
            f"{got if isinstance(got, str) else [*got]}."
        )
    return bias


def scores(q, k, bias, mask):
    """Scaled products plus the bias of every pair, minus infinity where the mask hides the key."""
    s = jnp.einsum("hqd,hkd->hqk", q, k) * q.shape[-1] ** -0.5
    if bias is not None:
        s = s + bias.astype(s.dtype)
    s = s if mask is None else jnp.where(mask[None, None, :], s, -jnp.inf)
    # Both the maximum and the exponentials read the logits: XLA would compute the bias for each.
    return s if bias is None else jax.lax.optimization_barrier(s)


def hide(mask, k, v, xk) -> tuple[Any, Any, Any]:
    """Zeros for whatever stands under the mask, so that junk there reaches neither values nor gradients."""
    if mask is None:
        return k, v, xk
    k, v = (jnp.where(mask[None, :, None], a, 0.0) for a in (k, v))
    return k, v, None if xk is None else jnp.where(mask[:, None], xk, 0.0)


class DenseAttention(AbstractAttention):
    """`dense_attention` as a part of a model. Time and memory O(nq nk)."""

    def memorise(self, k, v, xk, mask):
        return k, v, xk, mask

    def recall(self, q, xq, memory, bias):
        k, v, xk, mask = memory
        return dense_attention(q, k, v, bias=bias, xq=xq, xk=xk, mask=mask)
