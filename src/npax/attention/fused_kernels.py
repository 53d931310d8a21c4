"""The kernels of `fused_attention` and their calls: the forward pass and two parts of its gradient."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from ..bias.rbf_network import LOG2_E
from ..bias.tile import Tile


class Plan(NamedTuple):
    """What a kernel knows when it is compiled."""

    bias: Callable[[Sequence[Sequence[Any]]], Tile | None] | None
    scale: float
    block: int
    step: int
    warps: int
    group: int
    interpret: bool


# The kernels. References hold one head: `[n d]` for queries, keys and values, `[dx n]` for locations. A program has a
# block of points of its own, the rows of its tiles, and goes over the other points, the columns, step by step.


def _forward_kernel(q, k, v, hidden, parameters, xq, xk, out, log_total, *, plan):
    """All heads of a group, whose biases share what does not depend on the head: distances, and a ladder's rungs."""
    xqi, heads = _down(_points(xq)), range(q.shape[0])
    rows = [_scalars(parameters, h) for h in heads]

    def absorb(j, carry):
        at = pl.ds(j * plan.step, plan.step)
        shape = (plan.block, plan.step)
        tiles = [jnp.broadcast_to(hidden[at][None, :], shape) for _ in heads]
        tiles = _biased(plan, rows, xqi, _across(_points(xk, at)), tiles)
        return [_absorbed(carry[h], q[h], k[h, at, :], v[h, at, :], tiles[h], plan) for h in heads]

    start = (jnp.full(plan.block, -jnp.inf, jnp.float32), _zeros(plan.block), _zeros(out.shape[1:]))
    sums = jax.lax.fori_loop(0, k.shape[1] // plan.step, absorb, [start for _ in heads])
    for h, (top, total, o) in enumerate(sums):
        total = jnp.where(total > 0, total, 1.0)  # a query without keys: o = 0, and the maximum is minus infinity
        out[h] = (o / total[:, None]).astype(out.dtype)
        log_total[h] = top + jnp.log(total)


def _absorbed(carry, q, k, v, bias, plan):
    top, total, o = carry
    s = plan.scale * _dot(q, k.T) + bias
    new_top = jnp.maximum(top, jnp.max(s, axis=1))
    pivot = jnp.where(new_top > -jnp.inf, new_top, 0.0)
    p, decay = _shares(s, pivot[:, None]), _shares(top, pivot)
    return new_top, decay * total + jnp.sum(p, axis=1), decay[:, None] * o + _dot(p.astype(v.dtype), v)


def _query_kernel(q, k, v, hidden, parameters, xq, xk, log_total, delta, d_out, d_q, d_parameters, d_xq, *, plan):
    """Gradients of a block of queries, and their part in those of the parameters."""
    qi, log_total, delta, d_out = q[...], log_total[...][:, None], delta[...][:, None], d_out[...]
    xqi, row = _points(xq), _scalars(parameters)
    if d_parameters is not None:  # one for each row of the tile: sums along rows are cheap, sums over all are not
        row = [jnp.full(plan.block, parameter) for parameter in row]
    learned = (row if d_parameters is not None else None, xqi if d_xq is not None else None)

    def absorb(j, carry):
        d_qi, d_learned = carry
        at = pl.ds(j * plan.step, plan.step)
        kj, xkj = k[at, :], _across(_points(xk, at))
        products = plan.scale * _dot(qi, kj.T) + hidden[at][None, :]

        def scores(learned):
            own_row, own_x = learned
            own_row = row if own_row is None else _down(own_row)
            return _biased(plan, [own_row], _down(xqi if own_x is None else own_x), xkj, [products])[0]

        s, pull = jax.vjp(scores, learned)
        p = _shares(s, log_total)
        d_s = p * (_dot(d_out, v[at, :].T) - delta)
        return d_qi + _dot(d_s.astype(k.dtype), kj), _add(d_learned, pull(d_s)[0])

    start = (_zeros(q.shape), jax.tree.map(jnp.zeros_like, learned))
    d_qi, (d_row, d_xqi) = jax.lax.fori_loop(0, k.shape[0] // plan.step, absorb, start)
    d_q[...] = (plan.scale * d_qi).astype(d_q.dtype)
    _store(d_parameters, d_row)
    _store(d_xq, d_xqi)


def _key_kernel(q, k, v, hidden, parameters, xq, xk, log_total, delta, d_out, d_k, d_v, d_xk, *, plan):
    """Gradients of a block of keys. The tiles are those of the other kernels, transposed."""
    kj, vj, hidden = k[...], v[...], hidden[...][:, None]
    xkj, row = _points(xk), _scalars(parameters)

    def absorb(i, carry):
        d_kj, d_vj, d_xkj = carry
        at = pl.ds(i * plan.step, plan.step)
        qi, d_oi, xqi = q[at, :], d_out[at, :], _across(_points(xq, at))
        products = plan.scale * _dot(kj, qi.T) + hidden
        s, pull = jax.vjp(lambda own_x: _biased(plan, [row], xqi, _down(own_x), [products])[0], xkj)
        p = _shares(s, log_total[at][None, :])
        d_s = p * (_dot(vj, d_oi.T) - delta[at][None, :])
        d_vj = d_vj + _dot(p.astype(v.dtype), d_oi)
        d_kj = d_kj + _dot(d_s.astype(q.dtype), qi)
        return d_kj, d_vj, None if d_xk is None else _add(d_xkj, pull(d_s)[0])

    d_xkj = None if d_xk is None else jax.tree.map(jnp.zeros_like, xkj)
    start = (_zeros(k.shape), _zeros(v.shape), d_xkj)
    d_kj, d_vj, d_xkj = jax.lax.fori_loop(0, q.shape[0] // plan.step, absorb, start)
    d_k[...] = (plan.scale * d_kj).astype(d_k.dtype)
    d_v[...] = d_vj.astype(d_v.dtype)
    _store(d_xk, d_xkj)


def _biased(plan, rows, xq, xk, tiles):
    """The tiles of some heads plus the biases of these."""
    added = None if plan.bias is None else plan.bias(rows)
    return tiles if added is None else added(xq, xk, tiles)


def _shares(s, log_total):
    """`exp(s - log_total)` by the instruction of GPUs; that for all numbers is eight."""
    return jnp.exp2(LOG2_E * (s - log_total))


def _dot(a, b):
    return jnp.dot(a, b, preferred_element_type=jnp.float32)


def _scalars(ref, *head):
    return [] if ref is None else [ref[*head, i] for i in range(ref.shape[-1])]


def _points(ref, at: Any = slice(None)):
    return [] if ref is None else [ref[i, at] for i in range(ref.shape[0])]


def _down(arrays):
    return [a[:, None] for a in arrays]


def _across(arrays):
    return [a[None, :] for a in arrays]


def _store(ref, arrays):
    if ref is not None:
        for i, a in enumerate(arrays):
            ref[i, :] = a


def _zeros(shape):
    return jnp.zeros(shape, jnp.float32)


def _add(a, b):
    return jax.tree.map(jnp.add, a, b)


# Their calls. Arrays come with their axes: h, of which a program sees one; g, of which it sees a group; b, of which it
# sees a block; others, all.


def _call(kernel, plan, points, heads, operands, results):
    """One program for every block of the `points` and every head, or group of heads."""
    from jax.experimental.pallas import triton  # here, since JAX means to drop it

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
    if a is None:
        return None
    sides = {"h": None, "g": plan.group, "b": plan.block}
    shape = tuple(sides.get(axis, n) for axis, n in zip(axes, a.shape, strict=True))
    return pl.BlockSpec(shape, lambda i, h: tuple({"h": h, "g": h, "b": i}.get(axis, 0) for axis in axes))


def _attend(operands, hidden, plan):
    """Output `[heads nq dv]` and log-normaliser `[heads nq]` (minus infinity for queries without a key)."""
    q, k, v, parameters, xq, xk = operands
    inputs = [(q, "gbd"), (k, "gnd"), (v, "gnd"), (hidden, "n"), (parameters, "gp"), (xq, "xb"), (xk, "xn")]
    results = [(jax.ShapeDtypeStruct((*q.shape[:2], v.shape[2]), q.dtype), "gbd"), (_sums(q.shape[:2]), "gb")]
    return _call(_forward_kernel, plan, q.shape[1], q.shape[0] // plan.group, inputs, results)


def _sums(shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


@eqx.filter_custom_vjp
def fused(operands, hidden, plan: Plan):
    """Output `[heads nq dv]` of operands `(q, k, v, parameters, xq, xk)`: `[heads n d]`, `[heads parameters]` and
    `[dx n]`, padded to whole blocks; `hidden [nk]`: minus infinity for keys that are not there, else 0."""
    return _attend(operands, hidden, plan)[0]


@fused.def_fwd
def _fused_fwd(perturbed, operands, hidden, plan):
    del perturbed
    out, log_total = _attend(operands, hidden, plan)
    return out, (out, log_total)


@fused.def_bwd
def _fused_bwd(residuals, d_out, perturbed, operands, hidden, plan):
    out, log_total = residuals
    q, k, v, parameters, xq, xk = operands
    delta = jnp.sum(f32(d_out) * f32(out), axis=-1)
    log_total = jnp.where(log_total > -jnp.inf, log_total, jnp.inf)  # a query without keys: p = exp(-inf) = 0
    heads, nq, nk = q.shape[0], q.shape[1], k.shape[1]

    # Only what is differentiated is computed: locations rarely are. Sums over the own points and the heads are XLA's.
    wanted = [operand is not None and flag for operand, flag in zip(operands[3:], perturbed[3:], strict=True)]
    d_parameters = _sums((heads, parameters.shape[1], nq)) if wanted[0] else None
    d_xq, d_xk = (_sums((heads, *x.shape)) if flag else None for x, flag in zip((xq, xk), wanted[1:], strict=True))

    inputs = [(q, "hbd"), (k, "hnd"), (v, "hnd"), (hidden, "n"), (parameters, "hp"), (xq, "xb"), (xk, "xn")]
    inputs += [(log_total, "hb"), (delta, "hb"), (d_out, "hbd")]
    results = [(q, "hbd"), (d_parameters, "hpb"), (d_xq, "hxb")]
    d_q, d_parameters, d_xq = _call(_query_kernel, plan, nq, heads, inputs, results)

    inputs = [(q, "hnd"), (k, "hbd"), (v, "hbd"), (hidden, "b"), (parameters, "hp"), (xq, "xn"), (xk, "xb")]
    inputs += [(log_total, "hn"), (delta, "hn"), (d_out, "hnd")]
    d_k, d_v, d_xk = _call(_key_kernel, plan, nk, heads, inputs, [(k, "hbd"), (v, "hbd"), (d_xk, "hxb")])
    return d_q, d_k, d_v, _total(d_parameters, 2), _total(d_xq, 0), _total(d_xk, 0)


def _total(a, axis):
    return None if a is None else jnp.sum(a, axis=axis)


def f32(a):
    return a.astype(jnp.float32)
