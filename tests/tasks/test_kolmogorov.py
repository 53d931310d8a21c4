"""The flow obeys its equation; tasks are blocks of it."""

import sys

import exponax
import jax
import jax.random as jr
import numpy as np
import pytest

from npax.tasks import KolmogorovTask, kolmogorov_flow, velocity_of, vorticity_of
from npax.tasks.kolmogorov import DRAG, FORCED, kolmogorov_solver

SIDE, INTERVAL, REYNOLDS = 32, 0.01, 100.0
NODES = 2 * np.pi * np.arange(SIDE) / SIDE


velocity, curl = jax.jit(velocity_of, static_argnums=1), jax.jit(vorticity_of)


def simulated():
    sizes = {"points": SIDE, "times": 7, "burn_in": 400, "interval": INTERVAL, "reynolds": REYNOLDS, "refine": 1}
    return kolmogorov_flow(jr.key(0), 2, **sizes)


@pytest.fixture(scope="module")
def flow():
    return simulated()


def derivative(field, axis):
    """Along an axis of the periodic square, in float64, by an FFT of that axis alone."""
    field = np.moveaxis(np.asarray(field, float), axis, -1)
    waves = 1j * np.fft.fftfreq(SIDE, 1 / SIDE)
    return np.moveaxis(np.fft.ifft(waves * np.fft.fft(field)).real, -1, axis)


def resolved(field):
    """Without the waves that the solver leaves out of products, about a third: nine remain."""
    waves = np.abs(np.fft.fftfreq(SIDE, 1 / SIDE)) < 9.5
    return np.fft.ifft2(np.fft.fft2(field) * waves[:, None] * waves).real


def test_a_vortex_has_the_velocity_of_the_closed_form():
    x, y = np.meshgrid(NODES, NODES, indexing="ij")
    u = np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)], axis=-1)
    vorticity = (2 * np.sin(x) * np.sin(y)).astype(np.float32)
    assert np.allclose(velocity(vorticity), u, atol=1e-5)
    assert np.allclose(velocity(vorticity, 16), u[::2, ::2], atol=1e-5)
    assert np.allclose(curl(u.astype(np.float32)), vorticity, atol=1e-5)
    assert not np.allclose(velocity(vorticity.T), velocity(-vorticity), atol=0.1)


def test_the_velocity_has_no_divergence_and_gives_back_the_vorticity(flow):
    u = np.asarray(flow)[0, -1]
    scale = np.abs(derivative(u[..., 0], 0)).max()
    assert np.abs(derivative(u[..., 0], 0) + derivative(u[..., 1], 1)).max() < 1e-4 * scale
    assert np.abs(derivative(u[..., 1], 0) + derivative(u[..., 0], 1)).max() > 0.1 * scale
    vorticity = derivative(u[..., 1], 0) - derivative(u[..., 0], 1)
    assert np.allclose(curl(u), vorticity, atol=1e-4 * scale)
    assert np.allclose(velocity(curl(u)), u, atol=1e-5)
    assert np.abs(u.mean((0, 1))).max() < 1e-5


def test_the_flow_obeys_the_equation(flow):
    u = np.asarray(flow, float)[:, 3]
    vorticity = np.asarray(curl(flow), float)
    change = (vorticity[:, 4] - vorticity[:, 2]) / (2 * INTERVAL)
    w = vorticity[:, 3]

    def residual(u):
        carried = resolved(u[..., 0] * derivative(w, 1) + u[..., 1] * derivative(w, 2))
        spread = derivative(derivative(w, 1), 1) + derivative(derivative(w, 2), 2)
        force = FORCED * np.cos(FORCED * NODES)  # the curl of -sin(4 x2) e1
        return np.abs(change - (-carried + spread / REYNOLDS - DRAG * w + force)).mean() / np.abs(change).mean()

    assert residual(u) < 0.01
    assert residual(-u) > 0.5 and residual(0 * u) > 0.3 and residual(u[..., ::-1]) > 0.5


def test_from_rest_the_flow_becomes_the_laminar_one():
    solver = kolmogorov_solver(SIDE, 0.1, REYNOLDS)
    with jax.numpy_dtype_promotion("standard"):
        vorticity = np.asarray(jax.jit(exponax.repeat(solver, 20))(np.zeros((1, SIDE, SIDE), np.float32)))
    rate = FORCED**2 / REYNOLDS + DRAG
    speed = -np.sin(FORCED * NODES) * (1 - np.exp(-2.0 * rate)) / rate
    u = np.asarray(velocity(-vorticity[0]))
    assert np.allclose(u[..., 0], speed, atol=1e-3 * np.abs(speed).max()) and np.abs(u[..., 1]).max() < 1e-5


def test_trajectories_differ_and_are_a_function_of_the_key(flow):
    assert np.array_equal(flow, simulated()) and np.abs(np.subtract(*np.asarray(flow))).max() > 0.5


def test_tasks_are_blocks_of_the_flow(flow):
    tasks = KolmogorovTask(flow, crop=5, low=1, high=30, nt=40)
    x, y = jax.jit(jax.vmap(tasks.block))(jr.split(jr.key(1), 20))
    assert float(x.min()) == -3 and float(x.max()) == 3
    assert np.allclose(np.diff(np.asarray(x[0, :, 0, 0, 0])), 1.5) and np.ptp(np.asarray(x[0, 2, ..., 0])) == 0
    around = np.concatenate([flow, flow], axis=2)
    around = np.concatenate([around, around], axis=3)  # periodic
    windows = np.lib.stride_tricks.sliding_window_view(around, (5, 5, 5), axis=(1, 2, 3))
    for block in np.asarray(y):
        corner = np.argwhere(np.all(around[:, :3, :SIDE, :SIDE] == block[0, 0, 0], axis=-1))
        assert len(corner) and any(np.array_equal(np.moveaxis(windows[tuple(c)], 0, -1), block) for c in corner)
    batch = jax.jit(jax.vmap(tasks.sample))(jr.split(jr.key(2), 50))
    assert batch.xc.shape == (50, 30, 3) and batch.yt.shape == (50, 40, 2) and bool(batch.mask_t.all())
    assert 1 <= int(batch.mask_c.sum(1).min()) < int(batch.mask_c.sum(1).max()) <= 30
    assert KolmogorovTask(flow, crop=5, low=1, high=30).nt == 124
    same = jax.jit(jax.vmap(KolmogorovTask(np.asarray(flow), crop=5, high=30).block))(jr.split(jr.key(1), 20))
    assert np.array_equal(same[1], y)


def test_bad_arguments_are_named(flow):
    with pytest.raises(ValueError, match=r"`crop`.*7 times.*got 9"):
        KolmogorovTask(flow, crop=9)
    for wrong in (flow[..., 0], flow[..., :5, :], np.zeros((2, 7, 32, 32, 3))):
        with pytest.raises(ValueError, match=r"`velocity`.*\[trajectories time n n 2\], got \(2, 7, "):
            KolmogorovTask(wrong, crop=5)
    with pytest.raises(ValueError, match=r"`points` must be from 1 to the 8 nodes .* got 9"):
        velocity_of(jax.numpy.zeros((8, 8)), points=9)
    with pytest.raises(ValueError, match="high=500"):
        KolmogorovTask(flow, crop=5)


def test_a_simulation_that_breaks_down_is_refused():
    with pytest.raises(ValueError, match=r"broke down.*`refine`.*`reynolds`"):  # a viscosity that sharpens
        kolmogorov_flow(jr.key(0), 1, points=8, times=1, burn_in=9, interval=1.0, reynolds=-1.0, refine=1)


def test_without_exponax_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "exponax", None)
    with pytest.raises(ImportError, match=r"npax\[tasks\]"):
        kolmogorov_flow(jr.key(0), 1)
