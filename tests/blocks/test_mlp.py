import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from laws import normal

from npax.blocks import MLP, LayerNorm, Linear, ReLU, spread_over_locations, standardise


@pytest.mark.parametrize("dx", [1, 2])
def test_outputs_bend_all_over_the_range_of_the_coordinates(dx, getkey):
    plain = Linear(dx + 3, 2000, key=getkey())
    spread = spread_over_locations(plain, slice(0, dx), slope=4.0, key=getkey())
    weight, before = np.asarray(spread.weight, np.float64), np.asarray(plain.weight)
    assert (weight[dx:] == before[dx:]).all()
    w = weight[:dx]
    assert np.abs(w).max() <= 4 / np.sqrt(dx) and np.abs(w).std() > 1 / np.sqrt(dx)
    if dx == 1:
        zeros = -np.asarray(spread.bias) / w[0]
        assert np.abs(zeros).max() <= 2.001
        assert np.abs(np.histogram(zeros, 4, (-2, 2))[0] / 500 - 1).max() < 0.2


def test_a_network_on_locations_tells_near_ones_apart_from_the_start(getkey):
    key = getkey()
    x = np.linspace(-2, 2, 41, dtype=np.float32)[:, None]

    def curvature(**options):
        return np.abs(np.diff(eqx.filter_jit(MLP([1, 64, 8], key=key, **options))(x), n=2, axis=0)).mean()

    assert curvature(locations=slice(0, 1)) > 5 * curvature()


def test_a_norm_inside_the_map_behind_it():
    """Values and gradients are those of the norm and the map, one after the other; inputs beyond the norm's pass."""
    keys = jr.split(jr.key(5), 5)
    norm = eqx.tree_at(lambda n: (n.scale, n.shift), LayerNorm(3), tuple(normal(k, (3,)) for k in keys[:2]))
    x, rest = normal(keys[2], (7, 3)), normal(keys[3], (7, 2))

    def apart(parts):
        norm, mlp = parts
        return jnp.sum(jnp.sin(mlp(jnp.concatenate([norm(x), rest], axis=-1))))

    def inside(parts):
        norm, mlp = parts
        return jnp.sum(jnp.sin(mlp.behind(norm)(jnp.concatenate([standardise(x), rest], axis=-1))))

    parts = norm, MLP([5, 4, 2], key=keys[4])
    apart, inside = (eqx.filter_jit(eqx.filter_value_and_grad(f)) for f in (apart, inside))
    true = apart(parts)
    for a, b in zip(*map(jax.tree.leaves, (true, inside(parts))), strict=True):
        assert np.allclose(a, b, atol=1e-5)
    assert not np.allclose(true[0], inside((LayerNorm(3), parts[1]))[0], atol=1e-3)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_parts_lie_side_by_side_and_one_row_belongs_to_all(n, getkey):
    mlp = MLP([6, 4, 2], key=getkey())
    own, shared, also = normal(getkey(), (n, 3)), normal(getkey(), (1, 2)), normal(getkey(), (n, 1))
    whole = jnp.concatenate([own, jnp.repeat(shared, n, axis=0), also], axis=1)
    assert np.allclose(mlp(own, shared, also), mlp(whole), atol=1e-5)
    assert n == 0 or not np.allclose(mlp(also, shared, own), mlp(whole), atol=1e-2)


@pytest.mark.parametrize("biases", [(True, True), (True, False), (False, True), (False, False)])
def test_two_maps_as_one(biases, getkey):
    first, last = (Linear(*size, use_bias=b, key=getkey()) for size, b in zip([(3, 4), (4, 2)], biases, strict=True))
    first, last = (
        eqx.tree_at(lambda m: m.bias, m, normal(getkey(), m.bias.shape)) if m.bias is not None else m
        for m in (first, last)
    )
    x = normal(getkey(), (5, 3))
    assert np.allclose(first.then(last)(x), last(first(x)), atol=1e-5)
    mlp = MLP([3, 5, 4], key=getkey())
    assert np.allclose(mlp.then(last)(x), last(mlp(x)), atol=1e-5)


@pytest.mark.parametrize("activated", [False, True])
def test_deep_networks_with_relu_hand_their_input_on(activated, getkey):
    """The second moment behind each layer is that before it; with weights of PyTorch's size a sixth of it."""
    mlp = MLP([256] * 6 + [2], activation=ReLU(), activated=activated, key=getkey())
    x = normal(getkey(), (500, 256))
    x = jax.nn.relu(x) * 2**0.5 if activated else x
    moments = [float(jnp.mean(jnp.square(x)))]
    for layer in mlp.layers[:-1]:
        x = jax.nn.relu(layer(x))
        moments.append(float(jnp.mean(jnp.square(x))))
    expected = 1.0 if activated else 1 / 6
    assert moments[0] == pytest.approx(1, rel=0.05) and moments[1] == pytest.approx(expected, rel=0.2)
    np.testing.assert_allclose(np.divide(moments[2:], moments[1]), 1, atol=0.3)
    assert np.abs(mlp.layers[-1].weight).max() <= 1 / 16


def test_relu_is_that_of_jax_and_lets_nan_through():
    x = jnp.asarray([-2.0, -0.0, 0.0, 3.0, np.inf, np.nan])
    assert np.array_equal(ReLU()(x), jax.nn.relu(x), equal_nan=True)
    gradient = jax.vmap(jax.grad(ReLU()))(x[:4])
    assert np.array_equal(gradient, jax.vmap(jax.grad(jax.nn.relu))(x[:4]))
