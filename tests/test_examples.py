"""Examples run, here for a few steps."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_trains_scores_and_draws(example, tmp_path):
    picture = tmp_path / "picture.png"
    command = [sys.executable, "-W", "error", example, "--steps", "2", "-o", picture]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert picture.stat().st_size > 10_000 and "NLL" in run.stdout
