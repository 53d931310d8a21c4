import tracemalloc

import pytest

from npax.progress import Progress


def test_a_bar_shows_what_is_done(capsys):
    with Progress("tiles", 4, shown=True) as progress:
        progress.advance(1)
        progress.advance(3)
    out = capsys.readouterr().err
    assert "tiles" in out
    assert "100%" in out


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
