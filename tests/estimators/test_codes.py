"""Numbers that stand for what is missing, such as -999, are told."""

import warnings

import numpy as np
import pandas as pd
import pytest
import untrained
from hypothesis import given, settings, strategies as st

import npax
from npax.estimators.missing import warn_of_codes

MODEL = untrained.cnp(3, 1)


def told(values):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_codes({"`y`": np.asarray(values, float)})
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    "code", [-99, -999, -999.9, np.float32(-99.99), 9999, -32768, 32767, 1e20, -1e30, 9.96921e36, np.float32(1e36)]
)
def test_codes_far_from_all_else_are_told(code, rng):
    values = np.r_[rng.normal(size=20), [code] * 3]
    (message,) = told(values)
    assert f"`y` holds {code:.7g}, 3 of 23 values" in message and "make it NaN" in message
    assert len(told([5.0, 5.0, code])) == 1


@pytest.mark.parametrize("code", [-9, -99, -999, -9.99])
def test_codes_may_be_the_only_negative_values(code, rng):
    """Of what is positive and skewed they are not far from the rest."""
    values = np.exp(7 + rng.normal(size=40))
    (message,) = told(np.r_[values, code])
    assert f"`y` holds {code:.7g}, 1 of 41 values, and no other is negative" in message
    assert not told(np.r_[values, code, -1e-3]) and not told(np.r_[values, -code])
    lattice = npax.NeuralProcessRegressor(MODEL).fit([[-9.0], [0.0], [9.0], [18.0]], [1.0, 2.0, 4.0, 3.0])
    assert lattice.X_.min() == -9  # a place may be the only one


@pytest.mark.parametrize(
    "values",
    [
        [980, 999, 1020],
        [998, 999],
        [-999],
        [],
        [1, 2, 1000],
        [9.9, 0.99],
        [1e-9, 1e19],
        [1e21, 5e21, 3e23, 7.3e25],
        [-1.5e308, 1.5e308],
    ],
)
def test_what_may_be_a_value_is_not(values):
    assert not told(values)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), max_size=30), st.integers(0, 2**31 - 1))
def test_values_drawn_at_random_hardly_ever_are(values, seed):
    """Those that hypothesis knows to be awkward may be codes."""
    noise = np.random.default_rng(seed).uniform(1e-3, 1e-2, len(values))
    assert not told(np.asarray(values) * (1 + noise))


def test_estimators_tell_of_values_and_places(rng):
    X, y = pd.DataFrame({"x": rng.uniform(size=20), "depth": rng.uniform(size=20)}), rng.normal(size=(20, 2))
    reg = npax.NeuralProcessRegressor(MODEL)
    with pytest.warns(UserWarning, match="Column 1 of `y` holds -999, 2 of 20 values"):
        reg.fit(X, np.where(np.arange(40).reshape(20, 2) // 2 < 2, np.array([0.5, -999.0]), y))
    with pytest.warns(UserWarning, match="Column 'depth' of `X` holds 9999, 1 of"):
        reg.fit(X.replace({"depth": {X.depth[3]: 9999.0}}), y[:, 0])
    reg.fit(X, y[:, 0])
    with pytest.warns(UserWarning, match="`y` holds -9999, 1 of 21 values"):
        reg.update(X.head(1), [-9999.0])
    counts = npax.CountRegressor(regressor=npax.NeuralProcessRegressor(untrained.hearing(2)))
    with pytest.warns(UserWarning, match="Column 0 of `X` holds -99, 1 of"):
        counts.fit(np.r_[rng.uniform(size=(8, 2)), [[-99, 0.0]]], rng.poisson(3, 9))
