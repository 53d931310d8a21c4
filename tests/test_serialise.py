"""Models on disk."""

import inspect
import json
import pickletools
import re
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import safetensors.numpy
from laws import BIASES, MODELS, same
from tinygp import kernels, transforms
from untrained import untrained

import npax
from npax.packed import pack, unpack
from npax.serialise import _describe, count_parameters, load_card
from npax.training import DamagedFile
from npax.training.checkpoint import write_checkpoint

SOURCE = Path(npax.__file__).parent
answer = eqx.filter_jit(lambda bias, xq, xk: bias(xq, xk))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    npax.save(path, untrained(MODELS["rotary-alone"]), {"steps": 10, "nll": -0.46, "by": {"1d": 1}})
    return path


def test_the_same_model_is_the_same_bytes(saved, tmp_path):
    model, card = npax.load(saved), load_card(saved)
    for i in range(8):
        npax.save(tmp_path / f"{i}.safetensors", model, card)
        assert (tmp_path / f"{i}.safetensors").read_bytes() == saved.read_bytes()
    assert set(safetensors.numpy.load_file(saved)) == set(unpack(saved)[0])


@pytest.mark.parametrize("make", BIASES.values(), ids=BIASES)
def test_every_bias_comes_back(make, rng, tmp_path):
    bias = make(jr.key(0))
    npax.save(tmp_path / "bias.safetensors", bias)
    loaded = npax.load(tmp_path / "bias.safetensors")
    assert jax.tree.structure(loaded) == jax.tree.structure(bias)
    assert same(loaded, bias)
    xq, xk = (jax.device_put(rng.normal(size=(n, 2)).astype(np.float32)) for n in (3, 4))
    assert np.array_equal(answer(loaded, xq, xk), answer(bias, xq, xk))


def test_kernels_of_transformed_coordinates_come_back(rng, tmp_path):
    scaled = transforms.Linear(jnp.ones((2, 2)), kernels.Matern32(1.0))
    bias = npax.KernelBias([transforms.Subspace(0, kernels.ExpSquared(1.0)), scaled])
    npax.save(tmp_path / "bias.safetensors", bias)
    xq, xk = (jax.device_put(rng.normal(size=(n, 2)).astype(np.float32)) for n in (3, 4))
    assert np.array_equal(answer(npax.load(tmp_path / "bias.safetensors"), xq, xk), answer(bias, xq, xk))


@pytest.mark.parametrize("number", [np.int64(2), np.float32(0.5), np.bool_(True)])
def test_settings_may_be_numbers_of_numpy(number):
    (found,) = _describe(number, "setting", {}).values()
    assert found == number and json.loads(json.dumps(found)) == found


def test_cards_may_hold_numbers_of_numpy(tmp_path, saved):
    npax.save(tmp_path / "new.safetensors", npax.load(saved), {"nll": np.float32(0.5), "steps": np.int64(3)})
    assert load_card(tmp_path / "new.safetensors") == {"nll": 0.5, "steps": 3}
    with pytest.raises(TypeError, match="A description holds numbers, texts"):
        npax.save(tmp_path / "new.safetensors", npax.load(saved), {"nll": np.zeros(2)})


def test_saving_again_writes_the_same(saved, tmp_path):
    again = tmp_path / "again.safetensors"
    npax.save(again, npax.load(saved), load_card(saved))
    (arrays, about), (arrays_again, about_again) = unpack(saved), unpack(again)
    assert about == about_again and arrays.keys() == arrays_again.keys()
    assert all(arrays[name].tobytes() == arrays_again[name].tobytes() for name in arrays)


def test_the_card_comes_back_and_lies_beside_the_weights(saved):
    assert load_card(saved) == {"steps": 10, "nll": -0.46, "by": {"1d": 1}}
    beside = json.loads(saved.with_suffix(".json").read_text())
    assert beside["model"] == "TNPKR" and beside["steps"] == 10
    assert beside["parameters"] == count_parameters(npax.load(saved)) > 0


@pytest.mark.parametrize(
    "harm", [lambda c: c[: len(c) // 2], lambda c: b"", lambda c: c[:-3] + b"abc", lambda c: b"PK" + c]
)
def test_a_damaged_file_is_refused_by_name(harm, saved):
    saved.write_bytes(harm(saved.read_bytes()))
    with pytest.raises(DamagedFile, match=re.escape(str(saved))):
        npax.load(saved)


def test_a_safetensors_file_of_others_is_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    path.write_bytes(safetensors.numpy.save({"weight": jnp.ones(3).__array__()}))
    with pytest.raises(DamagedFile, match="not a file that npax wrote"):
        npax.load(path)
    path.write_bytes(pack({}, {"steps": 3}))
    with pytest.raises(DamagedFile, match="format None"):
        npax.load(path)


@pytest.mark.parametrize(
    "kind",
    [
        "os.system",
        "npax.models.tnp_kr.Unknown",
        "npax.nowhere.Bias",
        "npax.serialise.load",
        "tinygp.kernels.jnp",
        "eval",
    ],
)
def test_only_modules_of_npax_and_tinygp_are_built(kind, tmp_path):
    path = tmp_path / "crafted.safetensors"
    path.write_bytes(pack({}, {"format": 1, "structure": {"module": kind, "fields": {}}, "card": {}}))
    with pytest.raises(DamagedFile, match=f"asks for '{kind}'"):
        npax.load(path)


def test_other_fields_than_the_class_has_are_refused(saved):
    arrays, about = unpack(saved)
    del about["structure"]["fields"]["blocks"]
    saved.write_bytes(pack(arrays, about))
    with pytest.raises(DamagedFile, match="another version of it"):
        npax.load(saved)


def test_a_file_from_before_a_part_existed_gets_its_default(saved):
    arrays, about = unpack(saved)
    before = npax.load(saved)
    del about["structure"]["fields"]["head"]["fields"]["activation"]
    saved.write_bytes(pack(arrays, about))
    assert same(npax.load(saved), before)


def test_files_outlive_the_modules_of_the_classes_they_name(saved):
    """Public names are written, and a class is found where it has moved to."""
    arrays, about = unpack(saved)
    before, text = npax.load(saved), json.dumps(about)
    assert '"npax.layers.MLP"' in text and '"npax.models.TNPKR"' in text
    moved = text.replace("npax.layers.MLP", "npax.blocks.of_old.MLP").replace(
        "npax.models.TNPKR", "npax.models.x.TNPKR"
    )
    saved.write_bytes(pack(arrays, json.loads(moved)))
    assert same(npax.load(saved), before)


def test_names_that_do_not_exist_list_those_that_do(monkeypatch, saved):
    monkeypatch.setattr(sys.modules["npax.pretrained"], "_FOLDER", saved.parent)
    assert npax.pretrained() == ["model"]
    assert same(npax.load("model"), npax.load(saved))
    with pytest.raises(FileNotFoundError, match="'modell' and no pretrained model of that name; pretrained: model"):
        npax.load("modell")
    with pytest.raises(FileNotFoundError, match=r"missing\.safetensors"):
        npax.load(saved.parent / "missing.safetensors")


def test_a_name_that_is_nearly_one_is_told():
    with pytest.raises(FileNotFoundError, match="Did you mean 'gp-universal'"):
        npax.load("gp-univesal")


def test_only_models_are_saved_and_loaded(tmp_path):
    with pytest.raises(TypeError, match="`model` must be an instance of Module"):
        inspect.unwrap(npax.save)(tmp_path / "model.safetensors", np.ones(3))
    state = write_checkpoint(tmp_path, 3, {"weight": np.ones(2)}, {})
    with pytest.raises(DamagedFile, match="is a checkpoint of `fit`, not a model"):
        npax.load(state)


def test_the_suffix_is_checked(saved):
    with pytest.raises(ValueError, match=r"`path` must end in '\.safetensors', got '.*model\.pkl'"):
        npax.save(saved.with_suffix(".pkl"), npax.load(saved))


class Stranger(npax.bias.AbstractBias):
    slope: jax.Array
    inner: eqx.Module | None = None

    def __init__(self, slope, inner=None):
        self.slope, self.inner = jnp.asarray(slope), inner

    def __call__(self, xq, xk):
        return self.slope * jnp.sum(xq[:, None] - xk, axis=-1)[None]


def test_parts_of_strangers_come_back_to_those_who_name_their_classes(tmp_path):
    sizes = {"blocks": 1, "size": 16, "heads": 1, "head_size": 8, "hidden": 16}
    bias = Stranger(-2.0, eqx.nn.Linear(2, 3, key=jr.key(1)))
    model = untrained(lambda key: npax.TNPKR(1, 1, bias=bias, **sizes, key=key))
    path = tmp_path / "stranger.safetensors"
    npax.save(path, model)
    assert same(npax.load(path, [Stranger]), model)
    with pytest.raises(DamagedFile, match=r"asks for '.*Stranger', not part of .* `npax\.load\(path, \[Stranger\]\)`"):
        npax.load(path)
    for wrong in (Stranger, [bias], ["Stranger"]):
        with pytest.raises(TypeError, match="`classes` must list classes of Equinox modules"):
            inspect.unwrap(npax.load)(path, wrong)


@pytest.mark.parametrize("activation", [jax.nn.relu, jax.nn.gelu, jnp.tanh])
def test_networks_of_equinox_come_back_with_their_activations(activation, tmp_path):
    model = Stranger(1.0, eqx.nn.MLP(2, 3, 4, 1, activation=activation, key=jr.key(0)))
    npax.save(tmp_path / "m.safetensors", model)
    loaded = npax.load(tmp_path / "m.safetensors", [Stranger])
    assert same(loaded, model) and loaded.inner.activation is model.inner.activation


def test_classes_of_one_name_are_told_apart_by_where_they_are(tmp_path):
    namesake = type("Stranger", (Stranger,), {"__module__": "elsewhere"})
    model = Stranger(1.0, namesake(2.0))
    path = tmp_path / "m.safetensors"
    npax.save(path, model)
    for classes in ([Stranger, namesake], [namesake, Stranger]):
        found = npax.load(path, classes)
        assert type(found) is Stranger and type(found.inner) is namesake
    for one in (Stranger, namesake):
        with pytest.raises(DamagedFile, match=r"asks for '.*Stranger', not part of"):
            npax.load(path, [one])
    other = type("Stranger", (Stranger,), {"__module__": "a third place"})
    with pytest.raises(ValueError, match=r"has several called Stranger, and none is 'elsewhere\.Stranger'"):
        npax.load(path, [other, type("Stranger", (Stranger,), {"__module__": "a fourth"})])
    assert type(npax.load(path, [Stranger, other]).inner) is other  # moved to another file since, say


def test_new_parts_of_classes_of_ones_own_get_their_defaults(tmp_path):
    def version(source):
        space = {"eqx": eqx, "list": list, "__name__": "study"}
        exec(f"class Grown(eqx.Module):\n    {source}", space)
        return space["Grown"]

    npax.save(tmp_path / "m.safetensors", version("w: int")(2))
    found = npax.load(
        tmp_path / "m.safetensors", [version("w: int; more: list = eqx.field(default_factory=lambda: [1])")]
    )
    assert found.w == 2 and found.more == [1]
    with pytest.raises(DamagedFile, match=r"of another version of it: its parts are \['w'\], the class's \['v'\]"):
        npax.load(tmp_path / "m.safetensors", [version("v: int")])


def test_functions_cannot_be_saved(tmp_path):
    with pytest.raises(TypeError, match=r"Cannot save `inner\.fn`, a .*tree_serialise"):
        npax.save(tmp_path / "m.safetensors", Stranger(1.0, eqx.nn.Lambda(lambda x: x)))
    with pytest.raises(TypeError, match=r"Cannot save `inner`, a .*tree_serialise"):
        npax.save(tmp_path / "m.safetensors", Stranger(1.0, jr.key(0)))
    assert not (tmp_path / "m.safetensors").exists()


def test_numbers_and_nothing_are_no_paths():
    for wrong in (None, 3):
        with pytest.raises(TypeError, match="`path` must be the name of a pretrained model or the path of a file; got"):
            inspect.unwrap(sys.modules["npax.pretrained"].find)(wrong)


@pytest.mark.parametrize(
    "about",
    [
        {"format": 1},
        {"format": 1, "structure": {"module": "npax.models.cnp.CNP", "fields": 3}},
        {"format": 1, "structure": {"array": "weights"}},
        {"format": 1, "structure": {"module": 3, "fields": {}}},
        {"format": 1, "structure": {"value": "hi"}},
        {"format": 1, "structure": {"tuple": 3}},
    ],
)
def test_descriptions_of_nothing_are_refused(about, tmp_path):
    (tmp_path / "m.safetensors").write_bytes(pack({}, about))
    with pytest.raises(DamagedFile, match=r"describes no model|Cannot read a part"):
        npax.load(tmp_path / "m.safetensors")
    (tmp_path / "m.safetensors").write_bytes(inspect.unwrap(pack)({}, [about]))
    with pytest.raises(DamagedFile, match="not a file that npax wrote"):
        load_card(tmp_path / "m.safetensors")


def test_weights_that_lose_digits_are_told(tmp_path):
    with jax.enable_x64():
        model = untrained(lambda key: npax.CNP(1, 1, encoder=(4,), size=4, decoder=(4,), key=key))
        model = jax.tree.map(lambda a: a.astype(jnp.float64) if eqx.is_inexact_array(a) else a, model)
        npax.save(tmp_path / "m.safetensors", model)
        assert same(npax.load(tmp_path / "m.safetensors"), model)
    with pytest.warns(UserWarning, match="Weights of float64 become float32"):
        npax.load(tmp_path / "m.safetensors")


def test_nothing_is_pickled(saved):
    for file in SOURCE.rglob("*.py"):
        assert not re.search(
            r"\bimport (pickle|cloudpickle|dill|joblib|marshal)\b|allow_pickle=True", file.read_text()
        ), file
    with pytest.raises(ValueError, match="opcode"):
        list(pickletools.genops(saved.read_bytes()))


def test_a_shipped_model_is_read_once(monkeypatch, saved):
    own = npax.load(saved)
    assert npax.load(saved) is not own  # files of others may change
    monkeypatch.setattr(sys.modules["npax.pretrained"], "_FOLDER", saved.parent)
    assert npax.load("model") is npax.load("model") is not own


def test_the_home_folder_may_be_written_as_a_tilde(monkeypatch, tmp_path, saved):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    npax.save("~/there/model.safetensors", npax.load(saved))
    assert same(npax.load("~/there/model.safetensors"), npax.load(tmp_path / "there" / "model.safetensors"))


def test_presets_of_training_are_there_when_asked_for():
    program = "import npax; assert callable(npax.training.presets.gp_universal); import npax.bayesopt"
    assert subprocess.run([sys.executable, "-W", "error", "-c", program]).returncode == 0
    with pytest.raises(AttributeError, match=r"module 'npax.training' has no attribute 'preset'"):
        npax.training.preset  # noqa: B018
