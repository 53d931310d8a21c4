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
from laws import close, draw_data, evaluate, finite, moments, normal

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
def test_set_convolutions_equal_sums_in_numpy(dx, getkey, rng):
    grid, conv = Grid(0.3, 1.2, 0.3, 2), SetConv(0.8)
    x, y, mask = rng.random((12, dx), np.float32), normal(getkey(), (12, 2)), np.arange(12) < 9
    x[5] = x[4]  # a duplicate

    @eqx.filter_jit
    def written(conv, x, y, mask):
        origin = grid.origin(x, mask)
        return origin, conv.write(grid, origin, x, y, mask)

    origin, (density, values) = written(conv, x, y, mask)
    weights, scale = rbf(grid, conv, origin, x[:9])
    rho = weights.sum(axis=0)
    sides = dx * (grid.side,)
    assert reference.relative(density, rho.reshape(*sides, 1)) < 1e-5
    true = weights.T @ np.asarray(y[:9], np.float64) / (rho + 1e-4)[:, None]
    assert reference.relative(values, true.reshape(*sides, 2)) < 1e-4

    h = normal(getkey(), (*sides, 4))
    true = rbf(grid, conv, origin, x)[0] @ np.asarray(h, np.float64).reshape(-1, 4) / (2 * np.pi * scale**2) ** (dx / 2)
    assert reference.relative(eqx.filter_jit(conv.read)(grid, origin, h, x), true) < 1e-5


def test_where_there_is_no_data_density_and_values_are_zero():
    grid, conv = Grid(0.125, 8.0, 1.0, 1), SetConv()

    @jax.jit
    def written(x, y, mask):
        origin = grid.origin(x, mask)
        return origin, *conv.write(grid, origin, x, y, mask)

    x, y = np.zeros((3, 1), np.float32), np.float32([[1], [2], [6]])
    origin, density, values = map(np.asarray, written(x, y, np.ones(3, bool)))
    assert density[0] == 0 and values[0] == 0 and np.isfinite(values).all()
    here = int(-origin[0] / grid.spacing)
    assert np.allclose(density[here], 3) and np.allclose(values[here], 3, rtol=1e-4)


@pytest.mark.parametrize("dx", [1, 2])
def test_a_constant_grid_is_read_as_that_constant_inside(dx, rng):
    grid, conv = Grid(0.125, 2.0, 1.0, 1), SetConv()

    @jax.jit
    def read(x):
        return conv.read(grid, grid.origin(x, jnp.ones(50, bool)), jnp.ones((*dx * (grid.side,), 1)), x)

    assert np.allclose(read(rng.uniform(-1, 1, (50, dx)).astype(np.float32)), 1, atol=1e-5)


@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("spacing", [0.125, 0.1])
def test_the_grid_follows_the_context(stride, spacing, rng):
    grid, mask = Grid(spacing, 2.0, 0.5, stride), np.arange(30) < 20
    origin_of = jax.jit(grid.origin)
    assert grid.side % stride == 0
    for place, width in itertools.product((0.0, -7.3, 101.77), (2.0, 0.4)):
        x = (place + width * rng.random((30, 2))).astype(np.float32)
        x[20:] = 1e6
        origin = np.asarray(origin_of(x, mask), np.float64)
        last = origin + spacing * (grid.side - 1)
        assert np.allclose(origin / (stride * spacing), np.round(origin / (stride * spacing)), atol=1e-3)
        assert (origin <= x[:20].min(axis=0) - 0.49).all() and (last >= x[:20].max(axis=0) + 0.49).all()


@pytest.mark.parametrize(
    ("sides", "window"), [((11,), (5,)), ((6, 9), (3, 3)), ((70, 130), (3, 5)), ((4, 5, 6), (3, 3, 3))]
)
def test_depthwise_convolution_equals_scipy(sides, window, getkey):
    h, kernel, weight, other = (normal(getkey(), (*s, 3)) for s in (sides, window, sides, sides))
    as64 = lambda a: np.asarray(a, np.float64)  # noqa: E731
    true = [scipy.signal.correlate(as64(h[..., c]), as64(kernel[..., c]), mode="same") for c in range(3)]
    convolved = jax.jit(depthwise)
    assert reference.relative(convolved(h, kernel), np.stack(true, axis=-1)) < 1e-5

    weight, other, reverse = as64(weight), as64(other), np.asarray(kernel)[::-1]
    product = jax.jit(jax.grad(lambda h, kernel: jnp.sum(jnp.float32(weight) * depthwise(h, kernel)), argnums=(0, 1)))
    d_h, d_kernel = map(as64, product(h, kernel))  # of a bilinear function
    assert np.allclose(np.sum(d_h * other), np.sum(weight * convolved(other, kernel)), atol=1e-4)
    assert np.allclose(np.sum(d_kernel * reverse), np.sum(weight * convolved(h, reverse)), atol=1e-4)


def test_sums_over_many_nodes_are_exact_in_bfloat16():
    h = (1 + jr.normal(jr.key(0), (128, 128, 2))).astype(jnp.bfloat16)
    gradient = jax.jit(jax.grad(lambda kernel, h: jnp.sum(depthwise(h, kernel).astype(jnp.float32))))
    low, high = (gradient(jnp.zeros((3, 3, 2), dtype), h.astype(dtype)) for dtype in (jnp.bfloat16, jnp.float32))
    assert low.dtype == jnp.bfloat16 and reference.relative(low.astype(jnp.float32), high) < 2**-7


@pytest.mark.parametrize("side", [(0, 4), (4, 0)])
def test_a_grid_of_no_nodes_has_no_gradient(side):
    h, kernel = jnp.zeros((*side, 2)), jnp.ones((3, 3, 2))
    gradients = jax.grad(lambda h, kernel: jnp.sum(depthwise(h, kernel)), argnums=(0, 1))(h, kernel)
    assert [a.shape for a in gradients] == [h.shape, kernel.shape] and not np.any(gradients[1])


def test_halving_takes_means_and_doubling_interpolates(getkey):
    h = normal(getkey(), (4, 6, 2))
    true = np.asarray(h).reshape(2, 2, 3, 2, 2).mean(axis=(1, 3))
    assert np.allclose(jax.jit(halve)(h), true, atol=1e-6)
    plane = np.float32(2.0 * np.arange(8)[:, None] - np.arange(6))[..., None]
    smooth = np.asarray(jax.jit(lambda plane: double(halve(plane)))(plane))
    assert np.allclose(smooth[1:-1, 1:-1], plane[1:-1, 1:-1], atol=1e-5)


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
    data = data._replace(xc=np.clip(data.xc, -1, 1), xt=4 * data.xt)
    larger = model.covering(10.0)
    assert larger.grid.side > model.grid.side
    assert eqx.tree_equal(*(jax.tree.map(np.asarray, jax.tree.leaves(m)) for m in (larger, model)))
    assert close(evaluate(larger, data), evaluate(model, data))
    bare = tiny(dx, extent=2.0, margin=0.0)
    assert not close(moments(bare.covering(6.0), data), moments(bare, data), 1e-3)


def test_shifts_by_whole_coarse_cells_are_exact_and_others_are_not(getkey):
    model = tiny(extent=12.0)
    assert model.shift == 0.25
    data = draw_data(model, getkey())
    here = moments(model, data)

    def moved(by):
        return moments(model, data._replace(xc=data.xc + by, xt=data.xt + by))

    for cells in (1, -3, 1000):
        assert close(moved(cells * model.shift), here, 1e-5)
    assert not close(moved(0.4 * model.shift), here, 1e-4)


def test_far_targets_get_the_prediction_of_an_empty_context(getkey):
    model = tiny(2, extent=12.0)
    data = draw_data(model, getkey(), nt=4)
    data = data._replace(xt=jnp.array([[30.0, 0.0], [-1e3, 5.0], [1e9, 1e9], [0.0, -1e18]]))
    far, gradients = evaluate(model, data)
    empty, _ = evaluate(model, data._replace(mask=jnp.zeros(20, bool)))
    assert close(far, empty, 1e-6) and finite(gradients)
    near = data._replace(xt=data.xc[:4])
    assert not close(evaluate(model, near)[0], empty, 1e-3)


def test_a_context_too_wide_for_the_grid_is_an_error(getkey):
    model = tiny()
    data = draw_data(model, getkey())._replace(xc=jnp.linspace(-3.0, 3.0, 20)[:, None])
    for call in (model, eqx.filter_jit(model)):
        with pytest.raises(Exception, match=r"more than 4, the extent.*covering\(extent\)"):
            jax.block_until_ready(call(data.xc, data.yc, data.xt, data.mask).mean)
    inner = np.abs(np.asarray(data.xc)[:, 0]) < 2
    assert finite(moments(model, data._replace(mask=inner)))
    assert finite(moments(model.covering(6.0), data))


def test_sizes_that_cannot_be_are_refused():
    for wrong in ({"spacing": 0.0}, {"extent": -1.0}, {"margin": -0.1}, {"window": 4}, {"blocks": ()}, {"size": 0}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}`"):
            tiny(**wrong)
    with pytest.raises(ValueError, match="`scale`"):
        SetConv(0.5)
