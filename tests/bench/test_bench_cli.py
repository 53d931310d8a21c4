"""The command, over a small table and small models."""

import re
import warnings

import pytest
from typer.testing import CliRunner

import npax.bench
from npax.cli import app


def invoke(*args):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        result = CliRunner().invoke(app, ["bench", *map(str, args)])
    return result, re.sub(r"\s+", " ", result.output)


@pytest.fixture
def small(table, rows, monkeypatch, tmp_path):
    monkeypatch.setattr(npax.bench, "gp1d", lambda kernel: table)
    monkeypatch.chdir(tmp_path)
    return ("gp1d", "--steps", 8, "--tasks", 6)


def test_help_says_what_there_is():
    result, text = invoke("--help")
    assert result.exit_code == 0
    for command in (
        "gp1d",
        "gp2d",
        "shift",
        "bimodal",
        "anp",
        "mnist",
        "celeba",
        "cifar10",
        "tmnist",
        "tcifar10",
        "sir",
        "report",
    ):
        assert command in text
        assert invoke(command, "--help")[0].exit_code == 0
    assert "npax bench gp1d --kernel rbf" in text and "Ctrl-C" in text


def test_trains_scores_reports_and_does_not_repeat(small, tmp_path):
    result, text = invoke(*small, "--model", "thin,wide")
    assert result.exit_code == 0, text
    assert (
        "thin: step 8 of 8, NLL" in text
        and "small: thin, seed 0: NLL" in text
        and "small: wide, seed 0: NLL" in text
        and "Bayes floor" in text
    )
    again, text = invoke(*small, "--model", "thin")
    assert again.exit_code == 0 and "finished before" in text and "Bayes floor" not in text
    result, text = invoke("report", "-o", tmp_path / "new" / "gp.md")
    assert result.exit_code == 0, text
    written = (tmp_path / "new" / "gp.md").read_text()
    assert "**Bayes floor**" in written and "| oracle GP" in written and "| wide |" in written
    assert list((tmp_path / "new" / "gp").glob("*.png"))
    assert "| thin |" in invoke("report")[1]
    assert list((tmp_path / "runs" / "bench").glob("small.thin.*"))


def test_results_may_lie_elsewhere(small, tmp_path):
    result, text = invoke(*small, "--model", "thin", "--folder", tmp_path / "runs", "--results", tmp_path / "kept")
    assert result.exit_code == 0, text
    assert len(list((tmp_path / "kept").glob("*.jsonl"))) == 3 and not (tmp_path / "runs" / "results").exists()
    assert "| thin |" in invoke("report", "--results", tmp_path / "kept")[1]


def test_one_failure_does_not_stop_the_others(small):
    result, text = invoke(*small)
    assert result.exit_code == 1
    assert "broken failed: RuntimeError: out of memory" in text and "failed: broken" in text
    assert "thin, seed 0" in text and "wide, seed 0" in text


def test_ctrl_c_says_how_to_go_on(small, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(npax.bench, "run", stopped)
    result, text = invoke(*small, "--model", "thin")
    assert result.exit_code == 130 and "the same command goes on" in text


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("gp1d", "--model", "gpt"), ["no model 'gpt'", "all", "thin, wide"]),
        (("gp1d", "--model", "all,gpt"), ["no model 'gpt'"]),
        (("gp1d", "--kernel", "cosine"), ["cosine", "rbf", "matern32", "periodic"]),
        (("gp1d", "--steps", 0), ["--steps"]),
        (("gp3d",), ["gp3d"]),
        (("celeba", "--data", "nowhere"), ["no 'nowhere'", "celeba32.npz", "NPAX_DATA", "non-commercial"]),
        (("sir", "--lattice", 65), ["`lattice`", "64, 128, 256, 1024, got 65"]),
        (("report",), ["no results in 'runs/bench/results'", "npax bench TABLE"]),
        (("report", "-o", "gp.html"), [".md"]),
    ],
)
def test_wrong_input_is_refused_clearly(args, words, small):
    result, text = invoke(*args)
    assert result.exit_code == 2 and "Traceback" not in text
    for word in words:
        assert word in text, text


def test_damaged_results_are_refused_clearly(small, tmp_path):
    place = tmp_path / "runs" / "bench" / "results"
    place.mkdir(parents=True)
    (place / "small.thin.8-steps.1-seeds.6-tasks.jsonl").write_text('{"table": "sm')
    result, text = invoke("report")
    assert result.exit_code == 2 and "line 1 is damaged" in text and "Delete" in text
