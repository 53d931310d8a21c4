"""The symmetrised model against its definition."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from laws import MODELS, close, draw_data, evaluate

import npax


@pytest.mark.parametrize("name", ["tnp-d", "universal"])
def test_mirrored_tasks_get_mirrored_answers(name, getkey):
    plain = MODELS[name](jr.key(1))
    model, data = npax.Symmetrised(plain), draw_data(plain, getkey())
    for sign_x, sign_y in ((-1, 1), (1, -1), (-1, -1)):
        mirrored = data._replace(xc=sign_x * data.xc, yc=sign_y * data.yc, xt=sign_x * data.xt)
        mean, variance = evaluate(model, mirrored)[0]
        assert close((sign_y * mean, variance), evaluate(model, data)[0])
        assert not close(sign_y * evaluate(plain, mirrored)[0][0], evaluate(plain, data)[0][0], 1e-3)


def test_it_is_the_geometric_mean_of_the_four_densities(getkey):
    """The same at every value, but for the factor that makes it a density: at least one."""
    plain = MODELS["tnp-d"](jr.key(1))
    data, values = draw_data(plain, getkey()), np.linspace(-3, 3, 13)

    @eqx.filter_jit
    def log_densities(model, sign_x, sign_y):
        d = model(sign_x * data.xc, sign_y * data.yc, sign_x * data.xt, data.mask)
        return jnp.stack([d.log_prob(jnp.full((9, 1), sign_y * value, jnp.float32)) for value in values])

    four = np.stack([log_densities(plain, sign_x, sign_y) for sign_x in (1.0, -1.0) for sign_y in (1.0, -1.0)])
    factor = np.asarray(log_densities(npax.Symmetrised(plain), 1.0, 1.0)) - four.mean(axis=0)
    assert np.allclose(factor, factor[:1], atol=1e-4) and (factor > 0).all()


def test_other_models_are_refused():
    for name in ("np", "classes", "tnp-nd"):
        with pytest.raises(TypeError, match="`model` must be a conditional neural process with a Gaussian likelihood"):
            npax.Symmetrised(MODELS[name](jr.key(0)))
