"""Scan attention in GPU kernels: logits, bias and weights of a tile of pairs never leave the chip."""

import importlib.util
import math
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..arguments import whole_number
from ..bias import AbstractBias
from ..bias.tile import tile_of
from ._base import AbstractAttention
from .dense import check_operands, hide, of_pairs
from .fused_kernels import Plan, f32, fused
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
    _check_shape(block, step, warps, group)
    if not fusable(q, k, v, bias):
        raise ValueError(
            f"The kernels take `q`, `k`, `v` of one type of 16 or 32 bits, heads of 128 at most and a `bias` with a "
            f"`tile`; got {q.dtype}, {k.dtype}, {v.dtype}, heads of {q.shape[2]} and {v.shape[2]} and "
            f"{type(bias).__name__}. Use `scan_attention`."
        )
    if bias is not None:
        of_pairs(jax.eval_shape(bias, xq, xk), q, k)
    nq, nk, dv = q.shape[1], k.shape[1], v.shape[2]
    q_side, k_side = (max(block, step) * max(1, -(-n // max(block, step))) for n in (nq, nk))
    k, v, xk = hide(mask, k, v, xk)
    hidden = jnp.zeros(nk, jnp.float32) if mask is None else jnp.where(mask, jnp.float32(0), -jnp.inf)
    hidden = jnp.pad(hidden, (0, k_side - nk), constant_values=-jnp.inf)
    parameters, biases = (None, None) if bias is None else _flatten(bias)
    plan = Plan(biases, q.shape[2] ** -0.5, block, step, warps, math.gcd(len(q), group), interpret)
    q, k, v = (pad(pad(a, n, 1), _width(a.shape[2]), 2) for a, n in ((q, q_side), (k, k_side), (v, k_side)))
    xq, xk = (None if bias is None else pad(f32(x), n, 0).T for x, n in ((xq, q_side), (xk, k_side)))
    return fused((q, k, v, parameters, xq, xk), hidden, plan)[:, :nq, :dv]


def _check_shape(block, step, warps, group):
    whole_number(1, block=block, step=step, warps=warps, group=group)
    for name, size in (("block", block), ("step", step)):
        if size < 16 or size & (size - 1):
            raise ValueError(f"`{name}` must be a power of two from 16 on, got {size}.")


def fusable(q: Array, k: Array, v: Array, bias: AbstractBias | None) -> bool:
    """Whether the kernels can take these."""
    numbers = q.dtype == k.dtype == v.dtype and q.dtype in (jnp.float32, jnp.bfloat16, jnp.float16)
    return numbers and max(q.shape[2], v.shape[2]) <= 128 and (bias is None or tile_of(bias) is not None)


def runs_here() -> bool:
    """Whether all devices of this process are NVIDIA GPUs from Ampere on, and Pallas still has Triton."""
    if jax.default_backend() != "gpu" or importlib.util.find_spec("jax.experimental.pallas.triton") is None:
        return False
    generations = [str(getattr(device, "compute_capability", "")).split(".")[0] for device in jax.local_devices()]
    return all(generation.isdigit() and int(generation) >= 8 for generation in generations)


def fused_or(
    scan: Callable[[Array, Array, Array], Array], q: Array, k: Array, v: Array, *, bias: AbstractBias | None, **options
) -> Array:
    """`fused_attention` where the kernels run and can take these, else `scan(q, k, v)`."""
    if not (runs_here() and fusable(q, k, v, bias)):
        return scan(q, k, v)
    kernels = partial(fused_attention, bias=bias, **options)
    return jax.lax.platform_dependent(q, k, v, cuda=kernels, default=scan)


def _flatten(bias):
    """All parameters `[heads parameters]`, and what makes the bias of some heads of their rows."""
    leaves, structure = jax.tree.flatten(bias)
    rows = [f32(leaf).reshape(leaf.shape[0], -1) for leaf in leaves]
    widths = [row.shape[1] for row in rows]

    def biases(each):
        """`each`: the rows of some heads."""
        values = iter(zip(*each, strict=True))
        parts = [tuple(next(values) for _ in range(width)) for width in widths]
        return tile_of(jax.tree.unflatten(structure, parts))

    return (jnp.concatenate(rows, axis=1) if rows else None), biases


def _width(d):
    """Tensor cores want powers of two from 16 on; zeros fill up."""
    return max(16, 1 << (d - 1).bit_length())


class FusedAttention(AbstractAttention):
    """`fused_attention` on NVIDIA GPUs (Ampere and later), `scan_attention` on other devices and for what the kernels
    cannot take. Remembers keys and values.

    `ScanAttention` does the same with the default shapes of the kernels: this one is for other shapes (`block`, `step`,
    `warps`, `group`, as in `fused_attention`).
    """

    block: int = eqx.field(static=True, default=64)
    step: int = eqx.field(static=True, default=32)
    warps: int = eqx.field(static=True, default=4)
    group: int = eqx.field(static=True, default=2)

    def __check_init__(self):
        _check_shape(self.block, self.step, self.warps, self.group)

    def memorise(self, k, v, xk, mask):
        return k, v, xk, mask

    def recall(self, q, xq, memory, bias):
        k, v, xk, mask = memory
        scan = partial(scan_attention, bias=bias, xq=xq, xk=xk, mask=mask)
        shape = {"block": self.block, "step": self.step, "warps": self.warps, "group": self.group}
        return fused_or(scan, q, k, v, bias=bias, xq=xq, xk=xk, mask=mask, **shape)
