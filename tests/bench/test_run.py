"""Rows: trained once, resumed where they were stopped, scored beside the references."""

import dataclasses
import importlib
import shutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untrained import cnp

import npax
from npax.bench import Run, Table, model_presets, prepare, read, report, rows, run, tables
from npax.bench.curve import Curve
from npax.bench.tables import kolmogorov, shift
from npax.files import held
from npax.likelihoods import Categorical
from npax.tasks import AbstractTasks, ContextAmongTargets, SIRTask
from npax.training.checkpoint import write_checkpoint

STEPS, TASKS = 8, 6
OPTIONS = {"steps": STEPS, "progress": False}
module = importlib.import_module("npax.bench.run")


def lines(results, name, **options):
    return read(results / f"{Run(name, **options).name}.jsonl")


class Broken(AbstractTasks):
    """Tasks of which a share has no targets, and no kernels."""

    tasks: AbstractTasks
    share: float = eqx.field(static=True)

    def sample(self, key):
        task = self.tasks.sample(key)
        return eqx.tree_at(lambda t: t.mask_t, task, task.mask_t & (jax.random.uniform(key) >= self.share))


@pytest.fixture(scope="module")
def references(table, tmp_path_factory):
    """The folder of the references' results, which take the longest."""
    return prepare(table, TASKS, tmp_path_factory.mktemp("references"), log=lambda _: None).results


@pytest.fixture
def benchmark(table, references, tmp_path, rows):
    shutil.copytree(references, tmp_path / "results")
    return prepare(table, TASKS, tmp_path / "results", log=lambda _: None)


def test_rows_are_the_presets_of_all_sizes():
    names = model_presets()
    assert "tnp_d" in names and "gp_universal" not in names and "RCNP" not in names
    assert all(name in vars(npax.models.presets) and not name.startswith("_") for name in names)


def test_others_stand_in_for_tasks_without_targets(table, tmp_path, rows):
    def broken(share):
        tasks = Broken(table.tasks, share)
        return dataclasses.replace(table, tasks=tasks, evaluations={"small": tasks})

    told = []
    found = prepare(broken(0.5), 12, tmp_path, log=told.append)
    batch, whole = found.batches["small"], prepare(table, 12, tmp_path / "whole").batches["small"]
    assert "of 12 evaluation tasks have no target" in told[0]
    assert batch.mask_t.shape[0] == 12 and np.asarray(batch.mask_t).any(axis=1).all()
    same = (np.asarray(batch.xt)[:, None] == np.asarray(whole.xt)[None]).all(axis=(2, 3)).any(axis=1)
    assert 0 < same.sum() < 12  # the sound ones stay
    (result,) = run(found, "thin", folder=tmp_path / "runs", **OPTIONS)
    assert result.tasks == 12 and "thin" in report(tmp_path)
    with pytest.raises(ValueError, match="None of the 12 evaluation tasks has a target"):
        prepare(broken(1.0), 12, tmp_path, log=told.append)


def test_a_row_is_trained_scored_and_written(benchmark, tmp_path):
    (result,) = run(benchmark, "thin", folder=tmp_path / "runs", **OPTIONS)
    (floor,), nll = lines(tmp_path / "results", "small", model="bayes_floor", tasks=TASKS)
    (oracle,), _ = lines(tmp_path / "results", "small", model="oracle", tasks=TASKS)
    assert floor.gap == 0 and np.array_equal(nll["small"][0], benchmark.floor["small"])
    assert abs(oracle.gap - (oracle.nll - floor.nll)) < 1e-5
    assert (result.model, result.steps, result.seed, result.tasks, result.batch) == ("thin", STEPS, 0, TASKS, 4)
    assert abs(result.gap - (result.nll - floor.nll)) < 1e-5
    assert result.rmse > 0 and result.mae > 0 and result.crps > 0 and 0 <= result.coverage <= 1
    assert result.seconds > 0 and result.skipped == 0
    assert [step for step, _ in result.curve] == list(range(1, STEPS + 1))
    assert result.curve[-1][1] == pytest.approx(result.nll, abs=1e-6)  # fewer tasks than the curve would take
    assert result.parameters == npax.serialise.count_parameters(model_presets()["thin"](1, 1, key=jax.random.key(0)))
    stored, nll = lines(tmp_path / "results", "small", model="thin", tasks=TASKS, steps=STEPS)
    assert stored == [result] and nll["small"].shape == (1, TASKS)
    assert nll["small"].mean() == pytest.approx(result.nll, abs=1e-6)


def test_a_model_of_ones_own_is_a_row_as_npaxs_are(benchmark, tmp_path, rows):
    """As the preset of the same making."""
    own = run(benchmark, "mine", preset=rows.thin, folder=tmp_path / "runs", **OPTIONS)
    (npaxs,) = run(benchmark, "thin", folder=tmp_path / "runs", **OPTIONS)
    assert own[0].model == "mine" and own[0].nll == pytest.approx(npaxs.nll, abs=1e-6)
    with pytest.raises(ValueError, match=r"`model` must be one of the rows of A small table, thin, .*; got 'theirs'"):
        run(benchmark, "theirs", folder=tmp_path / "runs", **OPTIONS)
    with pytest.raises(ValueError, match="`model` must be a name of its own beside a `preset`; 'thin' is npax's"):
        run(benchmark, "thin", preset=rows.thin, folder=tmp_path / "runs", **OPTIONS)


def test_what_is_finished_is_not_run_again(benchmark, table, tmp_path, monkeypatch):
    first = run(benchmark, "thin", folder=tmp_path / "runs", **OPTIONS)

    def never(*_, **__):
        raise AssertionError("run again")

    for name in ("fit", "score_floor", "score_oracle"):
        monkeypatch.setattr(module, name, never)
    again = prepare(table, TASKS, tmp_path / "results", log=never)
    assert run(again, "thin", folder=tmp_path / "runs", **OPTIONS) == first
    with pytest.raises(AssertionError, match="run again"):
        run(again, "wide", folder=tmp_path / "runs", **OPTIONS)


def test_a_stopped_row_goes_on_and_ends_the_same(benchmark, tmp_path, monkeypatch):
    whole = run(benchmark, "thin", folder=tmp_path / "whole", **OPTIONS)
    (tmp_path / "results" / f"{Run('small', 'thin', TASKS, STEPS).name}.jsonl").unlink()
    add, calls = Curve.add, []

    def stop(curve, model):
        add(curve, model)
        calls.append(curve.step)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Curve, "add", stop)
    with pytest.raises(KeyboardInterrupt):
        run(benchmark, "thin", folder=tmp_path / "stopped", **OPTIONS)
    resumed = run(benchmark, "thin", folder=tmp_path / "stopped", **OPTIONS)
    assert calls == list(range(1, STEPS + 1)) or calls == [1, 2, 3, *range(3, STEPS + 1)]
    assert resumed[0].nll == whole[0].nll and resumed[0].curve == whole[0].curve
    assert next(iter((tmp_path / "stopped").iterdir())).name == f"small.thin.{STEPS}-steps.1-seeds"


def test_every_seed_has_a_line_of_each_task(shifts, tmp_path, rows):
    benchmark = prepare(shifts, TASKS, tmp_path / "results", log=lambda _: None)
    assert np.allclose(benchmark.floor["shift-0"], benchmark.floor["shift-1"], atol=1e-3)
    found = run(benchmark, "thin", seeds=2, folder=tmp_path / "runs", **OPTIONS)
    assert [(r.task, r.seed) for r in found] == [(f"shift-{s}", seed) for s in (0, 1) for seed in (0, 1)]
    assert found[0].nll != found[1].nll and found[0].nll != found[2].nll
    assert found[0].curve[-1][1] == pytest.approx(found[0].nll, abs=1e-6)
    assert found[1].curve[-1][1] == pytest.approx(found[1].nll, abs=1e-6)
    stored, nll = lines(tmp_path / "results", "shift", model="thin", tasks=TASKS, steps=STEPS, seeds=2)
    assert stored == found and nll["shift-1"].shape == (2, TASKS)


@pytest.mark.parametrize(
    "table",
    [
        *map(npax.bench.gp1d, ("rbf", "matern32", "periodic")),
        npax.bench.gp2d(),
        npax.bench.shift(),
        npax.bench.bimodal(),
        npax.bench.anp(),
    ],
    ids=lambda table: table.name,
)
def test_tables_give_tasks_that_models_of_their_dimension_take(table):
    for tasks in (table.tasks, *table.evaluations.values()):
        task = jax.eval_shape(tasks.sample, jax.random.key(0))
        assert task.xc.shape[-1] == table.dx and task.yc.shape[-1] == 1


@pytest.fixture
def lattice():
    """A small epidemic, scored where it is trained and on a lattice of twice the side."""
    small, large = (SIRTask(ContextAmongTargets(n, 4), side=n, steps=6) for n in (8, 16))
    classes = Categorical(3)
    return Table(
        "sir-16", "An epidemic", small, {"sir-8": small, "sir-16": large}, batch_size=4, dx=2, dy=3,
        likelihood=classes, without=("wide",), trained="sir-8",
    )  # fmt: skip


def test_a_table_without_a_floor_has_no_gap(lattice, tmp_path, rows):
    benchmark = prepare(lattice, TASKS, tmp_path / "results", log=lambda _: None)
    assert benchmark.floor == {} and not list((tmp_path / "results").glob("*"))
    found = run(benchmark, "thin", folder=tmp_path / "runs", **OPTIONS)
    assert [r.task for r in found] == ["sir-8", "sir-16"] and all(r.gap is r.gap_error is None for r in found)
    assert lines(tmp_path / "results", "sir-16", model="thin", tasks=TASKS, steps=STEPS)[0] == found
    assert next(iter((tmp_path / "runs").iterdir())).name == f"sir-8.thin.{STEPS}-steps.1-seeds"
    text = report(tmp_path / "results")
    assert "| thin |" in text and "gap" not in text.split("##")[-1].split("published")[0]
    with pytest.raises(ValueError, match="`wide` cannot be a row of An epidemic"):
        run(benchmark, "wide", folder=tmp_path / "runs", **OPTIONS)
    assert npax.bench.rows(lattice) == ["thin", "broken"]


def test_tables_of_images_and_of_epidemics_give_tasks_that_their_models_take(monkeypatch):
    for name, shape in (("mnist", (28, 28, 1)), ("celeba32", (32, 32, 3)), ("cifar10", (32, 32, 3))):
        images = npax.data.Images(*(np.zeros((2, *shape), np.uint8) for _ in range(2)))
        monkeypatch.setattr(npax.data, name, lambda path, images=images: images)
    image_tables = [getattr(npax.bench, name)() for name in ("mnist", "celeba", "cifar10", "tmnist", "tcifar10")]
    for table in (*image_tables, npax.bench.sir(), npax.bench.sir(256)):
        assert table.likelihood.dy == table.dy and set(table.without) < set(model_presets()) and table.batch_size == 16
        for tasks in (table.tasks, *table.evaluations.values()):
            task = jax.eval_shape(tasks.sample, jax.random.key(0))
            assert task.xc.shape[-1] == table.dx and task.yc.shape[-1] == table.dy
    assert list(npax.bench.sir(256).evaluations) == ["sir-64", "sir-256"]


def test_a_table_in_tiles_shares_the_training_and_has_results_of_its_own(lattice, tmp_path, rows, monkeypatch):
    """A tile of two observations tells less than all of them."""
    monkeypatch.setattr(importlib.import_module("npax.bench.scores"), "TILE", 2)
    results, tiled = tmp_path / "results", dataclasses.replace(lattice, name="sir-16-tiled", tiled=True)
    whole, part = (
        run(prepare(table, TASKS, results), "thin", folder=tmp_path / "runs", **OPTIONS) for table in (lattice, tiled)
    )
    assert len(list((tmp_path / "runs").iterdir())) == 1 and part[1].nll != whole[1].nll
    assert [result.table for result in (*whole, *part)] == 2 * ["sir-16"] + 2 * ["sir-16-tiled"]
    assert npax.bench.sir(256, tiled=True).name == "sir-256-tiled" and npax.bench.sir(256, tiled=True).tiled


def test_an_unknown_lattice_is_refused():
    with pytest.raises(ValueError, match="64, 128, 256, 1024, got 65"):
        npax.bench.sir(65)
    with pytest.raises(ValueError, match="`tiled` makes no difference for `lattice` = 1024: leave it out"):
        npax.bench.sir(1024, tiled=True)


def test_an_unknown_kernel_is_refused():
    with pytest.raises(ValueError, match="no kernel 'cosine'; there is: rbf, matern32, periodic"):
        npax.bench.gp1d("cosine")


def test_the_curve_starts_where_training_goes_on(benchmark, tmp_path):
    for step in (10, 20):
        path = write_checkpoint(tmp_path, step, {"a": np.zeros(2)}, {})
    path.write_bytes(b"half a file")
    with pytest.warns(UserWarning, match="Going back to the checkpoint before it"):
        curve = Curve(tmp_path, benchmark.table.tasks, benchmark.batches["small"], every=5, steps=30, seeds=1)
    assert curve.step == 10


def test_a_second_run_beside_a_first_leaves_its_curve_alone(benchmark, tmp_path):
    folder = tmp_path / "runs" / f"small.thin.{STEPS}-steps.1-seeds"
    folder.mkdir(parents=True)
    (folder / "curve.json").write_text(text := '{"seconds": 1000, "points": [[1, [0.5]]]}')
    with held(folder), pytest.raises(ValueError, match="Another training"):
        run(benchmark, "thin", folder=tmp_path / "runs", **OPTIONS)
    assert (folder / "curve.json").read_text() == text


def test_points_of_a_curve_are_kept_at_once_and_made_once(benchmark, tmp_path):
    """A killed run has them, and a table that shares a finished training does not put its own in their place."""
    model = cnp(1)
    options = {"every": 5, "steps": 10, "seeds": 1}
    curve = Curve(tmp_path, benchmark.table.tasks, benchmark.batches["small"], **options)
    for step in (5, 10):
        curve.add(model)
        write_checkpoint(tmp_path, step, {"a": np.zeros(2)}, {})
        again = Curve(tmp_path, benchmark.table.tasks, benchmark.batches["small"], **options)
        assert [tuple(point) for point in again.points] == curve.points and again.points[-1][0] == step
    others = jax.tree.map(lambda a: a[:1], benchmark.batches["small"])
    of_another = Curve(tmp_path, benchmark.table.tasks, others, **options)
    spent = of_another.seconds
    of_another.add(model)
    of_another.save()
    assert of_another.seconds == spent > 0, "what comes after the end is no training"
    assert [tuple(point) for point in of_another.points] == curve.points


def test_tables_of_other_data_have_names_of_their_own(monkeypatch, tmp_path):
    assert shift().name == "shift" != shift((0.0, 3.0)).name
    monkeypatch.setattr(tables, "_flow", lambda path, n: jax.numpy.zeros((n, 16, 16, 16, 2)))
    assert len({kolmogorov(tmp_path, n).name for n in (8, 16, 72)}) == 3
    assert "convcnp" not in rows(kolmogorov(tmp_path, 8)), "its grid is narrower than these coordinates"


@pytest.mark.parametrize(("points", "kept"), [(10, 128), (1000, 16), (3000, 8)])
def test_learning_curves_are_of_fewer_tasks_where_those_are_large(points, kept):
    x, mask = jnp.zeros((200, points, 1)), jnp.ones((200, points), bool)
    assert len(module._few(npax.Task(x, x, mask, x, x, mask)).xc) == kept
