"""Benchmarks are run by hand, seldom: what they import must be there all the same."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted({*ROOT.glob("benchmarks/*.py"), *ROOT.glob("docs/*.py")} - {ROOT / "benchmarks" / "_side_dl4bi.py"})


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_find_what_they_import(script, monkeypatch):
    monkeypatch.syspath_prepend(script.parent)
    assert "__doc__" in runpy.run_path(str(script), run_name="imported")


def test_tables_of_the_documentation_are_those_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from figures import PAGE, README, with_rows, with_tables

    page = PAGE.read_text()
    assert with_tables(page) == page, "python benchmarks/figures.py writes them anew"
    assert with_tables(page.replace("Bayes floor", "ceiling", 1)) == page, "the control"
    readme = README.read_text()
    assert with_rows(readme) == readme, "python benchmarks/figures.py writes them anew"
    assert with_rows(readme.replace("fitted to each", "fitted to all")) == readme, "the control"
