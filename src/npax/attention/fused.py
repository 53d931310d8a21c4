"""Scan attention in GPU kernels: logits, bias and weights of a tile of pairs never leave the chip."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float

from ..bias import AbstractBias
from ..bias.tile import Tile, tile
from ._base import AbstractAttention
from .dense import hide
from .scan import pad, scan_attention


def fused_attention(
    q: Float[Array, "heads nq d"],
    k: Float[Array, "heads nk d"],
    v: Float[Array, "heads nk dv"],
    *,
    bias: AbstractBias | None = None,
    xq: Float[Array, "nq dx"] | None = None,
    xk: Float[Array, "nk dx"] | None = None,
    mask: Bool[Array, " nk"] | None = None,
    block: int = 64,
    warps: int = 4,
    interpret: bool = False,
) -> Float[Array, "heads nq dv"]:
    if bias is not None and (xq is None or xk is None):
        raise ValueError("A `bias` needs the locations `xq` and `xk` of queries and keys; at least one is missing.")
    if block < 16 or block & (block - 1):
        raise ValueError(f"`block` must be a power of two from 16 on, got {block}.")
    if not fusable(q, k, v, bias):
        raise ValueError("")
    nq, nk, dv = q.shape[1], k.shape[1], v.shape[2]
    q_side, k_side = (block * max(1, -(-n // block)) for n in (nq, nk))
    k, v, xk = hide(mask, k, v, xk)
    hidden = jnp.zeros(nk, jnp.float32) if mask is None else jnp.where(mask, 0.0, -jnp.inf)
    hidden = jnp.pad(hidden, (0, k_side - nk), constant_values=-jnp.inf)
    parameters, of_head = (None, None) if bias is None else _flatten(bias)
    plan = _Plan(of_head, q.shape[2] ** -0.5, block, warps, interpret)
    q, k, v = (pad(pad(a, n, 1), _width(a.shape[2]), 2) for a, n in ((q, q_side), (k, k_side), (v, k_side)))
    xq, xk = (None if bias is None else pad(_f32(x), n, 0).T for x, n in ((xq, q_side), (xk, k_side)))
    return _fused((q, k, v, parameters, xq, xk), hidden, plan)[:, :nq, :dv]


def fusable(q: Array, k: Array, v: Array, bias: AbstractBias | None) -> bool:
    """Whether the kernels can do it: 16 or 32 bit floats, heads of 128 at most, a bias that has a `tile`."""
    narrow = q.dtype == k.dtype == v.dtype and q.dtype in (jnp.float32, jnp.bfloat16, jnp.float16)
    return narrow and max(q.shape[2], v.shape[2]) <= 128 and (bias is None or tile(bias) is not None)


class _Plan(NamedTuple):
    """What a kernel knows when it is compiled."""

    bias: Callable[[Sequence[Array]], Tile] | None
    scale: float
    block: int
    warps: int
    interpret: bool


def _flatten(bias):
    """All parameters `[heads parameters]`, and what makes the bias of one head of a row of them."""
    leaves, structure = jax.tree.flatten(bias)
    rows = [_f32(leaf).reshape(leaf.shape[0], -1) for leaf in leaves]
    ends = [sum(row.shape[1] for row in rows[:i]) for i in range(1, len(rows) + 1)]

    def of_head(row):
        parts = [tuple(row[end - part.shape[1] : end]) for part, end in zip(rows, ends, strict=True)]
        return tile(jax.tree.unflatten(structure, parts))

    return (jnp.concatenate(rows, axis=1) if rows else None), of_head


def _f32(a):
    return a.astype(jnp.float32)


def _width(d):
    """Tensor cores want powers of two from 16 on; zeros fill up."""
    return max(16, pl.next_power_of_2(d))


# The kernels. References are those of one head: `[n d]` for queries, keys and values, `[dx n]` for locations.


def _forward_kernel(q, k, v, hidden, parameters, xq, xk, out, log_total, *, plan):
    qi, xqi = q[...], _columns(xq)
    row = _scalars(parameters)

    def absorb(j, carry):
        top, total, o = carry
        at = pl.ds(j * plan.block, plan.block)
        s = _scores(qi, k[at, :], hidden[at], plan)
        if plan.bias is not None:
            s = s + _bias(plan, row, xqi, _columns(xk, at))
        new_top = jnp.maximum(top, jnp.max(s, axis=1))
        pivot = jnp.where(new_top > -jnp.inf, new_top, 0.0)
        p = jnp.exp(s - pivot[:, None])
        decay = jnp.exp(top - pivot)
        total = decay * total + jnp.sum(p, axis=1)
        o = decay[:, None] * o + _dot(p.astype(v.dtype), v[at, :])
        return new_top, total, o

    rows = plan.block
    start = (jnp.full(rows, -jnp.inf), jnp.zeros(rows), jnp.zeros((rows, v.shape[1])))
    top, total, o = jax.lax.fori_loop(0, k.shape[0] // plan.block, absorb, start)
    total_or_one = jnp.where(total > 0, total, 1.0)
    out[...] = (o / total_or_one[:, None]).astype(out.dtype)
    log_total[...] = top + jnp.log(total_or_one)


def _query_kernel(q, k, v, hidden, parameters, xq, xk, log_total, delta, d_out, d_q, d_parameters, d_xq, *, plan):
    """Gradients of a block of queries: goes over the keys."""
    qi, xqi, log_total, delta, d_out = q[...], _columns(xq), log_total[...], delta[...], d_out[...]
    row = _scalars(parameters)
    if d_parameters is not None:  # a column for each, so that the sums over keys stay within a row of the tile
        row = [jnp.full(plan.block, p) for p in row]
    learned = (None if d_parameters is None else row, None if d_xq is None else xqi)

    def absorb(j, carry):
        d_q, d_learned = carry
        at = pl.ds(j * plan.block, plan.block)
        kj, xkj = k[at, :], _columns(xk, at)

        def bias(learned):
            return _bias(plan, *eqx.combine(learned, (row, xqi)), xkj)

        s = _scores(qi, kj, hidden[at], plan)
        if plan.bias is not None:
            values, pull = jax.vjp(bias, learned)
            s = s + values
        _, d_s = _slopes(s, log_total, delta, d_out, v[at, :])
        d_q = d_q + _dot(d_s.astype(kj.dtype), kj)
        return d_q, d_learned if plan.bias is None else _add(d_learned, pull(d_s)[0])

    start = (jnp.zeros(q.shape), jax.tree.map(jnp.zeros_like, learned))
    d_qi, (d_row, d_xqi) = jax.lax.fori_loop(0, k.shape[0] // plan.block, absorb, start)
    d_q[...] = (plan.scale * d_qi).astype(d_q.dtype)
    _store(d_parameters, d_row)
    _store(d_xq, d_xqi)


def _key_kernel(q, k, v, hidden, parameters, xq, xk, log_total, delta, d_out, d_k, d_v, d_xk, *, plan):
    """Gradients of a block of keys: goes over the queries."""
    kj, vj, hidden, xkj = k[...], v[...], hidden[...], _columns(xk)
    row = _scalars(parameters)

    def absorb(i, carry):
        d_k, d_v, d_xk = carry
        at = pl.ds(i * plan.block, plan.block)
        qi, xqi, d_oi = q[at, :], _columns(xq, at), d_out[at, :]
        s = _scores(qi, kj, hidden, plan)
        if plan.bias is not None:
            values, pull = jax.vjp(lambda xk: _bias(plan, row, xqi, xk), xkj)
            s = s + values
        p, d_s = _slopes(s, log_total[at], delta[at], d_oi, vj)
        d_v = d_v + _dot(p.astype(d_oi.dtype).T, d_oi)
        d_k = d_k + _dot(d_s.astype(qi.dtype).T, qi)
        return d_k, d_v, None if d_xk is None else _add(d_xk, pull(d_s)[0])

    d_x = None if d_xk is None else [jnp.zeros_like(x) for x in xkj]
    start = (jnp.zeros(k.shape), jnp.zeros(v.shape), d_x)
    d_kj, d_vj, d_x = jax.lax.fori_loop(0, q.shape[0] // plan.block, absorb, start)
    d_k[...] = (plan.scale * d_kj).astype(d_k.dtype)
    d_v[...] = d_vj.astype(d_v.dtype)
    _store(d_xk, d_x)


def _scores(q, k, hidden, plan):
    return plan.scale * _dot(q, k.T) + hidden[None, :]


def _slopes(s, log_total, delta, d_out, v):
    """The weights p and the gradient of the logits."""
    p = jnp.exp(s - log_total[:, None])
    return p, p * (_dot(d_out, v.T) - delta[:, None])


def _bias(plan, row, xq, xk):
    row = [p[:, None] if p.ndim else p for p in row]
    return plan.bias(row)([x[:, None] for x in xq], [x[None, :] for x in xk])


def _dot(a, b):
    return jnp.dot(a, b, preferred_element_type=jnp.float32)


def _scalars(ref):
    return [] if ref is None else [ref[i] for i in range(ref.shape[0])]


def _columns(ref, at=slice(None)):
    return [] if ref is None else [ref[i, at] for i in range(ref.shape[0])]


def _store(ref, rows):
    for i, row in enumerate([] if ref is None else rows):
        ref[i, :] = row


def _add(a, b):
    return jax.tree.map(jnp.add, a, b)


# Their calls. Grids go over blocks of points and heads.


def _call(kernel, plan, points, operands, results):
    """One program for every block of `points` and every head. Operands and results come with their axes."""
    heads = operands[0][0].shape[0]
    return pl.pallas_call(
        partial(kernel, plan=plan),
        grid=(points // plan.block, heads),
        in_specs=[_spec(a, axes, plan) for a, axes in operands],
        out_specs=[_spec(a, axes, plan) for a, axes in results],
        out_shape=[None if a is None else jax.ShapeDtypeStruct(a.shape, a.dtype) for a, _ in results],
        compiler_params=triton.CompilerParams(num_warps=plan.warps, num_stages=2),
        interpret=plan.interpret,
    )(*(a for a, _ in operands))


def _spec(a, axes, plan):
    """`axes`: h, one head; b, one block of points; anything else, all of it."""
    if a is None:
        return None
    shape = [{"h": None, "b": plan.block}.get(axis, n) for axis, n in zip(axes, a.shape, strict=True)]
    return pl.BlockSpec(tuple(shape), lambda i, h: tuple({"h": h, "b": i}.get(axis, 0) for axis in axes))


def _attend(operands, hidden, plan):
    """Output `[heads nq dv]` and log-normaliser `[heads nq]` (minus infinity for queries without a key)."""
    q, k, v, parameters, xq, xk = operands
    inputs = [(q, "hbd"), (k, "hnd"), (v, "hnd"), (hidden, "n"), (parameters, "hp"), (xq, "xb"), (xk, "xn")]
    out = jax.ShapeDtypeStruct((*q.shape[:2], v.shape[2]), q.dtype)
    return _call(_forward_kernel, plan, q.shape[1], inputs, [(out, "hbd"), (_result(q.shape[:2]), "hb")])


@eqx.filter_custom_vjp
def _fused(operands, hidden, plan):
    return _attend(operands, hidden, plan)[0]


@_fused.def_fwd
def _fused_fwd(perturbed, operands, hidden, plan):
    del perturbed
    out, log_total = _attend(operands, hidden, plan)
    return out, (out, log_total)


@_fused.def_bwd
def _fused_bwd(residuals, d_out, perturbed, operands, hidden, plan):
    out, log_total = residuals
    q, k, v, parameters, xq, xk = operands
    delta = jnp.sum(_f32(d_out) * _f32(out), axis=-1)
    log_total = jnp.where(log_total > -jnp.inf, log_total, jnp.inf)  # a query without keys: p = exp(-inf) = 0
    # Only what is differentiated is computed: locations rarely are.
    learned, of_xq, of_xk = (bool(p) for p in perturbed[3:])

    heads, (nq, nk) = q.shape[0], (q.shape[1], k.shape[1])
    over_queries = [(q, "hbd"), (k, "hnd"), (v, "hnd"), (hidden, "n"), (parameters, "hp"), (xq, "xb"), (xk, "xn")]
    over_queries += [(log_total, "hb"), (delta, "hb"), (d_out, "hbd")]
    over_keys = [(q, "hnd"), (k, "hbd"), (v, "hbd"), (hidden, "b"), (parameters, "hp"), (xq, "xn"), (xk, "xb")]
    over_keys += [(log_total, "hn"), (delta, "hn"), (d_out, "hnd")]
    # Sums over one axis of the pairs: those over the other, and over the heads, are left to XLA.
    d_parameters = _result((heads, parameters.shape[1], nq)) if learned else None
    d_xq = _result((heads, *xq.shape)) if of_xq else None
    d_xk = _result((heads, *xk.shape)) if of_xk else None
    d_q, d_parameters, d_xq = _call(
        _query_kernel, plan, nq, over_queries, [(q, "hbd"), (d_parameters, "hpb"), (d_xq, "hxb")]
    )
    d_k, d_v, d_xk = _call(_key_kernel, plan, nk, over_keys, [(k, "hbd"), (v, "hbd"), (d_xk, "hxb")])
    d_parameters = None if d_parameters is None else jnp.sum(d_parameters, axis=2)
    d_xq, d_xk = (None if d is None else jnp.sum(d, axis=0) for d in (d_xq, d_xk))
    return d_q, d_k, d_v, d_parameters, d_xq, d_xk


def _result(shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)
