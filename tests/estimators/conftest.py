import jax.random as jr
import pytest

import npax
from npax.likelihoods import FunctionAndNoise


def tiny(dx):
    return npax.TNPKR(
        dx,
        1,
        bias=lambda key: npax.GeometricRBFBias(2, key=key),
        rotary=lambda key: npax.RotaryCoordinates(2, 8, dx, key=key),
        locations=False,
        likelihood=FunctionAndNoise(1),
        blocks=2,
        size=16,
        heads=2,
        head_size=8,
        hidden=32,
        key=jr.key(0),
    )


@pytest.fixture(scope="session")
def small():
    """An untrained model of the shipped model's kind."""
    return tiny(3)


@pytest.fixture(scope="session")
def wide():
    """The same for as many columns as scikit-learn's checks use."""
    return tiny(20)
