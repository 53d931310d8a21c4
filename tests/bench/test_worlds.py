"""Tables of fields and stations: several outputs, no floor, a process fitted to each task as a row."""

import re
import warnings

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from typer.testing import CliRunner

import npax
from npax import bench
from npax.bench import Run, Table, prepare, read, report, run
from npax.cli import app
from npax.models import presets
from npax.tasks import StationTask

TASKS = 2


@pytest.fixture(scope="module")
def waves():
    """Two outputs, one of them the other upside down: what a process of several outputs can use."""
    x = np.random.default_rng(0).uniform(-2.0, 2.0, (5, 24, 2)).astype(np.float32)
    y = np.sin(2 * x[..., 0] + np.arange(5, dtype=np.float32)[:, None])
    arrays = jax.device_put((x, np.stack([y, -2 * y], axis=-1), np.ones((5, 24), bool)))
    tasks = StationTask(*arrays, low=8, high=12)
    return Table("waves", "Waves", tasks, {"waves": tasks}, batch_size=4, dx=2, dy=2, baselines=("gp",))


def test_a_process_fitted_to_each_task_is_a_row(waves, rows, tmp_path):
    benchmark = prepare(waves, TASKS, tmp_path / "results", log=lambda _: None)
    assert benchmark.floor == {} and not (tmp_path / "results").exists()
    assert bench.rows(waves)[-1] == "gp" and "gp" not in bench.rows(Table("t", "T", waves.tasks, {}))
    (result,) = run(benchmark, "gp", steps=8, folder=tmp_path)
    again = run(benchmark, "gp", steps=99, seeds=3, folder=tmp_path)
    assert again == [result] and result.steps == 0 and result.gap is None
    (trained,) = run(benchmark, "thin", steps=8, folder=tmp_path, progress=False)
    assert result.nll < trained.nll - 1 and result.rmse < 0.5 * trained.rmse
    _, nll = read(tmp_path / "results" / f"{Run('waves', 'gp', TASKS).name}.jsonl")
    np.testing.assert_allclose(nll["waves"].mean(), result.nll, rtol=1e-5)
    task = jax.tree.map(lambda a: jax.device_put(np.asarray(a)[0]), benchmark.batches["waves"])
    log_prob = jax.jit(lambda prediction, y: prediction.log_prob(y))(npax.gp.maximum_a_posteriori_gp(task), task.yt)
    own = -np.mean(np.asarray(log_prob), where=np.asarray(task.mask_t)) / 2  # per value, of which there are two
    assert float(own) == pytest.approx(float(nll["waves"][0, 0]), abs=0.02)
    text = report(tmp_path / "results")
    assert "| GP, fitted to each task |" in text and "| thin |" in text and "gap" not in text.split("## ")[1]


def test_a_row_that_a_table_does_not_have_is_refused(waves, rows, tmp_path):
    other = Table("waves", "Waves", waves.tasks, waves.evaluations, dx=2, dy=2)
    benchmark = prepare(other, TASKS, tmp_path, log=lambda _: None)
    with pytest.raises(ValueError, match="`gp` cannot be a row of Waves"):
        run(benchmark, "gp", steps=1, folder=tmp_path)


@pytest.mark.parametrize("name", ["cnp", "rcnp", "pt_tnp", "te_pt_tnp", "tnp_kr_sa", "tnp_kr_sa_rotary"])
@pytest.mark.parametrize("dx", [3, 4])
def test_presets_take_more_coordinates_and_outputs(name, dx):
    def predict(key):
        model = getattr(presets, name)(dx, 2, key=key)
        xc, yc, xt = (jr.normal(key, shape) for shape in ((5, dx), (5, 2), (3, dx)))
        return model(xc, yc, xt, jnp.ones(5, bool)).log_prob(jnp.ones((3, 2)))

    assert jax.eval_shape(predict, jr.key(0)).shape == (3,)


@pytest.fixture
def data(tmp_path, rng):
    lat, lon, n = np.arange(60.0, 34.9, -0.25), np.arange(-10.0, 30.1, 0.25), 6
    np.savez(
        tmp_path / "era5_europe_2022_07.npz",
        t2m=rng.normal(280, 5, (n, lat.size, lon.size)).astype(np.float32),
        time=np.arange(n) * 21600,
        lat=lat,
        lon=lon,
        elevation=rng.normal(size=(lat.size, lon.size)),
    )
    places, ozone = rng.uniform(-90, -80, (2, 30)), rng.normal(50, 9, (12, 30))
    ozone[rng.random(ozone.shape) < 0.1] = np.nan
    np.savez(tmp_path / "ozone_midwest.npz", lon=places[0], lat=places[1] % 10 + 40, ozone=ozone, date=np.arange(12))
    lines = [f"{lon},{lat},0,{100 + lat}" for lon, lat in rng.uniform((-130, 30), (-70, 50), (400, 2))]
    (tmp_path / "na_rainfall.csv").write_text("longitude,latitude,elevation_m,precip_tenth_mm\n" + "\n".join(lines))
    return tmp_path


def test_models_are_tested_where_they_were_not_trained(data):
    table = bench.environment(data)
    tests = table.evaluations
    assert list(tests) == ["environment-central", "environment-western", "environment-northern"] and table.dx == 4
    west, train = tests["environment-western"], table.tasks
    assert float(west.lon.max()) <= float(train.lon.min()) and west.scaling == train.scaling
    assert float(tests["environment-northern"].lat.min()) >= float(train.lat.max())
    assert train.crop == (15, 15, 5) and (train.low, train.high, train.nt) == (11, 375, 256)

    days = bench.stations("ozone", data)
    assert len(days.tasks) == 8 and len(days.evaluations["stations-ozone"]) == 4
    assert bench.stations("rainfall", data).dx == 3
    with pytest.raises(ValueError, match=r"no network 'tides'.*ozone, rainfall, argo"):
        bench.stations("tides", data)


def test_the_command_trains_fits_and_reports(data, rows, tmp_path):
    def invoke(*args):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            result = CliRunner().invoke(app, ["bench", *args, "--folder", str(tmp_path / "runs")])
        return result.exit_code, re.sub(r"\s+", " ", result.output)

    wanted = ("--data", str(data), "--model", "thin,gp", "--steps", "2", "--tasks", "2")
    code, text = invoke("stations", "--network", "ozone", *wanted)
    assert code == 0, text
    assert "thin: 2 steps" in text and "gp: fitted to each task" in text and "stations-ozone: gp, seed 0: NLL" in text
    code, text = invoke("stations", "--network", "ozone", *wanted)
    assert code == 0 and text.count("finished before") == 2
    assert "Ozone of the Midwest" in invoke("report")[1]
    code, text = invoke("environment", "--data", str(tmp_path / "runs"), "--model", "thin")
    assert code == 2 and "put 'era5_europe_2022_07.npz'" in text and "Traceback" not in text
    code, text = invoke("gp1d", "--model", "gp", "--tasks", "2", "--steps", "1")
    assert code == 2 and "`gp` is no row of GP-1D" in text


def test_flows_are_simulated_once(tmp_path, monkeypatch):
    calls = []

    def simulate(key, trajectories, progress):
        calls.append(trajectories)
        return jax.device_put(np.random.default_rng(0).normal(size=(trajectories, 16, 16, 16, 2)).astype(np.float32))

    monkeypatch.setattr("npax.bench.tables.kolmogorov_flow", simulate)
    first, again = bench.kolmogorov(tmp_path, 9), bench.kolmogorov(tmp_path, 9)
    assert calls == [9] and len(first.tasks.velocity) == 8
    assert np.array_equal(first.tasks.velocity, again.tasks.velocity)
    held_out = first.evaluations["kolmogorov"].velocity
    assert len(held_out) == 1
    assert not any(np.array_equal(held_out[0], flow) for flow in np.asarray(first.tasks.velocity))
    assert (first.dx, first.dy) == (3, 2)


def test_a_damaged_file_of_flows_is_named(tmp_path):
    np.save(tmp_path / "kolmogorov-9.npy", np.zeros((9, 16, 16, 16, 2), np.float32))
    content = (tmp_path / "kolmogorov-9.npy").read_bytes()
    for part in (content[:500], content[:20], b""):
        (tmp_path / "kolmogorov-9.npy").write_bytes(part)
        with pytest.raises(ValueError, match=r"kolmogorov-9\.npy' is damaged.*Delete it"):
            bench.kolmogorov(tmp_path, 9)
