"""What the README says works: its Python, its commands, its links."""

import inspect
import re
import shlex
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner
from untrained import pictures, small

import npax
from npax.cli import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(autouse=True, scope="module")
def small_weights(tmp_path_factory):
    """Small untrained models under the names of the shipped ones: what runs is the matter here, not how well."""
    folder = tmp_path_factory.mktemp("pretrained")
    npax.save(folder / "gp-universal.safetensors", small())
    npax.save(folder / "field-universal.safetensors", pictures())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["npax.pretrained"], "_FOLDER", folder)
        yield


@pytest.fixture
def names(tmp_path, monkeypatch):
    """The data that the README speaks of, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(-30, -23, 60), rng.uniform(40, 48, 60)
    floats = pd.DataFrame({"lon": lon, "lat": lat, "temp": 10 + np.sin(lon) + lat})
    floats.to_csv("floats.csv", index=False)
    soil = floats.rename(columns={"lon": "x", "lat": "y", "temp": "zinc"}).assign(sem=0.1)
    soil = soil.assign(elevation=rng.random(60), river=rng.random(60))
    soil.to_csv("soil.csv", index=False)
    soil[["x", "y", "elevation", "river"]].head(3).to_csv("points.csv", index=False)
    tested = rng.integers(5, 50, 60)
    villages = floats.drop(columns="temp").assign(positive=rng.binomial(tested, 0.3), tested=tested)
    villages.to_csv("villages.csv", index=False)
    Path("surveys").mkdir()
    for i in range(3):
        soil[20 * i : 20 * i + 20 - i].to_csv(f"surveys/{i}.csv", index=False)
    sst = xr.DataArray(rng.normal(size=(12, 16)), dims=("lat", "lon"), name="sst")
    sst = sst.where(rng.random(sst.shape) < 0.7)
    sst.to_netcdf("sst.nc")
    at = {"lat": np.arange(40.0, 48), "lon": np.arange(-30.0, -23)}
    xr.Dataset({"basin": ("lat", ["south"] * 4 + ["north"] * 4)}, at).to_netcdf("basins.nc")
    X, y = floats[["lon", "lat"]].to_numpy(), floats["temp"].to_numpy()
    x3 = jax.device_put(rng.normal(size=(16, 3)).astype(np.float32))
    return {
        **{
            "X": X[:30],
            "y": y[:30],
            "se": np.full(30, 0.1),
            "Xs": X[30:50],
            "ys": y[30:50],
            "X_new": X[50:],
            "y_new": y[50:],
            "villages": villages[["lon", "lat"]].to_numpy(),
            "positive": villages.positive,
            "tested": tested,
            "gauges": X[:30],
            "millimetres": np.exp(y[:30] / 10),
        },
        **{"table": soil.drop(columns=["zinc", "sem"]), "zinc": soil["zinc"]},
        **{"floats": floats, "sst": sst, "xc": x3, "yc": x3[:, :1], "xt": x3},
    }


def no_training(model, tasks, **options):
    """`npax.fit` without its steps: it must take these arguments, and the model these tasks."""
    inspect.signature(real_fit).bind(model, tasks, **options)
    task = jax.eval_shape(tasks.sample, jr.key(0))
    eqx.filter_eval_shape(lambda task: model(task.xc, task.yc, task.xt, task.mask_c).mean, task)
    return npax.FitResult(model, np.zeros(0), [], options["steps"], 0, 0.0)


real_fit = npax.fit


def test_python(names, monkeypatch):
    monkeypatch.setattr(npax, "fit", no_training)
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), names)
    assert names["field"]["temp_mean"].shape == (10, 10)
    assert list(names["means"].basin.to_numpy()) == ["north", "south"]
    assert names["samples"].shape == (16, 1)
    assert np.isfinite(names["complete"]).all()
    assert isinstance(npax.load("specialist.safetensors"), npax.TNPKR)


def commands():
    return [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines() if line.strip()]


def test_commands(names):
    ours = [line for line in commands() if line.startswith("npax")]
    assert len(ours) >= 4
    for line in ours:
        _, *args = shlex.split(line)
        if args[0] in ("demo", "train", "bench"):  # these take long; their options must exist all the same
            args = [args[0], "--help"]
        result = CliRunner().invoke(app, args)
        assert result.exit_code == 0, f"{line}\n{result.output}"
    assert all(Path(name).exists() for name in ("map.nc", "zinc.parquet", "means.csv", "filled.nc"))


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = [line.split()[1] for line in commands() if line.startswith("make ")]
    assert {"demo", "test"} <= set(targets)
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{page.name}" for page in sorted(ROOT.glob("docs/*.md")))])
def test_links_lead_somewhere(page):
    page = ROOT / page
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page.read_text()) if not link.startswith("http")]
    assert links and all((page.parent / link).exists() for link in links)
