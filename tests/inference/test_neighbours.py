import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial import KDTree

from npax.inference.neighbours import LEVELS, REPEATS, Neighbours
from npax.inference.spread import Spread


def test_near_ones_are_the_nearest_and_far_ones_lie_beyond(rng):
    points, place = rng.uniform(-1, 1, (20_000, 2)), np.array([0.1, -0.3])
    seen = Neighbours(points, 128)(place)
    near = 128 - sum(int(share * 128) for _, share in LEVELS)
    order = np.argsort(np.linalg.norm(points - place, axis=1))
    assert set(order[:near]) <= set(seen)
    distance = np.sort(np.linalg.norm(points[seen] - place, axis=1))
    assert distance[-1] > 3 * distance[near - 1]


@pytest.mark.parametrize("n", [2_000, 100_000])
def test_what_lies_around_a_gap_is_seen_on_all_sides(rng, n):
    points = rng.uniform(-1, 1, (n, 2))
    points = points[np.linalg.norm(points, axis=1) > 0.4]
    place = np.array([0.15, 0.08])
    nearest = np.argsort(np.linalg.norm(points - place, axis=1))[:128]
    by = {"seen": Neighbours(points, 128)(place), "nearest": nearest}
    sides = {name: np.bincount(_quadrant(points[index] - place), minlength=4) for name, index in by.items()}
    assert sides["seen"].min() >= max(128 // 20, 3 * sides["nearest"].min())
    assert set(nearest[:32]) <= set(by["seen"])
    assert np.linalg.norm(points[by["seen"]] - place, axis=1).max() < 4.1 * np.linalg.norm(points[nearest[0]] - place)


@given(n=st.integers(2, 600), size=st.integers(1, 40), repeats=st.integers(1, 3), seed=st.integers(0, 5))
def test_far_from_all_observations_as_many_are_seen_as_asked_and_none_twice(n, size, repeats, seed):
    points = np.repeat(np.random.default_rng(seed).normal(size=(n, 2)), repeats, axis=0)
    seen = Neighbours(points, size)(np.array([[100.0, 0.0], [0.0, -1e6]]))
    assert seen.shape == (2, min(len(points), size)) and (np.diff(seen, axis=-1) > 0).all()


def test_between_clusters_each_of_them_is_seen(rng):
    middles = np.array([[1, 1, 1], [-1, 1, 0], [1, -1, 0.5], [-1, -1, 1], [0, 0, -1]], float)
    points = np.repeat(middles, 400, axis=0) + 0.03 * rng.normal(size=(2000, 3))
    seen = Neighbours(points, 128)(np.array([0.3, 0.2, 0.1]))
    assert np.bincount(seen // 400, minlength=5).min() >= 128 // 20


def _quadrant(away):
    return (away > 0) @ [1, 2]


@given(n=st.integers(1, 3000), size=st.integers(1, 40), seed=st.integers(0, 5))
def test_as_many_as_asked_and_none_twice(n, size, seed):
    rng = np.random.default_rng(seed)
    points, places = rng.normal(size=(n, 2)), rng.normal(size=(2, 3, 2))
    seen = Neighbours(points, size)(places)
    assert seen.shape == (2, 3, min(n, size))
    assert (np.diff(seen, axis=-1) > 0).all()


@pytest.mark.parametrize("n", [1, 7, 40])
def test_few_observations_are_seen_all(rng, n):
    seen = Neighbours(rng.normal(size=(n, 3)), 40)(np.zeros((2, 3)))
    assert (seen == np.arange(n)).all()


def test_coinciding_observations_are_seen_once_each(rng):
    """Many at one place: the level of one in eight has as near ones as those that are seen already."""
    points = np.concatenate([np.zeros((900, 2)), rng.uniform(1, 2, (600, 2))])
    seen = Neighbours(points, 128)(np.array([[0.0, 0.0], [1.5, 1.5]]))
    assert (np.diff(seen, axis=-1) > 0).all()


def test_of_many_repeats_at_a_place_a_few_are_seen_and_other_places_too(rng):
    """Records of stations: 365 days at each of 60 places."""
    stations = rng.uniform(-1, 1, (60, 2))
    points = np.repeat(stations, 365, axis=0)
    seen = Neighbours(points, 128)(stations)
    for places, here in zip(points[seen], stations, strict=True):
        _, counts = np.unique(places, axis=0, return_counts=True)
        assert counts.max() <= 128 // REPEATS and len(counts) >= REPEATS
        order = np.argsort(np.linalg.norm(stations - here, axis=1))
        near = (128 - sum(int(share * 128) for _, share in LEVELS)) // (128 // REPEATS)
        assert all((places == stations[i]).all(axis=1).any() for i in order[:near])
    assert len(np.unique(seen % 365)) > 120, "of any day"


@given(counts=st.lists(st.integers(1, 400), min_size=1, max_size=8), size=st.integers(1, 100))
def test_as_many_are_seen_where_there_are_few_places(counts, size):
    points = np.repeat(np.arange(len(counts), dtype=float)[:, None], counts, axis=0)
    neighbours = Neighbours(points, size)
    seen = neighbours(np.array([[0.0], [3.5]]))
    assert seen.shape == (2, min(size, len(points))) and (np.diff(seen, axis=-1) > 0).all()
    kept = np.unique(points[neighbours.counted], return_counts=True)[1]
    few = kept.max()
    assert (kept == np.minimum(counts, few)).all(), "the most of each place, or all of it"


def test_a_place_with_many_observations_does_not_hide_the_few_others(rng):
    """A station's record of years, and ten places seen once: there is room for all of these."""
    points = np.concatenate([np.zeros((1000, 2)), rng.uniform(1, 2, (10, 2))])
    seen = Neighbours(points, 512)(np.zeros(2))
    assert len(seen) == 512 and set(range(1000, 1010)) <= set(seen)


def test_the_order_of_the_observations_does_not_matter(rng):
    points, places, order = rng.normal(size=(3_000, 3)), rng.normal(size=(50, 3)), rng.permutation(3_000)
    seen, again = Neighbours(points, 64)(places), order[Neighbours(points[order], 64)(places)]
    assert np.array_equal(seen, np.sort(again, axis=1))


def test_in_a_gap_neither_does_it(rng):
    angle, away = rng.uniform(0, 2 * np.pi, 3_000), rng.uniform(1, 3, 3_000)
    points, order = np.stack([away * np.cos(angle), away * np.sin(angle)], axis=1), rng.permutation(3_000)
    places = rng.uniform(-0.3, 0.3, (20, 2))
    seen, again = Spread(KDTree(points), 64)(places), order[Spread(KDTree(points[order]), 64)(places)]
    assert np.array_equal(np.sort(seen, axis=1), np.sort(again, axis=1))


def test_of_many_columns_the_nearest_are_seen_though_even_they_are_far_away(rng):
    points, places = rng.uniform(size=(2000, 6)), rng.uniform(0.2, 0.8, (20, 6))
    neighbours = Neighbours(points, 32)
    nearest = KDTree(points).query(places, neighbours.near)[1]
    assert all(np.isin(near, seen).all() for near, seen in zip(nearest, neighbours(places), strict=True))
