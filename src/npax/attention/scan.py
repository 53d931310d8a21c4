"""Scan attention (KR2 §3.3): exact softmax attention with any bias, in blocks, in bounded memory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..arguments import whole_number
from ..bias import AbstractBias
from ..devices import local_mesh
from ._base import AbstractAttention
from .dense import check_operands, hide, logits, scores, widened


def scan_attention(
    q: Float[Array, "heads nq d"],
    k: Float[Array, "heads nk d"],
    v: Float[Array, "heads nk dv"],
    *,
    bias: AbstractBias | None = None,
    xq: Float[Array, "nq dx"] | None = None,
    xk: Float[Array, "nk dx"] | None = None,
    mask: Bool[Array, " nk"] | None = None,
    block: int | None = None,
) -> Float[Array, "heads nq dv"]:
    r"""`dense_attention` without the `[heads nq nk]` array: the same numbers, O(heads block²) memory.

    Goes over blocks of keys with a running maximum $m$, normaliser $\ell$ and output $o$ per query (KR2, eq. 6-8):

    $$m' = \max(m, \max_j s_j), \quad \ell' = e^{m - m'} \ell + \sum_j e^{s_j - m'}, \quad
      o' = e^{m - m'} o + \sum_j e^{s_j - m'} v_j.$$

    The maximum starts at $-\infty$ and nothing is added to the sums, so the result does not change when a constant
    is added to all logits, however large. The backward pass keeps only the output and $m + \log \ell$ and computes
    each block again; it differentiates queries, keys, values, the parameters of the bias and the locations.

    **Arguments:** `block`: side of a block (default: 256 on CPUs, whose caches hold that; 2,048 elsewhere). Sets that
    fit one block are done in one piece. The locations `xq`, `xk` are needed if and only if there is a bias. `vmap`,
    `jit` and `grad` apply as usual (reverse mode). Operands of 16 bits are computed with in float32.

    **Raises:** `ValueError` for a `block` below 1, shapes that do not fit, a bias without locations or of another
    number of heads.
    """
    check_operands(q, k, v, bias, xq, xk, mask)
    mask = jnp.ones(k.shape[1], bool) if mask is None else mask
    return _of_hidden(q, *hide(mask, k, v, xk), bias, xq, mask, block)


def _of_hidden(q, k, v, xk, bias, xq, mask, block):
    """`scan_attention` of keys that are zeros where the mask hides them."""
    block = (256 if local_mesh().devices.flat[0].platform == "cpu" else 2048) if block is None else block
    whole_number(1, block=block)
    nq, nk, dtype = q.shape[1], k.shape[1], q.dtype
    q, k, v, bias, xq, xk = widened((q, k, v, bias, xq, xk))
    q, k, v = (a.astype(np.result_type(q.dtype, k.dtype, v.dtype)) for a in (q, k, v))  # a loop's carry has one type
    q_blocks, k_blocks = max(1, -(-nq // block)), max(1, -(-nk // block))
    q_side, k_side = max(1, -(-nq // q_blocks)), max(1, -(-nk // k_blocks))  # an empty set becomes one masked point
    q_padded, xq_padded = pad(q, q_blocks * q_side, 1), pad(xq, q_blocks * q_side, 0)
    k, v, xk, mask = (pad(a, k_blocks * k_side, axis) for a, axis in ((k, 1), (v, 1), (xk, 0), (mask, 0)))
    out = _blockwise((q_padded, k, v, bias, xq_padded, xk), mask, q_side, k_side)
    return out[:, :nq].astype(dtype)


def pad(a: Any, n: int, axis: int) -> Any:
    if a is None or a.shape[axis] == n:
        return a
    widths = [(0, n - a.shape[i] if i == axis else 0) for i in range(a.ndim)]
    return jnp.pad(a, widths)


def _split(a, side, axis):
    """`[... n ...]` to `[n/side ... side ...]`: blocks first, as `lax.scan` wants them."""
    if a is None:
        return None
    shape = (*a.shape[:axis], a.shape[axis] // side, side, *a.shape[axis + 1 :])
    return jnp.moveaxis(a.reshape(shape), axis, 0)


def _join(a, axis):
    a = jnp.moveaxis(a, 0, axis)
    return a.reshape(*a.shape[:axis], a.shape[axis] * a.shape[axis + 1], *a.shape[axis + 2 :])


def _attend(operands, mask, q_side, k_side):
    """Output `[heads nq dv]` and log-normaliser `[heads nq]` (minus infinity for queries without a key)."""
    q, k, v, bias, xq, xk = operands
    keys = (_split(k, k_side, 1), _split(v, k_side, 1), _split(xk, k_side, 0), _split(mask, k_side, 0))

    def queries(_, block):
        q, xq = block

        def absorb(carry, block):
            top, total, out = carry
            k, v, xk, mask = block
            s = logits(q, k, bias, xq, xk, mask)
            new_top = jnp.maximum(top, jnp.max(s, axis=-1, initial=-jnp.inf))
            pivot = jnp.where(jnp.isfinite(new_top), new_top, 0.0)
            p = jnp.exp(s - pivot[..., None])
            decay = jnp.exp(top - pivot)
            total = decay * total + jnp.sum(p, axis=-1)
            out = decay[..., None] * out + jnp.einsum("hqk,hkd->hqd", p, v)
            return (new_top, total, out), None

        rows = q.shape[:2]
        start = (jnp.full(rows, -jnp.inf, q.dtype), jnp.zeros(rows, q.dtype), jnp.zeros((*rows, v.shape[-1]), q.dtype))
        (top, total, out), _ = _loop(absorb, start, keys)
        seen = total > 0
        total = jnp.where(seen, total, 1.0)
        return None, (out / total[..., None], jnp.where(seen, top + jnp.log(total), -jnp.inf))

    _, (out, log_total) = _loop(queries, None, (_split(q, q_side, 1), _split(xq, q_side, 0)))
    return _join(out, 1), _join(log_total, 1)


def _loop(body, carry, blocks):
    """`lax.scan`, without a loop where there is one block."""
    return jax.lax.scan(body, carry, blocks, unroll=jax.tree.leaves(blocks)[0].shape[0] == 1)


@eqx.filter_custom_vjp
def _blockwise(operands, mask, q_side, k_side):
    return _attend(operands, mask, q_side, k_side)[0]


@_blockwise.def_fwd
def _blockwise_fwd(perturbed, operands, mask, q_side, k_side):
    out, log_total = _attend(operands, mask, q_side, k_side)
    return out, (out, log_total)


@_blockwise.def_bwd
def _blockwise_bwd(residuals, d_out, perturbed, operands, mask, q_side, k_side):
    r"""$\dot s = p (\dot o v^\top - \delta)$ with $p = e^{s - \log\ell}$ and $\delta = \sum_d o\, \dot o$."""
    out, log_total = residuals
    q, k, v, bias, xq, xk = operands
    scale = q.shape[-1] ** -0.5
    delta = jnp.sum(d_out * out, axis=-1)
    log_total = jnp.where(jnp.isfinite(log_total), log_total, jnp.inf)  # a query without keys: p = exp(-inf) = 0

    # Only what is differentiated is accumulated: locations rarely are, and they double the work on the bias.
    wanted = (perturbed[3], perturbed[4], perturbed[5])
    learned, fixed = eqx.partition((bias, xq, xk), wanted)
    bias_learned, xq_learned, xk_learned = learned
    bias_fixed, xq_fixed, xk_fixed = fixed

    def biased(learned, xq_fixed, xk_fixed):
        bias, xq, xk = eqx.combine(learned, (bias_fixed, xq_fixed, xk_fixed))
        return None if bias is None else bias(xq, xk).astype(q.dtype)

    q_parts = (
        _split(q, q_side, 1),
        _split(xq_learned, q_side, 0),
        _split(xq_fixed, q_side, 0),
        _split(log_total, q_side, 1),
        _split(delta, q_side, 1),
        _split(d_out, q_side, 1),
    )
    k_parts = (
        _split(k, k_side, 1),
        _split(v, k_side, 1),
        _split(xk_learned, k_side, 0),
        _split(xk_fixed, k_side, 0),
        _split(mask, k_side, 0),
    )

    def over_keys(carry, block):
        d_q, d_bias, d_xq = carry
        k, v, xk_learned, xk_fixed, mask = block

        def over_queries(carry, block):
            d_k, d_v, d_bias, d_xk = carry
            q, xq_learned, xq_fixed, log_total, delta, d_out = block
            learned = (bias_learned, xq_learned, xk_learned)
            b, pull = jax.vjp(lambda learned: biased(learned, xq_fixed, xk_fixed), learned)
            s = scores(q, k, b, mask)
            # The block's own maximum is a second reader of the scores. For one alone XLA's CPU backend makes bias and
            # exponential in one loop, which it does not vectorise: with TISA a gradient takes twice as long.
            top = jnp.max(s, axis=-1, initial=-jnp.inf)
            pivot = jnp.where(jnp.isfinite(top), top, 0.0)
            p = jnp.exp(s - pivot[..., None]) * jnp.exp(top - log_total)[..., None]
            d_s = p * (jnp.einsum("hqd,hkd->hqk", d_out, v) - delta[..., None])
            (d_biasi, d_xqi, d_xki) = pull(None if b is None else d_s)[0]
            d_qi = jnp.einsum("hqk,hkd->hqd", d_s, k) * scale
            d_ki, d_vi = _over_queries(d_s, q) * scale, _over_queries(p, d_out)
            return _add((d_k, d_v, d_bias, d_xk), (d_ki, d_vi, d_biasi, d_xki)), (d_qi, d_xqi)

        start = (jnp.zeros_like(k), jnp.zeros_like(v), d_bias, _zeros(xk_learned))
        (d_k, d_v, d_bias, d_xk), (d_qi, d_xqi) = _loop(over_queries, start, q_parts)
        return (d_q + d_qi, d_bias, _add(d_xq, d_xqi)), (d_k, d_v, d_xk)

    start = (_zeros(q_parts[0]), _zeros(bias_learned), _zeros(q_parts[1]))
    (d_q, d_bias, d_xq), (d_k, d_v, d_xk) = _loop(over_keys, start, k_parts)
    return (
        _join(d_q, 1),
        _join(d_k, 1),
        _join(d_v, 1),
        d_bias,
        None if d_xq is None else _join(d_xq, 0),
        None if d_xk is None else _join(d_xk, 0),
    )


def _over_queries(a: Float[Array, "heads nq nk"], b: Float[Array, "heads nq d"]) -> Float[Array, "heads nk d"]:
    """The transpose of `a` times `b`."""
    if a.shape[2] < 4 * b.shape[2]:
        return jnp.einsum("hqk,hqd->hkd", a, b)
    # XLA's CPU backend copies what stands on the left, transposed: let it be the narrower, `b`. The barrier keeps it
    # from changing sides again.
    return jnp.swapaxes(jax.lax.optimization_barrier(jnp.einsum("hqd,hqk->hdk", b, a)), 1, 2)


def _zeros(tree):
    return jax.tree.map(jnp.zeros_like, tree)


def _add(a, b):
    return jax.tree.map(jnp.add, a, b)


class ScanAttention(AbstractAttention):
    """Exact softmax attention as a part of a model: time O(nq nk), memory O(block²). Remembers keys and values.

    `scan_attention`; on NVIDIA GPUs (Ampere and later) `fused_attention`, its kernels, for operands and biases that
    these take. So models may be saved on one device and loaded on another.

    **Arguments:** `block`: the side of a block of the scan; None: what `scan_attention` takes for the device, or the
    kernels.
    """

    block: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.block is not None:
            whole_number(1, block=self.block)

    def memorise(self, k, v, xk, mask):
        return *hide(mask, k, v, xk), mask

    def recall(self, q, xq, memory, bias):
        k, v, xk, mask = memory

        def scan(q, k, v):
            return _of_hidden(q, k, v, xk, bias, xq, mask, self.block)

        if self.block is not None:
            return scan(q, k, v)
        from .fused import fused_or  # here, since it builds on this file

        return fused_or(scan, q, k, v, bias=bias, xq=xq, xk=xk, mask=mask)
