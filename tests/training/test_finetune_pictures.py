"""Fine-tuning of a model of pictures."""

import dataclasses
import inspect
import sys
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import untrained

import npax
from npax.objectives import hidden_pixels_nll, picture_nll
from npax.tasks import FieldPrior, HiddenPixels
from npax.training import Finetuned, finetune_pictures


@pytest.fixture(scope="module")
def waves():
    rows, columns = np.mgrid[:32, :40]
    y = 5 + np.sin(rows / 2) * np.cos(columns / 3)
    y[8:14, 10:18] = y[20:30, 30:34] = np.nan
    return y


def test_the_best_on_held_out_gaps_is_kept_and_training_helps(waves):
    tuned = finetune_pictures(untrained.pictures(), waves, steps=40, batch_size=2, learning_rate=1e-2, progress=False)
    steps, scores = zip(*tuned.validation, strict=True)
    assert steps == (0, 10, 20, 30, 40)
    assert tuned.steps == steps[int(np.argmin(scores))]
    assert min(scores) < scores[0] - 0.2


def test_held_out_pixels_are_never_seen_in_training(waves, monkeypatch):
    module = sys.modules[finetune_pictures.__module__]
    kept = {}

    def record(model, tasks, *more, **options):
        kept["seen"] = np.asarray(tasks.seen)[0]
        return Finetuned(model, 0, [])

    squares = module._squares

    def recorded(rng, side, y, mask, wanted):
        kept["wanted"] = wanted[0]
        return squares(rng, side, y, mask, wanted)

    monkeypatch.setattr(module, "fit_and_keep_best", record)
    monkeypatch.setattr(module, "_squares", recorded)
    finetune_pictures(untrained.pictures(), waves, steps=1, progress=False)
    assert kept["wanted"].any() and not (kept["wanted"] & kept["seen"]).any()
    assert ((kept["wanted"] | kept["seen"]) == np.isfinite(waves)).all()


@pytest.mark.parametrize("column", range(0, 64, 12))
def test_one_small_gap_is_moved_until_it_hides_something(column):
    held_out = sys.modules[finetune_pictures.__module__]._held_out
    mask = np.ones((64, 64), bool)
    mask[:4, column : column + 4] = False
    for seed in range(20):
        wanted = held_out(np.random.default_rng(seed), mask)
        assert 0 < wanted.sum() <= 16 and not (wanted & ~mask).any()


def test_objectives_count_what_is_asked_for():
    model = untrained.pictures()
    picture = jax.jit(FieldPrior(16).sample)(jr.key(3))
    d = jax.jit(lambda y, mask: model.on_grid(y, mask).base_dist)(picture.y, picture.mask)
    loc, scale, noise = (np.asarray(a, np.float64)[..., 0] for a in (d.loc, d.scale, d.noise))
    both, square = np.sqrt(scale**2 + noise**2), lambda a: np.square(np.asarray(a, np.float64))

    def normal(x, std):
        return 0.5 * square((x - loc) / std) + np.log(std) + 0.5 * np.log(2 * np.pi)

    of_function = normal(np.asarray(picture.function)[..., 0], scale)
    of_observation = normal(np.asarray(picture.function)[..., 0], both) + 0.5 * square(picture.noise) / both**2
    weight = np.where(picture.mask, 0.02, 1.0)
    true = np.sum(weight * (of_function + of_observation) / 2) / weight.sum()
    assert np.isclose(jax.jit(picture_nll)(model, picture), true, rtol=1e-4)
    whole = dataclasses.replace(picture, mask=jnp.ones_like(picture.mask))
    assert jax.jit(partial(picture_nll, seen=0.0))(model, whole) == 0

    wanted = ~np.asarray(picture.mask) & (np.arange(16) < 8)
    y = np.where(wanted[..., None] | picture.mask[..., None], picture.y, np.nan)
    hidden = HiddenPixels(jnp.asarray(y), picture.mask, jnp.asarray(wanted))
    true = normal(np.asarray(picture.y)[..., 0], both)[wanted].mean()
    assert np.isclose(jax.jit(hidden_pixels_nll)(model, hidden), true, rtol=1e-4)
    with pytest.raises(TypeError, match="FunctionAndNoise"):
        picture_nll(npax.GridConvCNP(2, 1, spacing=1.0, sizes=(8, 8), blocks=(1, 1), key=jr.key(0)), picture)


def test_a_name_is_no_model(waves):
    with pytest.raises(TypeError, match="`GridConvCNP`; got str"):
        inspect.unwrap(finetune_pictures)("field-universal", waves)


@pytest.mark.parametrize(
    "y, match",
    [
        (np.ones((20, 20)), "100%"),
        (np.full((20, 20), np.nan), "0%"),
        (np.ones((3, 20)), "at least 16 x 16"),
        (np.ones(20), "at least 16 x 16"),
    ],
)
def test_clear_errors(y, match):
    with pytest.raises(ValueError, match=match):
        finetune_pictures(untrained.pictures(), y)
