"""Shift and scale of columns against NumPy's."""

import inspect

import numpy as np
import pandas as pd
import pytest

from npax.tasks import Scaling


def test_means_and_deviations_of_what_is_finite_and_the_way_back(rng):
    x, y = rng.standard_normal((50, 2)) * [3.0, 1e-6] + [1e5, 2.0], rng.standard_normal((50, 1))
    holes = np.where(rng.random(y.shape) < 0.3, np.nan, y)
    scaling = Scaling.of(x, holes)
    assert np.allclose(scaling.x(x).mean(axis=0), 0, atol=1e-6) and np.allclose(scaling.x(x).std(axis=0), 1)
    assert np.allclose((scaling.y_mean, scaling.y_std), (np.nanmean(holes, axis=0), np.nanstd(holes, axis=0)))
    assert np.allclose(scaling.undo(scaling.y(y)), y)
    assert Scaling.of(np.full((4, 1), 7.0), np.ones((4, 1))).x_std == (1.0,)


def test_what_is_masked_is_left_out_and_dates_are_refused(rng):
    x, y = rng.normal(size=(50, 1)), rng.normal(size=(50, 1))
    hidden = np.ma.array(np.where(np.arange(50)[:, None] % 7 == 0, -9999.0, y), mask=np.arange(50)[:, None] % 7 == 0)
    assert Scaling.of(x, hidden) == Scaling.of(x, hidden.filled(np.nan)) != Scaling.of(x, hidden.data)
    dates = pd.DataFrame({"time": pd.date_range("2020", periods=50)})
    for given in (dates, dates.to_numpy()):
        with pytest.raises(TypeError, match="must be numbers, got dates"):
            inspect.unwrap(Scaling.of.__func__)(Scaling, given, y)


def test_a_column_without_a_number_is_refused():
    holes = np.column_stack([np.arange(4.0), [np.nan, np.inf, np.nan, -np.inf]])
    with pytest.raises(ValueError, match="Column 1 of `x` holds no finite number"):
        Scaling.of(holes, np.ones((4, 1)))


def test_of_a_grid_its_axes_will_do(rng):
    rows, columns, y = rng.normal(size=7), 5 + rng.normal(size=4), rng.normal(size=(7, 4))
    x = np.stack([a.ravel() for a in np.meshgrid(rows, columns, indexing="ij")], axis=1)
    whole, of_axes = Scaling.of(x, y.reshape(-1, 1)), Scaling.of_columns([rows, columns], [y.ravel()])
    for name in ("x_mean", "x_std", "y_mean", "y_std"):
        assert np.allclose(getattr(whole, name), getattr(of_axes, name))
