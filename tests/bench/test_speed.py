"""Timing tables: what is timed is the model, limits hold, results are kept."""

import json
import re
import sys

import equinox as eqx
import jax
import numpy as np
import pytest
from test_bench_cli import invoke
from untrained import untrained

import npax
from npax.bench import ROWS, TILED, Cell, cells, measure, measured, speed, speed_cell, speed_report

SIZES = {"blocks": 2, "size": 8, "heads": 2, "head_size": 4, "hidden": 8}
ABOUT = {"device": "a device", "date": "2026-01-01 00:00 UTC", "versions": {"npax": "0.1.0"}}
CELL = Cell("targets", "tnp_kr_sa", 100, 10)


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 2)).astype(np.float32), rng.normal(size=(7, 1)).astype(np.float32)


@pytest.fixture
def small_preset(monkeypatch):
    """A small model in the place of the preset."""
    model = untrained(lambda key: npax.TNPKR(2, 1, key=key, **SIZES))
    monkeypatch.setattr(speed_cell.presets, "tnp_kr_sa", lambda dx, dy, key: model)
    return model


def test_the_masked_form_is_the_model(points):
    model = untrained(lambda key: npax.TNPD(2, 1, attention=npax.DenseAttention(), key=key, **SIZES))
    xt = points[0][:5] + np.float32(0.3)
    found, truth = (eqx.filter_jit(answer)(model, *points, xt) for answer in (speed_cell.masked, type(model).__call__))
    np.testing.assert_allclose(found[0], truth.mean, atol=1e-5)
    np.testing.assert_allclose(found[1], truth.variance, atol=1e-5)


@pytest.mark.parametrize("nt", [9, 1030])
def test_a_cell_predicts_with_the_model(nt, small_preset):
    found = speed_cell.call("tnp_kr_sa", 5, nt)()
    assert found.mean.shape == found.variance.shape == (nt, 1)
    rng = np.random.default_rng(0)
    x, places = (rng.uniform(-2, 2, (n, 2)) for n in (5, nt))
    truth = small_preset(*(jax.device_put(np.float32(a)) for a in (x, np.sin(3 * x[:, :1]), places)))
    np.testing.assert_allclose(found.mean, truth.mean, atol=1e-5)
    np.testing.assert_allclose(found.variance, truth.variance, atol=1e-5)


def test_the_exact_row_is_the_shipped_model_without_tiles():
    rng = np.random.default_rng(0)
    x, places = (rng.uniform(-2, 2, (n, 2)) for n in (300, 9))
    truth = npax.NeuralProcessRegressor(strategy="exact", views=None).fit(x, np.sin(3 * x[:, 0])).predict(places)
    found, tiled = (speed_cell.call(row, 300, 9)().mean[:, 0] for row in ("exact", TILED))
    np.testing.assert_allclose(found, truth, atol=1e-5)
    assert not np.allclose(tiled, truth, atol=1e-4), "negative control"
    assert {cell.table for cell in cells(rows=["exact"])} == {"images"}


def test_tables_have_the_sizes_of_the_papers():
    all_cells = list(cells())
    assert len(set(all_cells)) == len(all_cells) == 2 * 7 * len(ROWS) + 3 * (len(ROWS) + 1)
    assert Cell("images", TILED, 100_000, 1024**2) in all_cells
    assert max(max(c.nc, c.nt) for c in cells(largest=10_000)) == 10_000
    assert {c.table for c in cells(tables=["images"])} == {"images"}
    for table, published in speed.PUBLISHED_SPEED.items():
        assert set(published) == {(c.nc, c.nt) for c in all_cells if c.table == table}


@pytest.mark.parametrize(
    ("code", "limits", "outcome"),
    [
        ('print(\'{"seconds": [0.1, 0.2, 0.3], "peak_gb": 0.5}\')', (60, 60), "ok"),
        ("import time; time.sleep(60)", (0.3, 60), "time"),
        ("a = b'1' * 2**29; import time; time.sleep(60)", (60, 0.2), "memory"),
        ("raise RuntimeError('RESOURCE_EXHAUSTED: Out of memory allocating')", (60, 60), "memory"),
        ("import os; os.kill(os.getpid(), 9)", (60, 60), "memory"),
        ("raise ValueError('wrong')", (60, 60), "error"),
        ("", (60, 60), "error"),
    ],
)
def test_limits_hold(code, limits, outcome, tmp_path):
    if outcome == "memory" and limits[1] < 1 and not sys.platform.startswith("linux"):
        pytest.skip("memory is watched on Linux")
    seconds, gigabytes = limits
    command = [sys.executable, "-c", code]
    found = measure(CELL, tmp_path, ABOUT, seconds=seconds, gigabytes=gigabytes, command=command)
    assert found.outcome == outcome
    assert found.seconds == ([0.1, 0.2, 0.3] if outcome == "ok" else [])
    if outcome == "error":
        assert found.message == ("ValueError: wrong" if code else "It printed no timing.")
    again = measured(CELL, tmp_path, seconds, gigabytes)
    larger = measured(CELL, tmp_path, 2 * seconds, 2 * gigabytes)
    assert again == (None if outcome == "error" else found)
    assert larger == (found if outcome == "ok" else None)


def test_a_process_that_ends_before_it_has_read_all_is_heard(tmp_path):
    command = [sys.executable, "-c", "raise ValueError('wrong')"]
    found = measure(CELL, tmp_path, ABOUT, seconds=60, gigabytes=60, command=command, stdin="x" * 10**7)
    assert (found.outcome, found.message) == ("error", "ValueError: wrong")


def test_a_cell_runs(capsys, monkeypatch, small_preset):
    monkeypatch.setattr(sys, "argv", ["speed_cell", json.dumps({"row": "tnp_kr_sa", "nc": 5, "nt": 9})])
    speed_cell.main()
    found = json.loads(capsys.readouterr().out)
    assert 1 <= len(found["seconds"]) <= 20 and min(found["seconds"]) > 0 and found["peak_gb"] > 0


def test_report_says_what_was_measured_and_published(tmp_path):
    with pytest.raises(FileNotFoundError, match="npax bench speed makes them"):
        speed_report(tmp_path)
    outcomes = {
        ("targets", "tnp_kr_sa", 100, 10): ("ok", [0.5, 0.3, 0.2, 0.001], 1.5),
        ("targets", "tnp_d_masked", 100, 10**6): ("memory", [], 9.0),
        ("contexts", "tnp_kr_sa", 10**6, 100): ("time", [], 1.0),
        ("images", "tiled", 1270, 4096): ("ok", [2.0], 0.5),
        ("targets", "dl4bi_bsatnp", 100, 10): ("error", [], 0.0),
    }
    for (table, row, nc, nt), (outcome, seconds, peak) in outcomes.items():
        timing = speed.Timing(table, row, nc, nt, outcome, seconds, peak, 600.0, 8.0, "", **ABOUT)
        (tmp_path / f"{table}.{row}.{nc}.json").write_text(json.dumps(vars(timing)))
    text = speed_report(tmp_path)
    assert (
        "## a device" in text and "| context | targets | tnp_d_masked, µs | tnp_kr_sa, µs | dl4bi_bsatnp, µs |" in text
    )
    assert "| 100 | 10 |  (119) | 250,000; 1.50 GB (287) | **error** |" in text
    assert "| 100 | 1,000,000 | **memory** > 8 GB (OOM) |" in text
    assert "| 1,000,000 | 100 | **time** > 600 s (OOM) |" in text
    assert "| 1,270 | 4,096 | 2,000; 0.50 GB |" in text
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(npax.training.DamagedFile, match="Delete it"):
        speed_report(tmp_path)


def test_the_command_goes_on_and_reports(tmp_path, monkeypatch):
    asked = []

    def timed(cell, folder, circumstances, *, seconds, gigabytes):
        if len(asked) == 3:
            raise KeyboardInterrupt
        asked.append(cell)
        code = 'print(\'{"seconds": 0.1, "peak_gb": 0.5}\')'
        return measure(cell, folder, ABOUT, seconds=60, gigabytes=60, command=[sys.executable, "-c", code])

    monkeypatch.setattr(npax.bench, "measure", timed)
    monkeypatch.setattr(speed, "about", lambda: ABOUT)
    args = ("speed", "--largest", 100, "--row", "tnp_kr_sa", "--folder", tmp_path, "-o", tmp_path / "speed.md")
    result, text = invoke(*args)
    assert result.exit_code == 130 and "the same command goes on" in text and not (tmp_path / "speed.md").exists()
    before, asked[:] = list(asked), []
    result, text = invoke(*args)
    assert result.exit_code == 0, text
    assert len(asked) == 3 and not set(asked) & set(before)
    assert "[6/6]" in text and re.search(r"100,000; 0.50 GB \(267\)", (tmp_path / "speed.md").read_text())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--row", "gpt"), ["no row 'gpt'", "tiled"]),
        (("--row", "exact", "--table", "targets"), ["not in targets", "--table images"]),
        (("--table", "sounds"), ["no table 'sounds'", "images"]),
        (("-o", "a.html"), [".md"]),
        (("--seconds", 0), ["--seconds"]),
    ],
)
def test_wrong_input_is_refused_clearly(args, words):
    result, text = invoke("speed", *args)
    assert result.exit_code == 2 and "Traceback" not in text
    assert all(word in text for word in words), text
