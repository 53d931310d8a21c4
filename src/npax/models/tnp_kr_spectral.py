from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..attention.rotary import cos_sin
from ..bias import AbstractBias, ColumnsBias
from ..blocks import write_memories
from ..layers import MLP, Linear, masked_mean
from ..likelihoods import AbstractLikelihood
from ..wide import wide
from ._base import AbstractConditionalNeuralProcess, clean, whole_number
from .tnp_kr import TNPKR, part_of


class SpectralTNPKR(AbstractConditionalNeuralProcess):
    r"""TNP-KR: SA with a bias that depends on the task, through the periodogram of its context. Ours; KR2 has one
    bias for all tasks.

    A kernel in the attention's bias helps as far as it is the right one. Where every task has its own period or
    length scale, a bias that is the same for all of them can hold none; here block $b$ and head $h$ of a task have

    $$B_{bh}(x_q, x_k) = \mathrm{bias}_{bh}(x_q, x_k)
      + \sum_{d=1}^{D} \sum_{m=1}^{M} a_{bhdm} \cos\big(2\pi m\, (x_{qd} - x_{kd}) / L\big),$$

    a series of cosines in each coordinate, which comes close to any even function of the difference below $L/2$, and
    an MLP reads the coefficients $a$ off the periodogram of the context along that coordinate (`periodogram`). The
    logit of a periodic kernel, $-2 \sin^2(\pi r/p)/\ell^2$, is a single cosine, of $1/p$ cycles per unit; that of a
    product of kernels over coordinates is a sum. The same MLP tells the tokens what it read. Everything is a function
    of differences: the model is translation equivariant.

    **Arguments:** `dx`, `dy`, `likelihood`, `blocks`, `size`, `heads`, `head_size`, `hidden`: as for `TNPKR`. `bias`:
    what it is for all tasks, drawn for each block by a function `key -> bias`, or a template that each block varies.
    `length`: $L$; the series repeats itself after it, so it should be twice the largest difference of coordinates.
    `terms`: $M$; the highest frequency of the series is $M/L$. `frequencies`: of the periodogram, $1/L$ apart as those
    of the series, at least `terms`. `summary`: widths of the MLP.

    **Good values:** the defaults, for coordinates in about [-2, 2]: differences up to 5, 4 cycles per unit in the bias
    and 10 in the periodogram. **Cost:** that of `TNPKR` with heads wider by 2 D M (80 by default; a step takes
    about a tenth longer), and O(nc D frequencies) for the periodogram.

    **Pitfalls:** harmonics above the highest frequency are not seen; coordinates in other units must be scaled.
    """

    inner: TNPKR
    summary: MLP
    coefficients: Linear
    observed: Linear
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)
    series: tuple[int, int, int] = eqx.field(static=True)
    """Blocks, heads and terms of the series."""
    length: float = eqx.field(static=True)
    frequencies: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        bias: AbstractBias | Callable[[PRNGKeyArray], AbstractBias],
        length: float = 10.0,
        terms: int = 40,
        frequencies: int = 100,
        summary: tuple[int, ...] = (128, 64, 32),
        likelihood: AbstractLikelihood | None = None,
        blocks: int = 6,
        size: int = 64,
        heads: int = 4,
        head_size: int = 32,
        hidden: int = 128,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, terms=terms, frequencies=frequencies)
        if frequencies < terms:
            raise ValueError(f"`frequencies` must be at least `terms`, {terms}, got {frequencies}.")
        if not length > 0:
            raise ValueError(f"`length` must be positive, got {length}.")
        i_key, s_key, c_key, o_key = jr.split(key, 4)

        def of_the_task(key):
            return _TaskBias(
                ColumnsBias(part_of(bias, AbstractBias, key), tuple(range(dx))), jnp.zeros((heads, dx, terms))
            )

        self.inner = TNPKR(
            dx,
            dy,
            bias=of_the_task,
            locations=False,
            likelihood=likelihood,
            blocks=blocks,
            size=size,
            heads=heads,
            head_size=head_size,
            hidden=hidden,
            key=i_key,
        )
        self.summary = MLP([2 * frequencies + 2, *summary], key=s_key)
        coefficients = Linear(summary[-1], blocks * heads * terms, key=c_key)
        self.coefficients = eqx.tree_at(lambda m: m.weight, coefficients, 0.3 * coefficients.weight)
        self.observed = Linear(summary[-1], 2 * size, key=o_key)
        self.dx, self.dy = dx, dy
        self.series, self.length, self.frequencies = (blocks, heads, terms), length, frequencies

    @property
    def likelihood(self) -> AbstractLikelihood:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.likelihood

    def condition(self, xc, yc, mask=None):
        xc, yc, mask = clean(self, xc, yc, mask)
        centre = masked_mean(xc, mask)
        xc = jnp.where(mask[:, None], xc - centre, 0.0)
        read = periodogram(xc, yc, mask, length=self.length, frequencies=self.frequencies)
        summary = self.summary(read)
        a = jnp.moveaxis(self.coefficients(summary).reshape(self.dx, *self.series), 0, 2)
        observed = self.observed(jnp.mean(summary, axis=0, keepdims=True)).reshape(2, -1)
        task = a, observed, centre
        informed, x = self._informed(task), self._with_waves(xc)
        return task, write_memories(informed.stack, informed.context_tokens(x, yc), x, mask)

    def decode(self, state, xt):
        task, memory = state
        return self._informed(task).decode(memory, self._with_waves(xt - task[2]))

    def _informed(self, task):
        """The transformer of this task."""
        a, observed, _ = task
        attention: Any = self.inner.stack.attention
        changed = attention.bias.a + a, self.inner.embed_observed + observed
        return eqx.tree_at(lambda m: (m.stack.attention.bias.a, m.embed_observed), self.inner, changed)

    def _with_waves(self, x):
        """Locations and, beside them, what the series is made of: once for all blocks."""
        flat = (jax.lax.collapse(a, 1) for a in waves(x, length=self.length, count=self.series[-1]))
        return jnp.concatenate([x, *flat], axis=1)


class _TaskBias(AbstractBias):
    """A bias of the first `dx` columns, and a series of cosines whose waves are the others."""

    bias: ColumnsBias
    a: Float[Array, "heads dx terms"]

    def __call__(self, xq, xk):
        heads, dx, _ = self.a.shape
        a = jnp.tile(self.a.reshape(heads, 1, -1), (1, 1, 2))
        return self.bias(xq, xk) + jnp.einsum("hqm,km->hqk", a * xq[:, dx:], xk[:, dx:])


def waves(
    x: Float[Array, "n dx"], *, length: float, count: int
) -> tuple[Float[Array, "n dx count"], Float[Array, "n dx count"]]:
    """Cosines and sines of 1 to `count` periods in `length`."""
    precise = x.astype(wide(x.dtype))  # angles of many turns
    cos, sin = cos_sin(precise[:, :, None] * (2 * jnp.pi / length * jnp.arange(1, count + 1, dtype=precise.dtype)))
    return cos.astype(x.dtype), sin.astype(x.dtype)


def periodogram(
    x: Float[Array, "n dx"],
    y: Float[Array, "n dy"],
    mask: Bool[Array, " n"],
    *,
    length: float,
    frequencies: int,
) -> Float[Array, "dx 2*{frequencies}+2"]:
    r"""What is known of a task's spectrum along each coordinate, in numbers of about one.

    For each of the frequencies $m/L$ the share $R^2$ of the variance that a sinusoid explains: the generalised
    Lomb-Scargle periodogram with a floating mean (Zechmeister & Kürster 2009), which scattered points do not disturb,
    with a ridge, since two points lie on many sinusoids. Then $\log(1 - n \log(1 - R^2))$, which grows with the
    evidence; the number of points; their variance. Several columns of `y` are taken together. Nothing changes when all
    points move, or all values.
    """
    kind, x, y = x.dtype, *(a.astype(wide(a.dtype)) for a in (x, y))
    w = mask.astype(x.dtype)
    n = jnp.maximum(jnp.sum(w), 1.0)

    def centred(a):
        w_a = w.reshape(-1, *[1] * (a.ndim - 1))
        return w_a * (a - jnp.sum(w_a * a, axis=0) / n)

    y = centred(y)
    c, s = (centred(a) for a in waves(centred(x), length=length, count=frequencies))
    ridge = 0.05 * n + 0.1
    cc, ss, cs = (jnp.sum(a * b, axis=0) for a, b in ((c, c), (s, s), (c, s)))
    cc, ss = cc + ridge, ss + ridge
    yc, ys = (jnp.einsum("nv,ndf->vdf", y, a) for a in (c, s))
    explained = jnp.sum((yc**2 * ss + ys**2 * cc - 2 * yc * ys * cs) / (cc * ss - cs**2), axis=0)
    total = jnp.sum(y**2) + 0.1
    share = jnp.clip(explained / total, 0.0, 0.999)
    evidence = jnp.log1p(-n * jnp.log1p(-share))
    rest = jnp.stack([jnp.log(n) / 2 - 1, jnp.log(total / (n * y.shape[1]))])
    rest = jnp.broadcast_to(rest, (x.shape[1], 2))
    return jnp.concatenate([2 * share - 0.5, evidence - 1, rest], axis=1).astype(kind)
