"""Gaps cut into data."""

import numpy as np
import pytest

from npax.inference import LatLon, Planar
from npax.training import MovedGaps, RoundGaps


def test_round_gaps_hide_the_share_asked_for_in_holes_of_many_sizes(rng):
    positions = rng.normal(size=(3000, 2))
    hidden = RoundGaps(share=0.2, largest=50).draw(rng, positions, Planar())
    assert 0.2 <= hidden.mean() < 0.2 + 50 / 3000
    for share in (0.0, 1.0):
        with pytest.raises(ValueError, match="`share` must lie between"):
            RoundGaps(share=share)


def test_round_gaps_hide_places_with_all_their_records(rng):
    """A record that stays visible would tell those of its place; and there may be more of them than a hole is large."""
    stations = rng.normal(size=(40, 2))
    at = np.repeat(np.arange(40), rng.integers(1, 400, 40))
    hidden = RoundGaps(share=0.2, largest=8).draw(rng, stations[at], Planar())
    share = np.array([hidden[at == station].mean() for station in range(40)])
    assert set(share) == {0.0, 1.0} and 0.2 <= share.mean() < 0.2 + 8 / 40


def test_moved_gaps_keep_their_shape_on_a_grid(rng):
    """On a grid moved by whole cells, what is hidden is the gap itself, shifted."""
    cells = np.stack(np.meshgrid(np.arange(40.0), np.arange(30.0)), axis=-1).reshape(-1, 2)
    gap = (np.abs(cells - [8, 9]) <= [3, 1]).all(axis=1) | (np.abs(cells - [12, 10]) <= [1, 3]).all(axis=1)
    sizes = set()
    for _ in range(20):
        hidden = MovedGaps(cells[gap]).draw(rng, cells, Planar())
        assert 0 < hidden.sum() <= gap.sum()
        if hidden.sum() == gap.sum():
            shift = cells[hidden] - cells[gap]
            assert (shift == shift[0]).all()
        sizes.add(hidden.sum())
    assert gap.sum() in sizes


def test_places_of_moved_gaps_that_are_listed_twice_are_one(rng):
    x, at = rng.uniform(0, 12, (400, 2)), np.stack(np.meshgrid(*[np.arange(9.0)] * 2), axis=-1).reshape(-1, 2)
    once, twice = (MovedGaps(a).draw(np.random.default_rng(0), x, Planar()).sum() for a in (at, at.repeat(2, axis=0)))
    assert min(once, twice) > 10


@pytest.mark.parametrize("at", [np.zeros((0, 2)), np.zeros(3)])
def test_gaps_without_places_are_refused(at):
    with pytest.raises(ValueError, match="`at` must have the shape"):
        MovedGaps(at)


@pytest.mark.parametrize(("system", "d"), [(Planar(), 3), (LatLon(), 2), (LatLon(), 3)])
def test_moving_keeps_distances_and_arrives(system, d, rng):
    positions = system.positions(rng.uniform(-80, 80, (50, d)))
    start, end = positions[3], positions[11]
    moved = system.moved(positions, start, end)
    assert np.allclose(moved[3], end)
    assert np.allclose(
        np.linalg.norm(moved[:, None] - moved, axis=-1), np.linalg.norm(positions[:, None] - positions, axis=-1)
    )


@pytest.mark.parametrize("gaps", [RoundGaps(), MovedGaps(np.array([[0.5, 20.0], [0.6, 30.0], [0.5, 30.0]]))])
def test_the_unit_of_a_coordinate_does_not_matter(gaps):
    """Degrees beside days: holes are as round in seconds."""
    positions = np.random.default_rng(1).uniform(size=(400, 2)) * [1, 90]
    unit = np.array([1.0, 2.0**16])
    other = MovedGaps(gaps.at * unit) if isinstance(gaps, MovedGaps) else gaps
    hidden = gaps.draw(np.random.default_rng(0), positions, Planar())
    assert np.array_equal(hidden, other.draw(np.random.default_rng(0), positions * unit, Planar()))
    round_ = RoundGaps(share=0.1).draw(np.random.default_rng(0), positions * unit, Planar(isotropic=True))
    assert not np.array_equal(RoundGaps(share=0.1).draw(np.random.default_rng(0), positions, Planar()), round_)
