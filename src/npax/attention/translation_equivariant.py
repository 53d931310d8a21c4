from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..arguments import whole_number
from ..turns import in_turns
from ..wide import wide
from .dense import hide, softmax

FEW = 40
"""Keys up to which masked ones are computed too: a program for fewer is not worth its compilation."""


def translation_equivariant_attention(
    q: Float[Array, "heads nq d"],
    k: Float[Array, "heads nk d"],
    v: Float[Array, "heads nk dv"],
    rho: Callable[[Float[Array, "pairs heads+dx"]], Float[Array, "pairs heads"]],
    phi: Callable[[Float[Array, "pairs heads"]], Float[Array, "pairs 1"]] | None = None,
    *,
    xq: Float[Array, "nq dx"],
    xk: Float[Array, "nk dx"],
    mask: Bool[Array, " nk"] | None = None,
    block: int = 2**11,
) -> tuple[Float[Array, "heads nq dv"], Float[Array, "nq dx"]]:
    r"""Attention that sees locations through their differences, and may move them (TE eq. 7, 8, 10):

    $$\alpha_{hnm} = \operatorname{softmax}_m\ \rho_h\bigl(\tfrac{q_n \cdot k_m}{\sqrt d},\ x_n - x_m\bigr), \qquad
      o_{hn} = \sum_m \alpha_{hnm} v_{hm}, \qquad
      x_n' = x_n + \frac1N \sum_m (x_n - x_m)\, \phi(\alpha_{1nm}, \dots, \alpha_{Hnm}).$$

    One network $\rho$ makes the logits of all heads from the products of all heads. A shift of all locations moves
    $x'$ along and leaves $o$ as it is. N counts the keys under a `True`; the others take no part, whatever they
    hold, and a query without any key reads zeros and stays where it is. The paper's sum over heads of $\phi_h$ is
    taken inside the network's last layer. Dividing by the root of d is ours.

    **Returns** $o$ `[heads nq dv]` and $x'$ `[nq dx]`; without `phi` the locations that were given.

    **Arguments:** `rho`, `phi`: modules whose leaves are all arrays. `block`: pairs that go through the networks at a
    time, be they of several tasks under `vmap` or some of the queries of one task (at least one query's); the numbers
    do not depend on it. The gradient computes each block again.

    **Cost:** nq nk passes through each network: far more than attention itself. Memory O(block hidden).
    **Good values:** `block` 1,024 to 4,096 on CPUs, where activations must stay in the cache (half the time of all
    tasks of a training batch at once); as many as memory holds on GPUs.
    """
    whole_number(1, block=block)
    nq, nk = q.shape[1], k.shape[1]
    mask = jnp.ones(nk, bool) if mask is None else mask
    k, v, xk = hide(mask, k, v, xk)
    count = max(1, -(-nq // max(1, block // max(nk, 1))))
    rows = -(-nq // count)
    together = max(1, block // max(rows * nk, 1))
    # Tasks that are computed together have each another number of keys that count.
    pairs = _all_pairs if together > 1 or nk <= FEW else _pairs_that_count

    def read(piece):
        q, xq = piece
        return in_turns(pairs, together)((q, k, v, rho, phi, xq, xk), mask)

    if count == 1:
        return read((q, xq))
    q = jnp.pad(q, ((0, 0), (0, count * rows - nq), (0, 0))).reshape(q.shape[0], count, rows, q.shape[2])
    xq = jnp.pad(xq, ((0, count * rows - nq), (0, 0))).reshape(count, rows, xq.shape[1])
    out, moved = jax.lax.map(read, (jnp.moveaxis(q, 1, 0), xq))
    return jnp.moveaxis(out, 0, 1).reshape(len(q), -1, v.shape[2])[:, :nq], moved.reshape(-1, xq.shape[2])[:nq]


def _pairs_that_count(operands, mask):
    """`_all_pairs`, of as few keys as hold all that count, in thirds of their number."""
    nk = len(mask)
    sizes = [-(-nk * thirds // 3) for thirds in (1, 2, 3)]
    branches = [jax.checkpoint(partial(_first_pairs, size)) for size in sizes]  # a gradient keeps nothing of the pairs
    return jax.lax.switch(jnp.searchsorted(jnp.array(sizes), jnp.sum(mask)), branches, operands, mask)


def _first_pairs(size, operands, mask):
    """`_all_pairs` of `size` keys, among them those that count."""
    q, k, v, rho, phi, xq, xk = operands
    first = jnp.argsort(~mask, stable=True)[:size]
    return _all_pairs((q, k[:, first], v[:, first], rho, phi, xq, xk[first]), mask[first])


def _all_pairs(operands, mask):
    q, k, v, rho, phi, xq, xk = operands
    (heads, nq, d), (nk, dx) = q.shape, xk.shape
    away = xq[:, None, :] - xk[None, :, :]
    products = jnp.einsum("hqd,hkd->hqk", q * d**-0.5, k)
    pairs = jnp.concatenate([jnp.moveaxis(products, 0, 2), away], axis=-1).reshape(nq * nk, heads + dx)
    logits = jnp.moveaxis(rho(pairs).reshape(nq, nk, heads), 2, 0)
    weights = softmax(jnp.where(mask[None, None, :], logits, -jnp.inf))
    out = jnp.einsum("hqk,hkd->hqd", weights, v)
    if phi is None:
        return out, xq
    pull = phi(jnp.moveaxis(weights, 0, 2).reshape(nq * nk, heads)).reshape(nq, nk, 1)
    step = jnp.sum(jnp.where(mask[None, :, None], away * pull, 0.0).astype(wide(xq.dtype)), axis=1)
    return out, xq + (step / jnp.maximum(jnp.sum(mask.astype(step.dtype)), 1.0)).astype(xq.dtype)
