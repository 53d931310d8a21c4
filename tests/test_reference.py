"""The reference that `make docs` writes has all public names, and no warnings."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from sphinx.util.inventory import InventoryFile

import npax

ROOT = Path(__file__).parents[1]
PACKAGES = [
    path.stem for path in (ROOT / "docs" / "reference").glob("*.rst") if path.stem not in ("index", "models.presets")
]


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """The names that the reference describes."""
    built = tmp_path_factory.mktemp("reference")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", ROOT / "docs" / "reference", built]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    content = InventoryFile.loads((built / "objects.inv").read_bytes(), uri="")
    return {name for kind, names in content.data.items() if kind.startswith("py:") for name in names}


def public(module):
    """Classes and functions that a module offers."""
    for name in dir(module):
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "").startswith("npax"):
            yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize("package", PACKAGES)
def test_all_that_a_package_offers_is_described(package, described):
    module = importlib.import_module(f"npax.{package}")
    own = [
        name
        for name, value in public(module)
        if module.__file__.endswith("__init__.py") or value.__module__ == module.__name__
    ]
    assert own and not [name for name in own if name not in described]


def test_all_top_names_are_described_somewhere(described):
    last = {name.rpartition(".")[2] for name in described}
    assert not [name for name, _ in public(npax) if name.rpartition(".")[2] not in last]
