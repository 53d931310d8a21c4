"""Set convolutions, the U-Net and the grid of the ConvCNP, against numpy and against what they promise."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
import scipy.signal
from laws import close, draw_data, evaluate, finite, normal

import npax
from npax.blocks import Grid, SetConv, UNet
from npax.blocks.unet import depthwise, double, halve


def tiny(dx=1, dy=1, **changes):
    shape = {"spacing": 1 / 8, "blocks": (1, 1), "size": 8, "hidden": 16, "window": 3, **changes}
    return npax.ConvCNP(dx, dy, **shape, key=jr.key(3))


def nodes(grid, origin):
    """All nodes `[side ** dx dx]` in float64."""
    axes = [o + grid.spacing * np.arange(grid.side) for o in np.asarray(origin, np.float64)]
    return np.array(list(itertools.product(*axes)))


def rbf(grid, conv, origin, x):
    """Weights `[n side ** dx]` in float64."""
    away = np.asarray(x, np.float64)[:, None] - nodes(grid, origin)
    scale = 0.5 + np.log1p(np.exp(float(conv.raw_scale)))
    return np.exp(-0.5 * np.sum((away / (grid.spacing * scale)) ** 2, axis=-1)), scale


@pytest.mark.parametrize("dx", [1, 2, 3])
def test_set_convolutions_equal_sums_in_numpy(dx, getkey):
    grid, conv = Grid(0.3, 1.2, 0.3, 2), SetConv(0.8)
    x, y = jr.uniform(getkey(), (12, dx)), normal(getkey(), (12, 2))
    x, mask = x.at[5].set(x[4]), jnp.arange(12) < 9  # a duplicate, and masked points
    origin = grid.origin(x, mask)
    density, values = conv.write(grid, origin, x, y, mask)
    weights, scale = rbf(grid, conv, origin, x[:9])
    rho = weights.sum(axis=0)
    sides = dx * (grid.side,)
    assert reference.relative(density, rho.reshape(*sides, 1)) < 1e-5
    true = weights.T @ np.asarray(y[:9], np.float64) / (rho + 1e-4)[:, None]
    assert reference.relative(values, true.reshape(*sides, 2)) < 1e-4

    h = normal(getkey(), (*sides, 4))
    true = rbf(grid, conv, origin, x)[0] @ np.asarray(h, np.float64).reshape(-1, 4) / (2 * np.pi * scale**2) ** (dx / 2)
    assert reference.relative(conv.read(grid, origin, h, x), true) < 1e-5


def test_where_there_is_no_data_density_and_values_are_zero(getkey):
    grid, conv = Grid(0.125, 8.0, 1.0, 1), SetConv()
    x, y = jnp.zeros((3, 1)), jnp.array([[1.0], [2.0], [6.0]])
    origin = grid.origin(x, jnp.ones(3, bool))
    density, values = conv.write(grid, origin, x, y, jnp.ones(3, bool))
    assert density[0] == 0 and values[0] == 0 and jnp.isfinite(values).all()
    here = int(-origin[0] / grid.spacing)
    assert np.allclose(density[here], 3) and np.allclose(values[here], 3, rtol=1e-4)


@pytest.mark.parametrize("dx", [1, 2])
def test_a_constant_grid_is_read_as_that_constant_inside(dx, getkey):
    grid, conv = Grid(0.125, 2.0, 1.0, 1), SetConv()
    x = 2 * jr.uniform(getkey(), (50, dx)) - 1
    read = conv.read(grid, grid.origin(x, jnp.ones(50, bool)), jnp.ones((*dx * (grid.side,), 1)), x)
    assert np.allclose(read, 1, atol=1e-5)


@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("spacing", [0.125, 0.1])
def test_the_grid_follows_the_context(stride, spacing, getkey):
    grid = Grid(spacing, 2.0, 0.5, stride)
    assert grid.side % stride == 0
    for place, width in itertools.product((0.0, -7.3, 101.77), (2.0, 0.4)):
        x = place + width * jr.uniform(getkey(), (30, 2))
        mask = jnp.arange(30) < 20
        origin = np.asarray(grid.origin(x.at[20:].set(1e6), mask), np.float64)
        last = origin + spacing * (grid.side - 1)
        assert np.allclose(origin / (stride * spacing), np.round(origin / (stride * spacing)), atol=1e-3)
        assert (origin <= x[:20].min(axis=0) - 0.49).all() and (last >= x[:20].max(axis=0) + 0.49).all()


@pytest.mark.parametrize(("sides", "window"), [((11,), (5,)), ((6, 9), (3, 3)), ((4, 5, 6), (3, 3, 3))])
def test_depthwise_convolution_equals_scipy(sides, window, getkey):
    h, kernel, weight, other = (normal(getkey(), (*s, 3)) for s in (sides, window, sides, sides))
    as64 = lambda a: np.asarray(a, np.float64)  # noqa: E731
    true = [scipy.signal.correlate(as64(h[..., c]), as64(kernel[..., c]), mode="same") for c in range(3)]
    assert reference.relative(depthwise(h, kernel), np.stack(true, axis=-1)) < 1e-5

    product = lambda h, kernel: jnp.sum(weight * depthwise(h, kernel))  # noqa: E731
    d_h, d_kernel = jax.grad(product, argnums=(0, 1))(h, kernel)  # of a bilinear function
    assert np.allclose(jnp.sum(d_h * other), product(other, kernel), atol=1e-4)
    assert np.allclose(jnp.sum(d_kernel * kernel[::-1]), product(h, kernel[::-1]), atol=1e-4)


def test_halving_takes_means_and_doubling_interpolates(getkey):
    h = normal(getkey(), (4, 6, 2))
    true = np.asarray(h).reshape(2, 2, 3, 2, 2).mean(axis=(1, 3))
    assert np.allclose(halve(h), true, atol=1e-6)
    plane = (2.0 * jnp.arange(8.0)[:, None] - jnp.arange(6.0))[..., None]
    assert np.allclose(double(halve(plane))[1:-1, 1:-1], plane[1:-1, 1:-1], atol=1e-5)


def test_empty_space_is_the_same_at_every_node(getkey):
    """The U-Net leaves zero deviations at zero, to the edge, whatever empty space holds; zeros around would not."""
    net = UNet(8, dx=2, blocks=(1, 1, 2), hidden=16, window=3, key=getkey())
    deviation, rest = eqx.filter_jit(net)(jnp.zeros((16, 16, 8)), jr.normal(getkey(), (8,)))
    assert np.abs(deviation).max() < 1e-5 and np.abs(rest).min() > 1e-3


@pytest.mark.parametrize("dx", [1, 2])
def test_a_larger_grid_changes_nothing(dx, getkey):
    """Where the margin is wider than what the CNN sees; at targets anywhere, beyond the smaller grid too."""
    model = tiny(dx, margin=2.5)
    data = draw_data(model, getkey(), nc=15, nt=40)
    data = data._replace(xc=jnp.clip(data.xc, -1, 1), xt=4 * data.xt)
    larger = model.covering(10.0)
    assert larger.grid.side > model.grid.side
    assert eqx.tree_equal(jax.tree.leaves(larger), jax.tree.leaves(model))
    assert close(evaluate(larger, data), evaluate(model, data))
    bare = tiny(dx, extent=2.0, margin=0.0)
    assert not close(evaluate(bare.covering(6.0), data)[0], evaluate(bare, data)[0], 1e-3)


def test_shifts_by_whole_coarse_cells_are_exact_and_others_are_not(getkey):
    model = tiny(extent=12.0)
    assert model.shift == 0.25
    data = draw_data(model, getkey())
    moments = evaluate(model, data)[0]

    def moved(by):
        return evaluate(model, data._replace(xc=data.xc + by, xt=data.xt + by))[0]

    for cells in (1, -3, 1000):
        assert close(moved(cells * model.shift), moments, 1e-5)
    assert not close(moved(0.4 * model.shift), moments, 1e-4)


def test_far_targets_get_the_prediction_of_an_empty_context(getkey):
    model = tiny(2, extent=12.0)
    data = draw_data(model, getkey(), nt=4)
    data = data._replace(xt=jnp.array([[30.0, 0.0], [-1e3, 5.0], [1e9, 1e9], [0.0, -1e18]]))
    moments, gradients = evaluate(model, data)
    empty, _ = evaluate(model, data._replace(mask=jnp.zeros(20, bool)))
    assert close(moments, empty, 1e-6) and finite(gradients)
    near = data._replace(xt=data.xc[:4])
    assert not close(evaluate(model, near)[0], empty, 1e-3)


def test_a_context_too_wide_for_the_grid_is_an_error(getkey):
    model = tiny()
    data = draw_data(model, getkey())._replace(xc=jnp.linspace(-3.0, 3.0, 20)[:, None])
    for call in (model, eqx.filter_jit(model)):
        with pytest.raises(Exception, match=r"more than 4, the extent.*covering\(extent\)"):
            jax.block_until_ready(call(data.xc, data.yc, data.xt, data.mask).mean)
    inner = jnp.abs(data.xc[:, 0]) < 2
    assert finite(evaluate(model, data._replace(mask=inner))[0])
    assert finite(evaluate(model.covering(6.0), data)[0])


def test_sizes_that_cannot_be_are_refused():
    for wrong in ({"spacing": 0.0}, {"extent": -1.0}, {"margin": -0.1}, {"window": 4}, {"blocks": ()}, {"size": 0}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}`"):
            tiny(**wrong)
    with pytest.raises(ValueError, match="`scale`"):
        SetConv(0.5)
