"""Independent truths in float64 numpy, for the tests to compare with."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def relative(got, truth):
    """The largest error, in units of the largest true value (of a thousandth, where the truth is about zero)."""
    got, truth = np.asarray(got, np.float64), np.asarray(truth, np.float64)
    assert got.shape == truth.shape, (got.shape, truth.shape)
    if truth.size == 0:
        return 0.0
    return np.max(np.abs(got - truth)) / max(np.max(np.abs(truth)), 1e-3)


def attention(q, k, v, bias, xq, xk, mask, weight):
    r"""Softmax attention $o$ and the gradients of $\sum w\, o$ with respect to `(q, k, v, bias, xq, xk)`, in float64.

    Only the bias itself is npax's (its formulas have truths of their own); the rest is written out in numpy.
    """
    q, k, v, xq, xk, weight = (np.asarray(a, np.float64) for a in (q, k, v, xq, xk, weight))
    k, v, xk = np.where(mask[:, None], k, 0), np.where(mask[:, None], v, 0), np.where(mask[:, None], xk, 0)
    scale = q.shape[-1] ** -0.5
    s = scale * np.einsum("hqd,hkd->hqk", q, k)
    with jax.enable_x64(True):
        if bias is not None:
            arrays, rest = eqx.partition(bias, eqx.is_inexact_array)
            arrays = jax.tree.map(lambda a: jnp.asarray(np.asarray(a, np.float64)), arrays)

            @jax.jit
            def value(a, xq, xk):
                return eqx.combine(a, rest)(xq, xk)

            @jax.jit
            def gradient(a, xq, xk, d_s):
                return jax.vjp(value, a, xq, xk)[1](d_s)

            s = s + np.asarray(value(arrays, xq, xk))
        s[:, :, ~mask] = -np.inf
        out, p = softmax_average(s, v)
        d_s = p * (np.einsum("hqd,hkd->hqk", weight, v) - np.sum(weight * out, axis=-1, keepdims=True))
        d_bias, d_xq, d_xk = None, np.zeros_like(xq), np.zeros_like(xk)
        if bias is not None:
            d_bias, d_xq, d_xk = jax.tree.map(np.asarray, gradient(arrays, xq, xk, d_s))
    d_q = scale * np.einsum("hqk,hkd->hqd", d_s, k)
    d_k = scale * np.einsum("hqk,hqd->hkd", d_s, q)
    d_v = np.einsum("hqk,hqd->hkd", p, weight)
    return out, (d_q, d_k, d_v, d_bias, d_xq, d_xk)


def softmax_average(s, v):
    """Weighted values and weights; zeros for rows without a finite logit."""
    if s.shape[-1] == 0:
        return np.zeros((*s.shape[:-1], v.shape[-1])), np.zeros_like(s)
    top = np.max(s, axis=-1, keepdims=True)
    p = np.exp(s - np.where(np.isfinite(top), top, 0))
    total = p.sum(axis=-1, keepdims=True)
    p = p / np.where(total > 0, total, 1)
    return np.einsum("hqk,hkd->hqd", p, v), p
