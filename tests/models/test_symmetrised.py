"""The symmetrised model against its definition."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import untrained
from laws import MODELS, close, draw_data, moments

import npax
from npax.likelihoods import marginals
from npax.models import View, turned


@pytest.mark.parametrize("name", ["tnp-d", "universal"])
def test_mirrored_tasks_get_mirrored_answers(name, getkey):
    plain = MODELS[name](jr.key(1))
    model, data = npax.Symmetrised(plain), draw_data(plain, getkey())
    for sign_x, sign_y in ((-1, 1), (1, -1), (-1, -1)):
        mirrored = data._replace(xc=sign_x * data.xc, yc=sign_y * data.yc, xt=sign_x * data.xt)
        mean, variance = moments(model, mirrored)
        assert close((sign_y * mean, variance), moments(model, data))
        assert not close(sign_y * moments(plain, mirrored)[0], moments(plain, data)[0], 1e-3)


def test_it_is_the_geometric_mean_of_the_four_densities(getkey):
    """The same at every value, but for the factor that makes it a density: at least one."""
    plain = MODELS["tnp-d"](jr.key(1))
    data, values = draw_data(plain, getkey()), np.linspace(-3, 3, 13)

    @eqx.filter_jit
    def log_densities(model, signs):
        sign_x, sign_y = signs
        d = model(sign_x * data.xc, sign_y * data.yc, sign_x * data.xt, data.mask)
        return jax.vmap(lambda value: d.log_prob(jnp.full((9, 1), sign_y * value)))(jnp.float32(values))

    images = np.float32([(1, 1), (1, -1), (-1, 1), (-1, -1)])
    four = np.stack([log_densities(plain, signs) for signs in images])
    factor = np.asarray(log_densities(npax.Symmetrised(plain), images[0])) - four.mean(axis=0)
    assert np.allclose(factor, factor[:1], atol=1e-4) and (factor > 0).all()


def test_turned_tasks_get_the_same_answers(getkey):
    """By quarter turns, which are a group; the model itself does not."""
    plain = MODELS["universal"](jr.key(1))
    quarter = np.eye(plain.dx)
    quarter[:2, :2] = [[0, 1], [-1, 0]]
    model = npax.Symmetrised(plain, [View(np.linalg.matrix_power(quarter, k)) for k in range(4)])
    data = draw_data(plain, getkey())
    turned_data = data._replace(xc=data.xc @ jnp.float32(quarter), xt=data.xt @ jnp.float32(quarter))
    assert close(moments(model, turned_data), moments(model, data))
    assert not close(moments(plain, turned_data), moments(plain, data), 1e-3)


@pytest.mark.parametrize(("dx", "used"), [(1, 1), (2, 2), (3, 3), (3, 2), (3, 1)])
def test_turned_views_are_rotations_mirrored_and_scaled(dx, used):
    first, *others = turned(dx, used)
    assert used > 1 or all(np.count_nonzero(np.array(view.turn)[0]) == 1 for view in others), "lines stay on their axis"
    assert used == 1 or any(np.count_nonzero(np.array(view.turn)[0]) == 2 for view in others)
    assert first.sign == 1 and np.array_equal(first.turn, np.eye(dx))
    assert {view.sign for view in others} == {1, -1} and len({first, *others}) == 1 + len(others)
    for view in others:  # none beyond the box that models are trained on
        scale = np.linalg.norm(view.turn, axis=0)
        assert np.allclose(scale, scale[0]) and 0.5 < scale[0] <= 1


def test_each_view_counts_as_much_as_every_other(getkey):
    """Precisions and means by hand, from what the model itself says in each view."""
    plain = MODELS["tnp-d"](jr.key(1))
    data, views = draw_data(plain, getkey()), turned(plain.dx)
    model = npax.Symmetrised(plain, views)
    each = []
    for view in views:
        turn = jnp.float32(view.turn)
        seen = data._replace(xc=data.xc @ turn, yc=view.sign * data.yc, xt=data.xt @ turn)
        mean, variance = (np.asarray(a, np.float64) for a in moments(plain, seen))
        each.append((view.sign * mean, 1 / variance))
    means, precisions = map(np.stack, zip(*each, strict=True))
    precision = precisions.mean(axis=0)
    found = moments(model, data)
    assert np.allclose(found[0], (means * precisions).mean(axis=0) / precision, atol=1e-5)
    assert np.allclose(found[1], 1 / precision, rtol=1e-4)
    assert not np.allclose(means[0], means[1], atol=1e-3), "the control"


def test_the_noise_is_the_geometric_mean_of_that_of_the_views(rng):
    plain, views = untrained.cnp(2), turned(2)
    xc, yc, xt = (jnp.float32(rng.normal(size=(7, columns))) for columns in (2, 1, 2))

    def noise(model, turn, sign):
        return np.asarray(marginals(model(xc @ turn, sign * yc, xt @ turn)).noise)

    each = np.stack([noise(plain, np.float32(view.turn), np.float32(view.sign)) for view in views])
    found = noise(npax.Symmetrised(plain, views), np.eye(2, dtype=np.float32), np.float32(1))
    assert np.allclose(found, np.exp(np.log(each).mean(axis=0)), rtol=1e-5)
    assert not np.allclose(found, each.mean(axis=0), rtol=1e-3), "the control"


@pytest.mark.parametrize(
    ("given", "message"),
    [(([[1, 0]],), "square"), (([[1, 0], [1, 1]],), "orthogonal"), (([[0]],), "orthogonal"), (([[1]], 0), "`sign`")],
)
def test_other_views_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        View(*given)


def test_no_more_coordinates_are_in_use_than_there_are():
    with pytest.raises(ValueError, match="`used` must be at most `dx`, 2; got 3"):
        turned(2, 3)


def test_views_of_other_dimensions_are_refused():
    plain = eqx.filter_eval_shape(MODELS["tnp-d"], jr.key(0))
    for views in ((), [View(np.eye(plain.dx + 1))]):
        with pytest.raises(ValueError, match="`views` must be one or more"):
            npax.Symmetrised(plain, views)


def test_other_models_are_refused():
    for name in ("np", "classes", "tnp-nd"):
        with pytest.raises(TypeError, match="`model` must be a conditional neural process with a Gaussian likelihood"):
            npax.Symmetrised(eqx.filter_eval_shape(MODELS[name], jr.key(0)))
    with pytest.raises(TypeError, match="gp-universal"):
        npax.Symmetrised("gp-universal")
