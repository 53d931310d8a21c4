"""Epidemics on a lattice: the SIR benchmark of KR2 §4.4."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Int8, PRNGKeyArray

from ..arguments import whole_number
from ..task import Task
from ._base import AbstractTasks
from .pixels import AbstractPixelChoice, ContextAmongTargets, pixel_coordinates, pixel_task, some

SUSCEPTIBLE, INFECTED, RECOVERED = range(3)
REACH = 4
"""Cells up to which the infected infect, along each axis: a window of 9 x 9."""
SPACING = 4 / 64
"""Between cells, on lattices of any size: 64 x 64 cells fill [-2, 2]."""
STEPS = {64: 25, 128: 50, 256: 75, 1024: 200}
"""KR2's lattices, and how long epidemics run on them: this, and the window of 9 x 9 with the inverse square of the
distance, are of the authors' published settings; the paper says that infection decreases with distance."""


class Outbreak(NamedTuple):
    r"""What sets one epidemic apart: the infection rate $\beta$, the recovery rate $\gamma$ per step, the first
    infections (at most 4)."""

    infection: Float[Array, ""]
    recovery: Float[Array, ""]
    first: Int[Array, ""]


def draw_outbreak(key: PRNGKeyArray) -> Outbreak:
    r"""$\beta \sim \mathrm{Beta}(2, 8)$, $\gamma \sim \mathrm{InvGamma}(5, 0.4)$, 1 to 4 first infections (KR2 §4.4):
    on average a fifth of those next to an infected cell catch it within a step, and it lasts ten
    (twelve and a half in the mean of $1 / \gamma$).

    Gamma variables of whole shapes are sums of exponential ones.
    """
    rates, number = jr.split(key)
    sums = [jnp.sum(part) for part in jnp.split(jr.exponential(rates, (15,)), [2, 10])]
    return Outbreak(sums[0] / (sums[0] + sums[1]), 0.4 / sums[2], jr.randint(number, (), 1, 5))


def pressure(infected: Bool[Array, "rows columns"]) -> Float[Array, "rows columns"]:
    r"""$\sum_j 1 / d_{ij}^2$ over the infected cells $j$ in the 9 x 9 window around each cell $i$, itself left out.

    Cells beyond the edge are empty. As a sum of shifted lattices, the mirrored ones added first: ten times faster on
    CPUs than a convolution of one channel.
    """
    rows, columns = infected.shape
    around = jnp.pad(infected.astype(jnp.float32), REACH)
    total = jnp.zeros((rows, columns))
    for a in range(REACH + 1):
        band = _both_ways(around, a, rows, axis=0)
        for b in range(REACH + 1):
            if a or b:
                total += _both_ways(band, b, columns, axis=1) / (a * a + b * b)
    return total


def _both_ways(padded, shift, size, axis):
    """A padded lattice moved by `shift` cells, forth and back, added."""
    forth = jax.lax.slice_in_dim(padded, REACH + shift, REACH + shift + size, axis=axis)
    back = jax.lax.slice_in_dim(padded, REACH - shift, REACH - shift + size, axis=axis)
    return forth + back if shift else forth


def step(
    state: Int8[Array, "rows columns"], uniform: Float[Array, "rows columns"], outbreak: Outbreak
) -> Int8[Array, "rows columns"]:
    r"""One step of all cells at once, given a uniform number for each: the susceptible are infected with probability
    $\min(1, \beta \sum_j 1 / d_{ij}^2)$, the infected recover with probability $\min(1, \gamma)$."""
    infected = state == INFECTED
    caught = (state == SUSCEPTIBLE) & (uniform < outbreak.infection * pressure(infected))
    healed = infected & (uniform < outbreak.recovery)
    return state + (caught | healed).astype(jnp.int8)


def simulate(
    key: PRNGKeyArray, outbreak: Outbreak, side: int, steps: int, times: Int[Array, " k"]
) -> Int8[Array, "k side side"]:
    """The lattice after each of `times` steps (0: the first infections alone) of an epidemic of `steps`.

    **Cost:** O(side² steps) time; memory that of `k` lattices, however long it runs.
    """
    place_key, run_key = jr.split(key)
    places = some(place_key, side * side, 4)
    start = jnp.zeros(side * side, jnp.int8).at[places].set((jnp.arange(4) < outbreak.first).astype(jnp.int8))
    start = start.reshape(side, side)

    def onward(carry, i):
        state, kept = carry
        state = step(state, jr.uniform(jr.fold_in(run_key, i), state.shape), outbreak)
        return (state, jnp.where((times == i)[:, None, None], state, kept)), None

    kept = jnp.broadcast_to(start, (times.shape[0], side, side))
    return jax.lax.scan(onward, (start, kept), 1 + jnp.arange(steps))[0][1]


class SIRTask(AbstractTasks):
    r"""Where are the susceptible, the infected and the recovered, a random number of steps into an epidemic (KR2 §4.4)?

    A new epidemic for every task, one frame of it, $t \sim U\{1, \dots, \texttt{steps}\}$. The paper does not say
    which of them; the authors' published settings have $t \sim U\{0, \dots, \texttt{steps} - 1\}$, the first infections
    alone among them, which is a little easier (0.56 instead of 0.59 nats of entropy of the shares of the classes, the
    mean over 64 epidemics on 64 x 64 cells). Ours: tasks are independent. In the authors' public code the frames of one
    simulation are permuted and cut into batches: all tasks of a batch are times of one epidemic, with one set of seen
    cells. Three classes, one-hot
    (`npax.likelihoods.Categorical(3)`); `x` is the place of the cell, cells `SPACING` apart whatever the size.

    **Arguments:** `side` of the lattice; `steps` of the epidemic; `choice`: which cells are context and targets.
    **Cost:** 25 steps on 64 x 64 take about a millisecond, little beside a step of training.
    """

    choice: AbstractPixelChoice
    side: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    def __init__(self, choice: AbstractPixelChoice, *, side: int = 64, steps: int = 25):
        _check(side, steps)
        self.choice, self.side, self.steps = choice, side, steps

    def frame(self, key: PRNGKeyArray) -> Int8[Array, "side side"]:
        """The lattice of which `sample` shows a part."""
        return self._draw(key)[0]

    def sample(self, key):
        state, choice_key = self._draw(key)
        x = pixel_coordinates(self.side, self.side, SPACING)
        return pixel_task(x, one_hot(state).reshape(len(x), 3), self.choice.draw(choice_key, len(x)))

    def _draw(self, key):
        rates, run, time, choice_key = jr.split(key, 4)
        times = jr.randint(time, (1,), 1, self.steps + 1)
        return simulate(run, draw_outbreak(rates), self.side, self.steps, times)[0], choice_key


class SIRForecastTask(AbstractTasks):
    r"""How does the epidemic look some steps ahead? Context: cells of several frames; targets: cells of a later one.

    The frames $t - \texttt{frames} + 1, \dots, t$ are seen in part, `nc` cells at random over all of them, and `nt`
    cells are asked for at $t + h$, $h \sim U\{1, \dots, \texttt{horizon}\}$. Time is the third coordinate: the whole
    epidemic spans [-2, 2]. Nothing depends on what comes later: a `CausalBias` says so to the model,

        ColumnsBias(RBFNetworkBias(4, key=k1), (0, 1)) + ColumnsBias(RBFNetworkBias(4, key=k2), (2,)) + CausalBias(4)

    **Arguments:** `side`, `steps` as for `SIRTask`; `frames`: seen; `horizon`: how many steps ahead at most; `nc`,
    `low`: most and fewest cells seen, of all frames; `nt` targets.
    """

    side: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    frames: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    nc: int = eqx.field(static=True)
    low: int = eqx.field(static=True)
    nt: int = eqx.field(static=True)

    def __init__(
        self,
        *,
        side: int = 64,
        steps: int = 25,
        frames: int = 4,
        horizon: int = 5,
        nc: int = 512,
        low: int = 123,
        nt: int = 1024,
    ):
        _check(side, steps)
        if not (frames >= 1 and horizon >= 1 and frames + horizon <= steps + 1):
            raise ValueError(
                "`frames` and `horizon` must be at least 1 and together at most `steps` + 1, "
                f"got frames={frames}, horizon={horizon}, steps={steps}."
            )
        if not (0 <= low <= nc <= frames * side * side and 1 <= nt <= side * side):
            raise ValueError(
                f"The sizes must satisfy 0 <= low <= nc <= frames * side ** 2 = {frames * side * side} and "
                f"1 <= nt <= side ** 2 = {side * side}, got low={low}, nc={nc}, nt={nt}."
            )
        self.side, self.steps, self.frames, self.horizon = side, steps, frames, horizon
        self.nc, self.low, self.nt = nc, low, nt

    def sample(self, key):
        rates, run, time, ahead, size, seen, asked = jr.split(key, 7)
        horizon = jr.randint(ahead, (), 1, self.horizon + 1)
        last = jr.randint(time, (), self.frames - 1, self.steps - horizon + 1)
        times = jnp.append(last - jnp.arange(self.frames), last + horizon)
        states = simulate(run, draw_outbreak(rates), self.side, self.steps, times)
        place = pixel_coordinates(self.side, self.side, SPACING)
        clock = jnp.repeat(4 / self.steps * times.astype(jnp.float32) - 2, len(place))[:, None]
        x = jnp.concatenate([jnp.tile(place, (self.frames + 1, 1)), clock], axis=-1)
        y = one_hot(states).reshape(len(x), 3)
        known = self.frames * len(place)
        context = some(seen, known, self.nc)
        targets = known + some(asked, len(place), self.nt)
        mask = jnp.arange(self.nc) < jr.randint(size, (), self.low, self.nc + 1)
        return Task(x[context], y[context], mask, x[targets], y[targets], jnp.ones(self.nt, bool))


def sir_lattice(side: int = 64) -> SIRTask:
    """SIR of KR2 on a lattice of 64, 128, 256 or 1024 cells a side, after up to 25, 50, 75 or 200 steps.

    3 to 12.5 % of the cells are seen (100,000 of 1024 x 1024), and 25 % of them asked for (all of 256 x 256 and of
    1024 x 1024), the seen ones among them.
    """
    if side not in STEPS:
        raise ValueError(f"`side` must be one of {', '.join(map(str, STEPS))}, got {side}. Others: `SIRTask`.")
    cells = side * side
    low, nc = (100_000, 100_000) if side == 1024 else (round(0.03 * cells), cells // 8)
    return SIRTask(ContextAmongTargets(nc, low, cells // 4 if side <= 128 else None), side=side, steps=STEPS[side])


def one_hot(state: Int8[Array, "*shape"]) -> Float[Array, "*shape 3"]:
    """Susceptible, infected, recovered."""
    return jax.nn.one_hot(state, 3, dtype=jnp.float32)


def _check(side, steps):
    whole_number(2, side=side)
    whole_number(1, steps=steps)
