"""Results on disk and the report of them, from numbers made up here."""

import dataclasses
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from matplotlib.figure import Figure

from npax.bench import Result, Run, read, report
from npax.bench.published import PUBLISHED
from npax.bench.report import Row, _reached, _tests, differences
from npax.bench.results import commit, read_all, write
from npax.bench.scores import GROUP
from npax.training import DamagedFile

TASKS = 50


def made_up(folder, table, model, nll, *, floor=0.0, steps=0):
    """Writes a run whose likelihoods are `nll`: by task, `[seeds tasks]`."""
    seeds = len(next(iter(nll.values())))
    this = Run(table, model, TASKS, steps, seeds)
    numbers = {"nll_error": 0.01, "gap_error": 0.02, "rmse": 0.5, "mae": 0.4, "crps": 0.3, "coverage": 0.94}
    about = {"device": "CPU, abacus", "date": "2026-01-01", "versions": {"npax": "0"}, "seconds": 12.0, "skipped": 0}
    results = [
        Result(
            **dataclasses.asdict(this),
            **numbers,
            **about,
            task=task,
            seed=seed,
            batch=32,
            parameters=1000 if steps else 0,
            nll=float(row.mean()),
            gap=float(row.mean() - floor),
            curve=[[10, 1.0], [20, 0.5]] if steps else [],
        )
        for task, rows in nll.items()
        for seed, row in enumerate(rows)
    ]
    write(folder, this, results, nll)
    return folder / f"{this.name}.jsonl"


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    base = rng.normal(-0.5, 0.3, (1, TASKS))
    place = tmp_path / "results"
    made_up(place, "gp1d-rbf", "bayes_floor", {"gp1d-rbf": base})
    made_up(place, "gp1d-rbf", "oracle", {"gp1d-rbf": base - 0.1}, floor=-0.5)
    for model, gap in {"tnp_d": 0.2, "cnp": 0.5, "unheard_of": 0.21}.items():
        nll = base + gap + rng.normal(0, 0.1, (2, TASKS))
        made_up(place, "gp1d-rbf", model, {"gp1d-rbf": nll}, floor=-0.5, steps=1500)
    made_up(place, "gp1d-rbf", "cnp", {"gp1d-rbf": base + 1.0}, steps=1500)  # one seed: those of two seeds count
    return place


def cells(text, name):
    return [line.split("|")[1:-1] for line in text.splitlines() if line.startswith(f"| {name} |")]


def test_the_report_has_references_models_and_published_figures(folder):
    text = report(folder)
    assert "## GP-1D, RBF" in text and "1,500 steps of batch 32, seeds: 2" in text and "CPU, abacus" in text
    assert len(cells(text, "**Bayes floor**")) == len(cells(text, "oracle GP (knows the kernel)")) == 1
    first = [line.split(" |")[0] for line in text.splitlines() if line.startswith("| ")]
    order = [first.index(f"| {name}") for name in ("**Bayes floor**", "oracle GP (knows the kernel)", "tnp_d", "cnp")]
    assert order == sorted(order)
    row = [cell.strip() for cell in cells(text, "cnp")[0]]
    nll = read(folder / f"{Run('gp1d-rbf', 'cnp', TASKS, 1500, 2).name}.jsonl")[1]["gp1d-rbf"].mean(axis=1)
    assert row[1] == f"{nll.mean():.3f} ± {nll.std(ddof=1) / 2**0.5:.3f}"
    assert row[2] == f"{nll.mean() + 0.5:.3f} ± {nll.std(ddof=1) / 2**0.5:.3f}"
    assert row[3] == "0.101" == f"{PUBLISHED['gp1d-rbf']['cnp']:.3f}"
    assert cells(text, "unheard_of")[0][3].strip() == ""


@pytest.mark.parametrize("shift, after", [(-0.4, "not yet"), (-0.6, "20 steps"), (-1.1, "10 steps")])
def test_the_step_of_the_published_figure_is_that_of_all_tasks(shift, after):
    """The curve, 1.0 and 0.5, is of few of the tasks; on all of them it would be lower by `shift`."""
    nll = np.full(GROUP, 0.5 + shift)
    assert _reached(np.array([[10, 1.0], [20, 0.5]]), nll, 0.0) == after


def test_only_models_with_a_published_figure_reach_it(folder):
    text = report(folder)
    column = [cell.strip() for cell in cells(text, "")[0]].index("published NLL after")
    assert cells(text, "tnp_d")[0][column].strip() == "not yet"
    for name in ("unheard_of", "oracle GP (knows the kernel)"):
        assert cells(text, name)[0][column].strip() == ""


def test_budgets_are_not_mixed(folder):
    made_up(folder, "gp1d-rbf", "tnp_d", {"gp1d-rbf": np.full((1, TASKS), -0.45)}, steps=100_000)
    text = report(folder)
    assert text.count("## GP-1D, RBF") == 2 and "100,000 steps of batch 32, seeds: 1" in text
    assert len(cells(text, "**Bayes floor**")) == 2


def test_shifts_are_beside_one_another(folder):
    for model in ("bayes_floor", "oracle", "cnp"):
        nll = {f"shift-{shift}": np.full((1, TASKS), 0.5 + shift) for shift in (0, 1)}
        made_up(folder, "shift", model, nll, steps=1500 if model == "cnp" else 0)
    text = report(folder)
    row = [cell.strip() for cell in cells(text.split("## GP-1D-shift\n")[1], "cnp")[0]]
    assert row == ["cnp", "0.500 ± 0.000 (0.69)", "1.500 ± 0.000 (1.08)"]


def test_each_evaluation_has_its_scores_and_tests_best_first(folder):
    rng = np.random.default_rng(0)
    for model, losses in {"cnp": (0.1, 0.9), "tnp_d": (0.2, 0.5)}.items():
        nll = {f"sir-{side}": rng.normal(loss, 0.01, (1, TASKS)) for side, loss in zip((64, 256), losses, strict=True)}
        made_up(folder, "sir-256", model, nll, steps=200)
    text = report(folder).split("## SIR, trained on 64 x 64, on 256 x 256\n")[1].split("\n## ")[0]
    whole, small, large = text.split("### ")
    assert whole.count("\n| cnp") == 1
    for part, name, best in ((small, "sir-64", "cnp"), (large, "sir-256", "tnp_d")):
        assert part.startswith(f"{name}\n") and part.count("\n| cnp") == 2 == part.count("\n| tnp_d")
        assert part.split("\n| ")[3].startswith(best)
    assert "published NLL after" in small and "published NLL after" not in large, "the curve is of the first"


def _row(folder, model, of_seeds, of_tasks):
    """A row of so many seeds; the likelihoods of the tasks need not fit."""
    nll = np.repeat(np.asarray(of_seeds)[:, None], TASKS, axis=1)
    lines, _ = read(made_up(folder, "t", model, {"t": nll}, steps=1))
    return Row(model, {"t": lines[::-1]}, {"t": of_tasks})


def test_paired_tests_are_those_of_scipy_and_of_the_textbook(tmp_path):
    a, b = np.array([1.0, 2.0, 4.0, 3.0]), np.array([0.5, 1.0, 3.5, 1.0])  # differences 0.5, 1, 0.5, 2
    found = differences([_row(tmp_path, "a", [9.0], a), _row(tmp_path, "b", [8.0], b)], "t")
    t = 1.0 / (np.sqrt(0.5) / 2)  # mean 1, variance (0.25 + 0 + 0.25 + 1) / 3 = 0.5
    assert found["a", "b"] == pytest.approx((1.0, 2 * scipy.stats.t.sf(t, 3)))
    assert found["a", "b"][1] == pytest.approx(scipy.stats.ttest_rel(a, b).pvalue)
    assert found["b", "a"] == pytest.approx((-1.0, found["a", "b"][1]))
    several = {"a": (a, np.zeros(9)), "b": (b, np.ones(9)), "c": (a[:2], np.arange(9.0))}
    found = differences([_row(tmp_path, name, *values) for name, values in several.items()], "t")
    assert found["a", "b"] == pytest.approx((1.0, 2 * scipy.stats.t.sf(t, 3))), "over seeds, where there are several"
    assert found["a", "c"][0] == -4, "over tasks, where there are not as many of each"


def test_of_many_models_chance_makes_none_bold(tmp_path):
    nll = np.random.default_rng(1).normal(size=(12, 50))
    alike = [_row(tmp_path, f"model {i}", [values.mean()], values) for i, values in enumerate(nll)]
    assert min(p for _, p in differences(alike, "t").values()) < 0.05, "of 66 tests some find what is not there"
    assert "**" not in _tests(alike, "t")
    better = _row(tmp_path, "better", [0.0], nll[0] - 3 + 0.1 * nll[1])
    assert _tests([*alike, better], "t").count("**-") == 12
    assert "**" not in _tests([alike[0], alike[0]], "t"), "nothing differs from itself"


def test_what_differs_is_bold(folder):
    text = report(folder)
    row = [cell.strip() for cell in cells(text, "tnp_d")[1]]
    header = [cell.strip() for cell in cells(text, "")[1]]
    assert row[header.index("cnp")].startswith("**-0.") and row[header.index("tnp_d")] == ""
    assert not row[header.index("unheard_of")].startswith("**")


def test_learning_curves_are_drawn_and_linked(folder, tmp_path, monkeypatch):
    text = report(folder, tmp_path / "gp")
    picture = tmp_path / "gp" / f"gp1d-rbf.1500-steps.{TASKS}-tasks.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and f"](gp/{picture.name})" in text
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "](" not in report(folder, tmp_path / "other")


def test_all_models_are_in_the_legend(folder, tmp_path, monkeypatch):
    for i in range(26):
        made_up(folder, "gp1d-rbf", f"model_of_a_paper_{i}", {"gp1d-rbf": np.zeros((2, TASKS))}, steps=1500)
    drawn, savefig = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kw: (drawn.append(self), savefig(self, *args, **kw)))
    report(folder, tmp_path / "gp")
    figure = max(drawn, key=lambda figure: len(figure.axes[0].lines))
    legend = figure.legends[0]
    assert len(legend.get_texts()) == len(figure.axes[0].lines) > 26
    box, axes = legend.get_window_extent(), figure.axes[0].get_window_extent()
    assert box.x0 >= axes.x1 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
    assert axes.width > 0.4 * figure.bbox.width


def test_damage_is_named(folder):
    path = next(folder.glob("*.tnp_d.*.jsonl"))
    content = path.read_text()
    for damaged in (content[:-20], content + "{}\n", content.replace('"nll"', '"mll"'), "\0" * 30):
        path.write_text(damaged)
        with pytest.raises(DamagedFile, match=r"tnp_d.*line \d is damaged.*Delete"):
            report(folder)
    path.write_text(content.splitlines()[0].replace('"seeds": 2', '"seeds": 1') + "\n")
    with pytest.raises(DamagedFile, match=r"tnp_d.*npz is missing or damaged"):
        report(folder)
    path.write_text(content)
    assert len(read(path)[0]) == 2
    arrays = path.with_suffix(".npz")
    arrays.write_bytes(arrays.read_bytes()[:100])
    with pytest.raises(DamagedFile, match=r"npz is missing or damaged"):
        read_all(folder)
    arrays.unlink()
    with pytest.raises(DamagedFile, match=r"npz is missing or damaged"):
        read_all(folder)


def test_lines_are_json_with_what_the_issue_of_a_comparison_needs(folder):
    path = next(folder.glob("*.oracle.*.jsonl"))
    line = json.loads(path.read_text())
    wanted = ["model", "task", "seed", "steps", "device", "seconds", "nll", "rmse", "mae", "coverage", "crps", "gap"]
    assert set(wanted) <= set(line) and not list(folder.glob("*.partial-*"))


def test_no_results_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="no results"):
        report(tmp_path)


def test_results_say_which_commit_they_are_of(tmp_path, folder):
    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True)

    file = tmp_path / "module.py"
    file.write_text("")
    git("init")
    assert commit(file) == "", "git does not know it"
    git("add", "module.py")
    git("commit", "-m", "first")
    clean = commit(file)
    assert re.fullmatch(r"\+[0-9a-f]{7,}", clean)
    file.write_text("changed")
    assert commit(file) == clean + "-dirty"
    (path,) = folder.glob("*.unheard_of.*.jsonl")
    path.write_text(path.read_text().replace('"npax": "0"', f'"npax": "0{clean}"'))
    assert report(folder) == report(folder).replace(clean, "")


def test_the_shortest_run_that_comes_as_far_as_the_paper_counts(tmp_path):
    place, rng = tmp_path / "results", np.random.default_rng(0)
    for steps, distance in {500: 0.1, 1500: -0.1, 4000: -0.2}.items():
        for model in ("cnp", "anp", "unheard_of"):
            nll = PUBLISHED["gp1d-rbf"].get(model, 0.0) + distance + (0.3 if model == "anp" else 0.0)
            noise = rng.normal(0, 1e-3, (1, TASKS))
            made_up(place, "gp1d-rbf", model, {"gp1d-rbf": nll + noise - noise.mean()}, steps=steps)
    part = report(place).split("## Steps to the published NLL")[1]
    # The curve of 1.0 after 10 and 0.5 after 20 steps is moved to end where the run did.
    assert cells(part, "cnp")[0][1].strip() == "20 steps, of 1,500"
    assert cells(part, "anp")[0][1].strip() == "not after 4,000: +0.100"
    assert not cells(part, "unheard_of")
