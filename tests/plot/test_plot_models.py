"""Pictures of what models do: samples, tasks, attention."""

import jax
import jax.random as jr
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import npax
from npax import plot


@pytest.fixture
def ax():
    return Figure().subplots()


def test_samples_are_lines_in_the_order_of_x(ax):
    x = np.array([2.0, 0.0, 1.0])
    plot.samples(ax, x, np.array([[2.0, 0.0, 1.0], [4.0, 0.0, 2.0]]))
    drawn = [line.get_xydata().tolist() for line in ax.lines]
    assert drawn == [[[0, 0], [1, 1], [2, 2]], [[0, 0], [1, 2], [2, 4]]]
    plot.samples(ax, x, np.array([[[2.0], [0.0], [1.0]]]))  # as `npax.sample` gives them
    assert ax.lines[-1].get_xydata().tolist() == drawn[0]
    with pytest.raises(ValueError, match=r"`y` must be \[samples, 3\].*got \(3,\).$"):
        plot.samples(ax, x, x)
    with pytest.raises(ValueError, match=r"one row per function.*got \(3, 2\). Pass `y.T`.*`sample_y`"):
        plot.samples(ax, x, np.ones((3, 2)))


def test_task_panels_share_the_colours_of_values():
    axes = Figure().subplots(1, 4)
    x, y = np.linspace(-2, 2, 5), np.linspace(-2, 2, 4)
    truth = np.add.outer(y, x)
    plot.task_panels(axes, x, y, 3 * truth, 0 * truth + 1, truth, (np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2)))
    assert [ax.get_title() for ax in axes] == ["task", "uncertainty", "prediction", "truth"]
    limits = [ax.collections[0].get_clim() for ax in axes]
    assert limits[0] == limits[2] == limits[3] != limits[1]
    with pytest.raises(ValueError, match="`axes` must be four, got 3"):
        plot.task_panels(axes[:3], x, y, truth, truth, truth, (np.zeros((1, 2)), np.zeros(1)))
    plot.task_panels(Figure().subplots(1, 4), x, y, truth, 0 * truth + 1, truth, (np.zeros((0, 2)), np.zeros(0)))


def test_attention_maps_show_the_weights_of_a_head(ax):
    xc, xt = np.array([[1.0], [-1.0], [0.0]], np.float32), np.linspace(-2, 2, 6, dtype=np.float32)[:, None]

    @jax.jit
    def attend(key, xc, xt):
        return npax.MultiHeadAttention(1, 8, heads=2, key=key).weights(xc, xt)

    weights = np.asarray(attend(jr.key(0), xc, xt))
    assert weights.shape == (2, 6, 3) and np.allclose(weights.sum(axis=-1), 1, atol=1e-5)
    mesh = plot.attention_matrix(ax, xt, xc, weights[1])
    assert np.allclose(mesh.get_array(), weights[1][:, [1, 2, 0]].T)
    alone = plot.attention_matrix(ax, xt[:1], xc, weights[1][:1])
    assert np.allclose(alone.get_array()[:, 0], weights[1][0, [1, 2, 0]])
    with pytest.raises(ValueError, match="`weights` must be"):
        plot.attention_matrix(ax, xt, xc, weights[1].T)


def test_attention_map_in_the_plane_puts_heavy_points_on_top(ax):
    xc = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    dots = plot.attention_map(ax, [0.5, 0.5], xc, np.array([0.7, 0.1, 0.2]))
    assert dots.get_array().tolist() == [0.1, 0.2, 0.7]
    with pytest.raises(ValueError, match="`target` must be"):
        plot.attention_map(ax, [0.5], xc, np.ones(3))


def test_flow_panels_show_the_vorticity():
    axes = Figure().subplots(1, 4)
    x, y = np.linspace(-3, 3, 7), np.linspace(-3, 3, 5)
    u = np.stack(np.broadcast_arrays(-y[:, None], 2 * x), axis=-1)  # turns: vorticity 2 + 1
    plot.flow_panels(axes, x, y, u, np.full(u.shape, 0.5), 2 * u, (np.array([[0.0, 1.0]]), np.array([[-1.0, 0.0]])))
    std, predicted, truth = (np.asarray(ax.collections[0].get_array()) for ax in axes[1:])
    np.testing.assert_allclose(std, 0.5)
    np.testing.assert_allclose(predicted, 3.0)
    np.testing.assert_allclose(truth, 6.0)
    assert axes[2].collections[0].get_clim() == axes[3].collections[0].get_clim() == (-6.0, 6.0)
    with pytest.raises(ValueError, match=r"`mean` must be \[5, 7, 2\].*got \(7, 5, 2\)"):
        plot.flow_panels(axes, x, y, u.swapaxes(0, 1), u, u, (u[0], u[0]))
    with pytest.raises(ValueError, match="four, got 3"):
        plot.flow_panels(axes[:3], x, y, u, u, u, (u[0], u[0]))


def test_task_panels_of_a_region_have_coastlines():
    axes = Figure().subplots(1, 4)
    lon, lat = np.linspace(-4, 8, 5), np.linspace(42, 53, 4)
    values = np.add.outer(lat, lon)
    plot.task_panels(
        axes, lon, lat, values, values, values, (np.array([[0.0, 45.0]]), np.array([3.0])), coords="latlon"
    )
    coasts = [any(isinstance(drawn, LineCollection) for drawn in ax.collections) for ax in axes]
    assert all(coasts) and axes[1].get_xlim() == axes[3].get_xlim()
