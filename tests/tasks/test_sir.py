"""Epidemics against a loop over cells in float64, and against what must hold of any of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from laws import TINY

import npax
from npax.likelihoods import Categorical
from npax.tasks import SIRForecastTask, SIRTask, sir_lattice
from npax.tasks.sir import INFECTED, RECOVERED, SUSCEPTIBLE, Outbreak, draw_outbreak, pressure, simulate, step


def outbreak(infection, recovery, first=1):
    return Outbreak(np.float32(infection), np.float32(recovery), np.int32(first))


def pressure_by_hand(infected):
    rows, columns = infected.shape
    total = np.zeros((rows, columns))
    for i, j in np.ndindex(rows, columns):
        for k, m in np.ndindex(rows, columns):
            if (k, m) != (i, j) and abs(k - i) <= 4 and abs(m - j) <= 4 and infected[k, m]:
                total[i, j] += 1 / ((k - i) ** 2 + (m - j) ** 2)
    return total


def test_one_infected_cell_presses_by_the_inverse_square_of_its_distance():
    infected = np.zeros((11, 12), bool)
    infected[5, 4] = True
    found = np.asarray(jax.jit(pressure)(infected))
    assert found[5, 4] == 0 and found[5, 5] == 1 and found[6, 5] == 0.5 and found[5, 8] == 1 / 16
    assert found[9, 8] == pytest.approx(1 / 32)
    assert found[10, 4] == found[5, 9] == 0  # beyond the window


def test_pressure_is_that_of_a_loop_over_pairs(rng):
    infected = rng.random((9, 13)) < 0.3
    np.testing.assert_allclose(jax.jit(pressure)(infected), pressure_by_hand(infected), rtol=1e-6)


def test_a_step_is_that_of_a_loop_over_cells(rng):
    state = rng.integers(0, 3, (10, 10)).astype(np.int8)
    uniform = rng.random((10, 10)).astype(np.float32)
    beta, gamma = 0.11, 0.3
    found = np.asarray(jax.jit(step)(state, uniform, outbreak(beta, gamma)))
    probability = np.minimum(1, beta * pressure_by_hand(state == INFECTED))
    for cell in np.ndindex(state.shape):
        if abs(uniform[cell] - probability[cell]) < 1e-6:
            continue
        onward = {SUSCEPTIBLE: uniform[cell] < probability[cell], INFECTED: uniform[cell] < gamma, RECOVERED: False}
        assert found[cell] == state[cell] + onward[int(state[cell])]
    assert (found != state).any() and (found == state).any()


def test_infection_and_recovery_are_as_frequent_as_probable():
    """A neighbour of one infected cell, beside it and across the corner; the cell itself recovers."""
    state = np.zeros((3, 3), np.int8)
    state[1, 1] = INFECTED
    uniform = np.random.default_rng(0).random((20_000, 3, 3), np.float32)
    after = np.asarray(jax.jit(jax.vmap(lambda u: step(jnp.asarray(state), u, outbreak(0.2, 0.35))))(uniform))
    assert np.mean(after[:, 1, 2] == INFECTED) == pytest.approx(0.2, abs=0.015)
    assert np.mean(after[:, 0, 2] == INFECTED) == pytest.approx(0.1, abs=0.012)
    assert np.mean(after[:, 1, 1] == RECOVERED) == pytest.approx(0.35, abs=0.015)


@pytest.fixture(scope="module")
def run():
    @jax.jit
    def run(key, infection, recovery, first):
        return simulate(key, Outbreak(infection, recovery, first), 12, 10, jnp.arange(11))

    return lambda seed, *numbers: np.asarray(run(jr.key(seed), *outbreak(*numbers))).astype(int)


@pytest.mark.parametrize("seed", range(5))
def test_cells_only_go_onward_and_one_state_at_a_time(run, seed):
    frames = run(seed, 0.3, 0.2, 3)
    assert set(np.unique(frames)) <= {SUSCEPTIBLE, INFECTED, RECOVERED}
    assert set(np.unique(np.diff(frames, axis=0))) <= {0, 1}
    counts = np.stack([(frames == k).sum(axis=(1, 2)) for k in range(3)])
    assert (counts.sum(axis=0) == 144).all() and counts[1, 0] == 3 and counts[2, 0] == 0
    assert (np.diff(counts[0]) <= 0).all() and (np.diff(counts[2]) >= 0).all() and counts[0, -1] < counts[0, 0]


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_without_infection_no_cell_is_infected(run, first):
    frames = run(0, 0.0, 0.0, first)
    assert (frames == frames[0]).all() and (frames[0] == INFECTED).sum() == first
    assert (run(0, 0.0, 1.0, first)[1:] == np.where(frames[0] == INFECTED, RECOVERED, frames[0])).all()
    assert (run(0, 0.5, 0.0, first)[-1] == INFECTED).sum() > first


def test_frames_are_those_of_one_epidemic_whichever_are_kept():
    this, key = outbreak(0.3, 0.1, 2), jr.key(4)
    frames = jax.jit(lambda times: simulate(key, this, 8, 6, times))
    kept = np.array([5, 0, 5, 2])
    whole, some = (np.asarray(frames(times)) for times in (np.arange(7), kept))
    assert np.array_equal(some, whole[kept])
    assert not np.array_equal(whole[5], whole[2])


def test_rates_have_the_distributions_of_the_paper():
    drawn = jax.jit(jax.vmap(draw_outbreak))(jr.split(jr.key(0), 4000))
    assert scipy.stats.kstest(np.asarray(drawn.infection), scipy.stats.beta(2, 8).cdf).pvalue > 0.01
    assert scipy.stats.kstest(np.asarray(drawn.recovery), scipy.stats.invgamma(5, scale=0.4).cdf).pvalue > 0.01
    assert scipy.stats.kstest(np.asarray(drawn.recovery), scipy.stats.invgamma(5, scale=0.5).cdf).pvalue < 1e-6
    assert set(np.asarray(drawn.first)) == {1, 2, 3, 4}


def test_a_task_shows_cells_of_one_frame(getkey):
    tasks = sir_lattice(64)
    key = getkey()
    task, frame = jax.tree.map(np.asarray, jax.jit(lambda key: (tasks.sample(key), tasks.frame(key)))(key))
    place = np.rint(np.asarray(task.xt) * 16 + 31.5).astype(int)
    np.testing.assert_array_equal(np.argmax(task.yt, axis=1), frame[tuple(place.T)])
    assert (task.yt.sum(axis=1) == 1).all() and task.yt.shape == (1024, 3)
    assert not np.array_equal(np.argmax(task.yt, axis=1), frame.T[tuple(place.T)])
    assert 122 < task.mask_c.sum() <= 512


@pytest.mark.parametrize(
    ("side", "asked", "edge"), [(64, 1024, 2), (128, 4096, 4), (256, 65_536, 8), (1024, 1_048_576, 32)]
)
def test_lattices_of_the_paper(side, asked, edge):
    task = jax.eval_shape(sir_lattice(side).sample, jr.key(0))
    assert task.yt.shape == (asked, 3) and task.xc.shape == (100_000 if side == 1024 else side * side // 8, 2)
    assert sir_lattice(side).steps == {64: 25, 128: 50, 256: 75, 1024: 200}[side]
    if side <= 128:
        x = jax.jit(sir_lattice(side).sample)(jr.key(0)).xt
        assert edge - 0.1 < np.abs(x).max() < edge
        gaps = np.diff(np.unique(np.asarray(x)[:, 0]))
        assert gaps.min() == pytest.approx(1 / 16)


def test_a_forecast_sees_earlier_frames_only(getkey):
    tasks = SIRForecastTask(side=8, steps=12, frames=3, horizon=4, nc=60, low=20, nt=30)
    tasks = jax.tree.map(np.asarray, jax.jit(jax.vmap(tasks.sample))(jr.split(getkey(), 50)))
    clock = lambda x: np.rint((np.asarray(x[..., 2]) + 2) * 12 / 4).astype(int)  # noqa: E731
    seen, asked = clock(tasks.xc), clock(tasks.xt)
    ahead = asked[:, 0] - seen.max(axis=1)
    assert (asked == asked[:, :1]).all() and set(ahead) == {1, 2, 3, 4}
    assert (np.ptp(seen, axis=1) == 2).all() and seen.min() == 0 and asked.max() == 12
    assert tasks.mask_c.sum(axis=1).min() >= 20 and tasks.mask_c.sum(axis=1).max() <= 60


def test_a_forecast_is_of_the_epidemic_that_is_seen(getkey):
    """With all cells seen and asked for: none goes back from one frame to the next, and the last frame differs."""
    tasks = SIRForecastTask(side=6, steps=8, frames=2, horizon=1, nc=72, low=72, nt=36)
    changed = 0
    sample = jax.jit(tasks.sample)
    for task in (sample(key) for key in jr.split(getkey(), 10)):
        x, y = np.concatenate([task.xc, task.xt]), np.concatenate([task.yc, task.yt])
        order = np.lexsort(x.T[[1, 0, 2]])
        frames = np.argmax(y[order], axis=1).reshape(3, 36)
        assert set(np.unique(np.diff(frames, axis=0))) <= {0, 1}
        changed += (frames[2] != frames[1]).any()
    assert changed > 3


def test_a_causal_model_learns_to_forecast_and_does_not_look_ahead(getkey):
    def bias(key):
        space, time = jr.split(key)
        near, soon = npax.GeometricRBFBias(2, key=space), npax.GeometricRBFBias(2, key=time)
        return npax.ColumnsBias(near, (0, 1)) + npax.ColumnsBias(soon, (2,)) + npax.CausalBias(2)

    tasks = SIRForecastTask(side=8, steps=8, frames=3, horizon=2, nc=40, low=20, nt=20)
    model = npax.TNPKR(3, 3, bias=bias, likelihood=Categorical(3), **TINY, key=getkey())
    trained = npax.fit(model, tasks, steps=30, key=getkey(), batch_size=8, chunk=15, progress=False)
    assert trained.skipped == 0 and trained.losses[-5:].mean() < trained.losses[:5].mean()
    task = jax.tree.map(np.asarray, eqx.filter_jit(tasks.sample)(getkey()))
    predict = eqx.filter_jit(lambda yc, xt: trained.model(jnp.asarray(task.xc), yc, xt).mean)
    times = np.unique(task.xc[:, 2])
    changed = np.where(task.xc[:, 2:] == times[-1], np.roll(task.yc, 1, axis=1), task.yc)
    before = np.column_stack([task.xt[:, :2], np.full_like(task.xt[:, 2], times[1])])
    np.testing.assert_allclose(predict(changed, before), predict(task.yc, before), atol=1e-6)
    assert np.abs(np.subtract(predict(changed, task.xt), predict(task.yc, task.xt))).max() > 1e-4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sir_lattice(65), "64, 128, 256, 1024, got 65"),
        (lambda: SIRTask(sir_lattice(64).choice, side=1), "`side` .* got 1"),
        (lambda: SIRForecastTask(steps=5, frames=3, horizon=4), "frames=3, horizon=4, steps=5"),
        (lambda: SIRForecastTask(side=4, nc=9, low=1, nt=17), "nt=17"),
    ],
)
def test_wrong_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
