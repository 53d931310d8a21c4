import tracemalloc

import pytest

import npax
from npax.progress import Progress


def test_a_bar_shows_what_is_done(capsys):
    with Progress("tiles", 4, shown=True) as progress:
        progress.advance(1)
        progress.advance(3)
    out = capsys.readouterr().err
    assert "tiles" in out
    assert "100%" in out


def test_a_log_has_lines_now_and_then(capsys, monkeypatch):
    """At 10, 30, 70, ... of 1,000 seconds; the last line is the bar's."""
    clock = iter(range(0, 1001))
    monkeypatch.setattr(npax.progress.time, "monotonic", lambda: next(clock))
    with Progress("tiles", 1000, shown=True) as progress:
        for second in range(1, 1001):
            progress.advance(1, note=f"second {second}")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "tiles 1% second 10"
    assert [int(line.split()[-1]) for line in lines[:6]] == [10, 30, 70, 150, 310, 630]
    assert "100%" in lines[-1] and len(lines) == 7


def test_a_bar_that_is_not_shown_prints_and_builds_nothing(capsys):
    tracemalloc.start()
    with Progress("tiles", 4, shown=False) as progress:
        progress.advance(4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert capsys.readouterr().err == ""
    assert peak < 10_000  # a bar of rich's takes several times that


@pytest.mark.parametrize("shown", [True, False])
def test_errors_pass_through(shown):
    with pytest.raises(KeyError), Progress("tiles", 1, shown=shown):
        raise KeyError("inside")
