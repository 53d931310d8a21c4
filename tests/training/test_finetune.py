"""Fine-tuning to one data set."""

import sys

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest
from sines import Sines
from untrained import cnp

import npax
from npax.training import AbstractGaps, Finetuned, MovedGaps, finetune
from npax.training.held_out import fit_and_keep_best


class NoGaps(AbstractGaps):
    def draw(self, rng, positions, coordinates):
        return np.zeros(len(positions), bool)


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 50, (600, 2))
    return x, np.sin(x[:, 0]) + np.cos(x[:, 1]) + 0.05 * rng.normal(size=600)


@pytest.fixture(scope="module")
def fresh():
    sizes = {"blocks": 2, "size": 16, "heads": 2, "head_size": 8, "hidden": 32}
    return eqx.filter_jit(lambda key: npax.TNPKR(2, 1, locations=False, **sizes, key=key))(jr.key(0))


OPTIONS = {"size": 32, "targets": 8, "batch_size": 8, "progress": False}


def test_held_out_observations_are_none_that_are_trained_on(monkeypatch):
    given = {}

    def kept(model, tasks, held_out, objective, **options):
        given["tasks"], given["held_out"] = tasks.tasks, held_out
        return Finetuned(model, 0, [])

    monkeypatch.setattr(sys.modules[finetune.__module__], "fit_and_keep_best", kept)
    x = np.random.default_rng(0).uniform(-2, 2, (600, 2))
    y = np.arange(600.0)  # by which each observation is known
    hidden = finetune(cnp(2), x, y, steps=8, normalize=False, **OPTIONS).held_out
    asked = lambda task: np.unique(task.yt[np.asarray(task.mask_t)]).astype(int)  # noqa: E731
    scored = given["held_out"]
    assert 0 < hidden.sum() < 300 and hidden[asked(scored)].all()
    assert not hidden[asked(given["tasks"])].any()
    assert not hidden[np.asarray(scored.yc)[np.asarray(scored.mask_c)].astype(int)].any()


def test_the_best_on_held_out_gaps_is_kept_and_training_helps(waves, fresh):
    tuned = finetune(fresh, *waves, steps=40, learning_rate=3e-3, **OPTIONS)
    steps, scores = zip(*tuned.validation, strict=True)
    assert steps[0] == 0 and steps[-1] == 40
    assert tuned.steps == steps[int(np.argmin(scores))]
    assert min(scores) < scores[0] - 0.05


def test_scores_on_held_out_tasks_are_compiled_once():
    traced = []

    def objective(model, task, key=None):
        traced.append(task)
        return npax.objectives.nll(model, task)

    tasks = Sines()
    held_out = jax.vmap(tasks.sample)(jr.split(jr.key(1), 4))
    options = {"steps": 4, "every": 2, "batch_size": 2, "learning_rate": 1e-3, "seed": 0, "together": None, "chunk": 2}
    fit_and_keep_best(cnp(1), tasks, held_out, objective, **options, progress=False)
    first = len(traced)
    fit_and_keep_best(cnp(1), tasks, held_out, objective, **options, progress=False)
    assert len(traced) == first > 0


def test_a_model_that_training_spoils_comes_back_as_it_was(waves):
    fresh = cnp(2)
    tuned = finetune(fresh, *waves, steps=8, learning_rate=3.0, **OPTIONS)
    assert tuned.steps == 0 and tuned.model is fresh


def test_what_is_masked_is_missing(fresh, rng):
    model, x, y = fresh, rng.normal(size=(100, 2)), np.zeros(100)
    hidden = np.ma.array(y, mask=np.arange(100) % 7 == 0)
    with pytest.raises(ValueError, match="`y` holds NaN"):
        npax.finetune(model, x, hidden, steps=1, size=8, progress=False)
    with pytest.raises(TypeError, match="must be numbers, got dates"):
        npax.finetune(model, x, y.astype("datetime64[s]"), steps=1, size=8, progress=False)


def test_moved_gaps_on_the_sphere_and_two_columns(rng):
    x = np.stack([rng.uniform(0, 40, 400), rng.uniform(-20, 20, 400)], axis=1)
    gap = np.stack(np.meshgrid(np.arange(10.0, 18), np.arange(0.0, 6)), axis=-1).reshape(-1, 2)
    tuned = finetune(cnp(3), x, rng.normal(size=(400, 2)), steps=8, gaps=MovedGaps(gap), coords="latlon", **OPTIONS)
    assert np.isfinite([score for _, score in tuned.validation]).all()


def test_errors(waves, fresh):
    x, y = waves
    with pytest.raises(ValueError, match="at least 4 times `size` observations, 128; got 100"):
        finetune(fresh, x[:100], y[:100], **OPTIONS)
    with pytest.raises(ValueError, match="`gaps` hide none of the observations"):
        finetune(fresh, x, y, gaps=NoGaps(), **OPTIONS)
    for name in ("steps", "targets", "batch_size"):
        with pytest.raises(ValueError, match=f"`{name}` must be a whole number, at least 1; got 0"):
            finetune(fresh, x, y, **{**OPTIONS, name: 0})
    with pytest.raises(ValueError, match="`y` holds NaN or infinity in 1 of 600 rows"):
        finetune(fresh, x, np.where(np.arange(600) == 7, np.nan, y), **OPTIONS)
    with pytest.raises(ValueError, match="as many rows as each other, got 600 and 599"):
        finetune(fresh, x, y[1:], **OPTIONS)
