"""The symmetrised model against its definition."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from laws import MODELS, close, draw_data, moments

import npax


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


def test_other_models_are_refused():
    for name in ("np", "classes", "tnp-nd"):
        with pytest.raises(TypeError, match="`model` must be a conditional neural process with a Gaussian likelihood"):
            npax.Symmetrised(eqx.filter_eval_shape(MODELS[name], jr.key(0)))
    with pytest.raises(TypeError, match="gp-universal"):
        npax.Symmetrised("gp-universal")
