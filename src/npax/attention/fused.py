"""Scan attention in GPU kernels: logits, bias and weights of a tile of pairs never leave the chip."""

import importlib.util
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Bool, Float

from ..arguments import at_least_one
from ..bias import AbstractBias
from ..bias.rbf_network import LOG2_E
from ..bias.tile import Tile, tile
from ._base import AbstractAttention
from .dense import check_operands, hide, of_heads
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
    step: int = 32,
    warps: int = 4,
    group: int = 2,
    interpret: bool = False,
) -> Float[Array, "heads nq dv"]:
    r"""`scan_attention` as three GPU kernels (Triton, through Pallas): the same numbers and gradients.

    One program takes `block` queries of a head over all keys, `step` at a time, and keeps the tile of logits, the
    bias and the running sums of KR2 (eq. 6-8) in registers. Memory holds nothing of the size of the pairs.
    The backward pass has a kernel that goes over the keys (gradients of queries, of the bias's parameters and of
    `xq`) and one that goes over the queries (keys, values, `xk`); both compute the tiles again from the
    log-normalisers. No two programs write to one place: equal inputs give equal bytes.

    **Arguments:** `bias`: None or one that has a `tile` (RBF network, geometric, causal, of columns, and sums of
    these). `block`, `step`: powers of two from 16 on; `warps`: of 32 threads per program, one for 16 rows of a block;
    `group`: heads that a program of the forward pass serves, whose biases share distances and a ladder's rungs (where
    it does not divide their number, the largest divisor of both).
    `interpret`: the kernels' own arithmetic on any device, slowly, for tests. The rest is as in `scan_attention`.
    Sums are kept in float32, be the operands of 16 bits or 32; products of float32 follow
    `jax.default_matmul_precision`, by default TF32 with 10 bits of mantissa, as XLA's on the same GPUs.
    **Cost:** per pair and head one exponential for the softmax, and for the bias one for each basis of an RBF network,
    or half of two in `GeometricRBFBias`; not these but the 20 to 30 other operations for a pair, the exchange between
    threads and their waiting are the limit.

    **On an H200** (`benchmarks/results/attention_gpu.md`; 131,072 queries and keys, 4 heads of 32, forward, the fastest
    shapes): 196 ms in float32 and 125 ms in bfloat16 with a geometric bias, 228 and 208 with TISA's five bases, 150 and
    50 without; the scan takes 470 to 900. Without a bias the vendor's own takes 37 ms in bfloat16. Errors against
    float64: 1e-6 with full products, 9e-4 with TF32, 4e-3 in bfloat16. At 32,768 the default shapes take up to a
    sixth longer than the fastest.
    **Pitfalls:** GPUs before Ampere cannot run them. Pallas will drop Triton in a later version than JAX 0.12; versions
    from 0.11 on say so in a `DeprecationWarning`. Heads of other than 32 channels have not run on a GPU.

    **Raises:** `ValueError` for operands that the kernels cannot take; `FusedAttention` scans those.
    """
    check_operands(q, k, v, bias, xq, xk, mask)
    at_least_one(group=group)
    for name, size in (("block", block), ("step", step)):
        if size < 16 or size & (size - 1):
            raise ValueError(f"`{name}` must be a power of two from 16 on, got {size}.")
    if not fusable(q, k, v, bias):
        raise ValueError(
            f"The kernels take `q`, `k`, `v` of one type of 16 or 32 bits, heads of 128 at most and a `bias` with a "
            f"`tile`; got {q.dtype}, {k.dtype}, {v.dtype}, heads of {q.shape[2]} and {v.shape[2]} and "
            f"{type(bias).__name__}. Use `scan_attention`."
        )
    if bias is not None:
        of_heads(jax.eval_shape(bias, xq, xk), len(q))
    nq, nk, dv = q.shape[1], k.shape[1], v.shape[2]
    q_side, k_side = (max(block, step) * max(1, -(-n // max(block, step))) for n in (nq, nk))
    k, v, xk = hide(mask, k, v, xk)
    hidden = jnp.zeros(nk, jnp.float32) if mask is None else jnp.where(mask, jnp.float32(0), -jnp.inf)
    hidden = jnp.pad(hidden, (0, k_side - nk), constant_values=-jnp.inf)
    parameters, of_heads_of = (None, None) if bias is None else _flatten(bias)
    plan = _Plan(of_heads_of, q.shape[2] ** -0.5, block, step, warps, math.gcd(len(q), group), interpret)
    q, k, v = (pad(pad(a, n, 1), _width(a.shape[2]), 2) for a, n in ((q, q_side), (k, k_side), (v, k_side)))
    xq, xk = (None if bias is None else pad(_f32(x), n, 0).T for x, n in ((xq, q_side), (xk, k_side)))
    return _fused((q, k, v, parameters, xq, xk), hidden, plan)[:, :nq, :dv]


def fusable(q: Array, k: Array, v: Array, bias: AbstractBias | None) -> bool:
    """Whether the kernels can take these."""
    numbers = q.dtype == k.dtype == v.dtype and q.dtype in (jnp.float32, jnp.bfloat16, jnp.float16)
    return numbers and max(q.shape[2], v.shape[2]) <= 128 and (bias is None or tile(bias) is not None)


def runs_here() -> bool:
    """Whether all devices of this process are NVIDIA GPUs from Ampere on, and Pallas still has Triton."""
    if jax.default_backend() != "gpu" or importlib.util.find_spec("jax.experimental.pallas.triton") is None:
        return False
    generations = [str(getattr(device, "compute_capability", "")).split(".")[0] for device in jax.local_devices()]
    return all(generation.isdigit() and int(generation) >= 8 for generation in generations)


class _Plan(NamedTuple):
    """What a kernel knows when it is compiled."""

    bias: Callable[[Sequence[Sequence[Any]]], Tile | None] | None
    scale: float
    block: int
    step: int
    warps: int
    group: int
    interpret: bool


def _flatten(bias):
    """All parameters `[heads parameters]`, and what makes the bias of some heads of their rows."""
    leaves, structure = jax.tree.flatten(bias)
    rows = [_f32(leaf).reshape(leaf.shape[0], -1) for leaf in leaves]
    widths = [row.shape[1] for row in rows]

    def of_heads(each):
        """`each`: the rows of some heads."""
        values = iter(zip(*each, strict=True))
        parts = [tuple(next(values) for _ in range(width)) for width in widths]
        return tile(jax.tree.unflatten(structure, parts))

    return (jnp.concatenate(rows, axis=1) if rows else None), of_heads


def _f32(a):
    return a.astype(jnp.float32)


def _width(d):
    """Tensor cores want powers of two from 16 on; zeros fill up."""
    return max(16, 1 << (d - 1).bit_length())


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


class FusedAttention(AbstractAttention):
    """`fused_attention` on NVIDIA GPUs (Ampere and later), `scan_attention` on other devices and for what the kernels
    cannot take. Remembers keys and values.

    `ScanAttention` does the same with the default shapes of the kernels: this one is for other shapes.
    """

    block: int = eqx.field(static=True, default=64)
    step: int = eqx.field(static=True, default=32)
    warps: int = eqx.field(static=True, default=4)
    group: int = eqx.field(static=True, default=2)

    def memorise(self, k, v, xk, mask):
        return k, v, xk, mask

    def recall(self, q, xq, memory, bias):
        k, v, xk, mask = memory

        read = {"bias": bias, "xq": xq, "xk": xk, "mask": mask}
        scan = partial(scan_attention, **read)
        if not (runs_here() and fusable(q, k, v, bias)):
            return scan(q, k, v)
        fused = partial(fused_attention, **read, block=self.block, step=self.step, warps=self.warps, group=self.group)
        return jax.lax.platform_dependent(q, k, v, cuda=fused, default=scan)
