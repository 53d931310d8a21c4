"""Pictures filled in the user's units."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import untrained
from hypothesis import given, strategies as st

import npax
from npax.inference import fill
from npax.inference.fill import _windows, padded_side


@pytest.fixture(scope="module")
def model():
    return untrained.pictures()


@pytest.fixture
def picture(rng):
    y = np.cumsum(rng.standard_normal((11, 14)), axis=1)
    return np.where(rng.random(y.shape) < 0.6, y, np.nan)


def everything(prediction):
    return np.stack([prediction.mean, prediction.variance, prediction.function_variance])


def test_threads_hear_of_the_callers_settings(model, picture, monkeypatch):
    module, heard = sys.modules[fill.__module__], []
    answer = module._answer

    def recorded(*arguments):
        config = jax.config
        heard.append((config.jax_default_matmul_precision, config.jax_default_device, config.jax_enable_x64))
        return answer(*arguments)

    monkeypatch.setattr(module, "_answer", recorded)
    device = jax.devices()[0]
    with jax.default_device(device), jax.default_matmul_precision("highest"):
        fill(model, picture)
    with jax.enable_x64(), jax.numpy_dtype_promotion("standard"):
        fill(model, picture)
    assert heard == 4 * [("highest", device, False)] + 4 * [(None, None, True)]


def test_it_is_the_models_answer_to_the_standardised_picture(model, picture):
    found = fill(model, picture, mirrored=False)
    seen = np.isfinite(picture)
    centre, scale = picture[seen].mean(), picture[seen].std()
    standard = np.where(seen, (picture - centre) / scale, 0).astype(np.float32)[..., None]
    ends = [(0, padded_side(n, model.stride) - n) for n in picture.shape]
    d = jax.jit(lambda y, mask: model.on_grid(y, mask).base_dist)(np.pad(standard, [*ends, (0, 0)]), np.pad(seen, ends))
    cut = np.s_[: picture.shape[0], : picture.shape[1], 0]
    assert np.allclose(found.mean, centre + scale * np.asarray(d.loc)[cut], atol=1e-4)
    assert np.allclose(found.function_variance, (scale * np.asarray(d.scale)[cut]) ** 2, rtol=1e-3)
    noise = (scale * np.asarray(d.noise)[cut]) ** 2
    assert np.allclose(found.variance, found.function_variance + noise, rtol=1e-3)


def test_what_numpy_masks_is_a_gap(model, picture):
    """As netCDF4 hands pictures out: any number stands under the mask."""
    masked = np.ma.masked_array(np.nan_to_num(picture, nan=1e20), np.isnan(picture))
    assert np.array_equal(everything(fill(model, masked)), everything(fill(model, picture)))


@pytest.mark.parametrize("unit, origin", [(1e-9, 0.0), (3e5, 1e9)])
def test_units_come_back(model, picture, unit, origin):
    there, here = fill(model, origin + unit * picture), fill(model, picture)
    assert np.allclose((there.mean - origin) / unit, here.mean, atol=2e-3)
    assert np.allclose(there.variance / unit**2, here.variance, rtol=2e-3)


def test_a_mirrored_picture_gets_the_mirrored_answer(model, picture):
    here = everything(fill(model, picture))
    for rows, columns in ((-1, 1), (1, -1), (-1, -1)):
        there = everything(fill(model, picture[::rows, ::columns]))[:, ::rows, ::columns]
        assert np.allclose(there, here, rtol=1e-3, atol=1e-3)
    plain = everything(fill(model, picture, mirrored=False))
    turned = everything(fill(model, picture[::-1], mirrored=False))[:, ::-1]
    assert not np.allclose(plain, turned, rtol=1e-2, atol=1e-2), "this model is not symmetric by itself"


def test_columns_of_y_are_filled_by_themselves(model, picture, rng):
    other = np.where(rng.random(picture.shape) < 0.3, picture**2, np.nan)
    both = fill(model, np.stack([picture, other], axis=-1))
    assert both.mean.shape == (11, 14, 2)
    for i, one in enumerate((picture, other)):
        alone = fill(model, one)
        assert np.array_equal(both.mean[..., i], alone.mean) and np.array_equal(both.variance[..., i], alone.variance)
    joint = fill(untrained.pictures(dy=2), np.stack([picture, other], axis=-1))
    assert joint.mean.shape == (11, 14, 2) and np.isfinite(joint.variance).all()


def test_nothing_seen_is_nan_and_everything_seen_is_answered(model):
    assert np.isnan(everything(fill(model, np.full((9, 9), np.nan)))).all()
    assert np.isfinite(everything(fill(model, np.ones((9, 9))))).all()
    one = np.full((9, 9), np.nan)
    one[4, 4] = 5.0
    assert np.isfinite(everything(fill(model, one))).all()


def test_few_shapes_for_many_sizes():
    sides = [padded_side(n, 64) for n in range(1, 2000)]
    assert sorted(set(sides)) == [64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048]
    assert all(n <= side <= max(64, 2 * n) for n, side in enumerate(sides, 1))


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4, 5), (4, 4, 3)])
def test_what_is_no_picture_is_refused(model, shape):
    pictures = untrained.pictures(dy=2) if shape == (4, 4, 3) else model
    with pytest.raises(ValueError, match="`y` must have the shape"):
        fill(pictures, np.zeros(shape))


def test_infinity_is_no_gap(model):
    with pytest.raises(ValueError, match="`y` holds infinity in 2 pixels"):
        fill(model, np.array([[np.inf, 1.0], [-np.inf, np.nan]]))


def test_where_windows_differ_the_function_is_less_certain(model, monkeypatch):
    """As of a mixture of what the two say; noise is the mean of theirs."""
    answers = iter([(0.0, 1.0, 0.5), (4.0, 3.0, 1.5)])

    def one(model, standard, mask, mirrored):
        return [np.full(standard.shape, number) for number in next(answers)]

    monkeypatch.setattr(sys.modules[fill.__module__], "_fill_window", one)
    y = np.random.default_rng(0).standard_normal((80, 30))
    found = fill(model, y, mirrored=False, window=60)
    scale = y.std()
    second = (found.mean - y.mean()) / (4 * scale)  # the weight of the second window
    assert second.min() == 0 and second.max() == 1
    assert np.allclose(found.function_variance, scale**2 * (1 + 2 * second + 16 * second * (1 - second)))
    assert np.allclose(found.variance - found.function_variance, scale**2 * (0.5 + second))


def test_the_shipped_model_interpolates_a_plane_and_knows_less_in_a_larger_gap():
    rows, columns = np.mgrid[:64, :64]
    plane = 0.3 * rows - 0.2 * columns + 7.0
    gap = plane.copy()
    gap[10:14, 10:14] = gap[30:60, 30:60] = np.nan
    found = fill(npax.load("field-universal"), gap)
    assert np.abs(found.mean - plane)[10:14, 10:14].max() < 0.5 < np.nanstd(gap)
    small, large = (found.std()[at] for at in (np.s_[11:13, 11:13], np.s_[44:46, 44:46]))
    assert 2 * small.mean() < large.mean()
    assert jnp.isfinite(found.mean).all()


def test_windows_answer_as_the_whole_picture_does(model, rng):
    y = np.cumsum(rng.standard_normal((130, 50)), axis=0)
    y, done = np.where(rng.random(y.shape) < 0.6, y, np.nan), []
    whole = fill(model, y, mirrored=False)
    parts = fill(model, y, mirrored=False, window=60, advance=done.append)
    assert len(done) == 3 and np.isclose(sum(done), y.size)
    away = np.abs(parts.mean - whole.mean) / whole.std()
    assert np.median(away) < 1e-4 and np.quantile(away, 0.9) < 0.05
    assert not np.array_equal(parts.mean, whole.mean), "there were no windows"
    with pytest.raises(ValueError, match="`window` must be at least 48"):
        fill(model, y, window=47)


@given(n=st.integers(1, 500), most=st.integers(48, 300))
def test_windows_cover_every_pixel_once_and_their_ends_count_for_nothing(n, most):
    stride, overlap = 4, 24
    windows, total = _windows(n, most, overlap, stride), np.zeros(n)
    for part, weights in windows:
        assert part.start % stride == 0 and part.stop - part.start <= most and len(weights) == part.stop - part.start
        assert (weights >= 0).all() and np.abs(np.diff(weights)).max(initial=0) < 4 / overlap
        inner = slice(overlap // 4 if part.start else 0, len(weights) - overlap // 4 if part.stop < n else None)
        assert np.isclose(weights[inner].sum(), weights.sum())
        total[part] += weights
    assert np.allclose(total, 1)
    assert len(windows) == 1 or n > most // stride * stride
