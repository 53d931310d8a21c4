import inspect
import itertools
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import KDTree
from untrained import hearing

from npax.inference import Exact, LatLon, Planar, Prediction, Tiled, cells, tile
from npax.inference.blend import Blend
from npax.inference.cells import Cell


def on_the_plane(rng, n):
    return rng.uniform(0, 1, (n, 2)) * [10, 40]


def on_the_sphere(rng, n):
    return np.stack([rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))], axis=1)


def wave(x):
    return np.stack([np.sin(x[:, 0]) + np.cos(x[:, 1] / 9), x[:, 0] / 10], axis=1) * 4 + 20


@pytest.mark.parametrize(
    ("system", "places"), [(Planar(), on_the_plane), (Planar(isotropic=True), on_the_plane), (LatLon(), on_the_sphere)]
)
def test_tiles_that_hold_everything_equal_the_exact_answer(small, rng, system, places):
    x, xt = places(rng, 200), places(rng, 90)
    tiled = Tiled(small, x, wave(x), system, size=200)
    assert len(tiled.cells(system.positions(xt))) > 1
    for a, b in zip(Exact(small, x, wave(x), system)(xt), tiled(xt), strict=True):
        assert np.allclose(a, b, atol=1e-4, rtol=1e-4)
    fewer = Tiled(small, x, wave(x), system, size=40)(xt)
    assert not np.allclose(fewer.mean, tiled(xt).mean, atol=1e-4)


def test_the_unit_of_a_column_does_not_matter_where_a_cell_sees_one_of_its_values(small, rng):
    """Two levels far apart: no cell sees both."""
    x = np.column_stack([on_the_plane(rng, 600), np.repeat([0.0, 1.0], 300)])
    xt = x[:40] + np.array([0.0, 0.0, 0.1])
    metres, kilometres = np.array([1.0, 1.0, 1000.0]), np.ones(3)
    found = [Tiled(small, x * unit, wave(x), size=16)(xt * unit) for unit in (metres, kilometres)]
    for a, b in zip(*found, strict=True):
        assert np.allclose(a, b, rtol=1e-3, atol=1e-3)
    assert np.abs(found[0].mean - Tiled(small, x, wave(x), size=16)(x[:40]).mean).max() > 1e-3


def test_a_target_does_not_depend_on_the_others(gp, rng):
    x, xt = on_the_plane(rng, 300), on_the_plane(rng, 150)
    tiled = Tiled(gp, x, wave(x), size=48)
    whole = tiled(xt)
    for part in (slice(0, 150, 7), slice(20, 21)):
        for a, b in zip(whole, tiled(xt[part]), strict=True):
            assert np.allclose(a[part], b, atol=1e-4)


def on_the_sphere_for_a_while(rng, n):
    return np.column_stack([on_the_sphere(rng, n), rng.uniform(size=n)])


@pytest.mark.parametrize(
    ("system", "places"),
    [
        (Planar(), on_the_plane),
        (Planar(isotropic=True), on_the_plane),
        (LatLon(), on_the_sphere),
        (LatLon(), on_the_sphere_for_a_while),
    ],
)
def test_a_part_answers_as_the_whole_and_is_small(gp, rng, system, places):
    x, xt = places(rng, 3000), places(rng, 400)
    tiled = Tiled(gp, x, wave(x), system, size=32)
    distance = np.linalg.norm(tiled.frame(system.positions(xt)) - tiled.frame(system.positions(xt))[0], axis=1)
    some = xt[np.argsort(distance)[:9]]
    part = pickle.loads(pickle.dumps(tiled.part(some).of(None))).of(gp)
    for asked in (some, some[:0]):
        for a, b in zip(tiled(asked), part(asked), strict=True):
            assert np.allclose(a, b, rtol=1e-6, atol=1e-6)
    assert len(pickle.dumps(tiled.part(some[:1]).of(None))) < len(pickle.dumps(tiled.of(None))) / 20


def along_a_line(rng, n):
    return rng.uniform(size=(n, 1)) * [1.0, 2.0, -1.0]


@pytest.mark.parametrize("places", [on_the_plane, along_a_line])
def test_cells_reach_no_farther_than_they_see(gp, rng, places, monkeypatch):
    """Beside a line there is room for large cells, which see but a part of the line that they would answer for."""

    def beside(neighbours, largest, box, context):
        return len(context) <= largest and box.half.max() <= neighbours.distance(box.middle, largest)

    def farther():
        tiled = Tiled(gp, x, x[:, :1], size=32)
        near = tiled.neighbours.near
        points, found = tiled._clipped(x), tiled.cells(x)
        reached = [np.linalg.norm(points[cell.targets] - cell.middle, axis=1).max() for cell in found]
        seen = [tiled.neighbours.distance(cell.middle, near) for cell in found]
        return np.max(np.divide(reached, seen))

    x = places(rng, 600)
    assert farther() <= 1 + 1e-9
    if places is along_a_line:
        monkeypatch.setattr(tile, "small", beside)
        assert farther() > 1.1


@pytest.mark.parametrize("x", [np.full((40, 2), 7.0), np.arange(40.0)[:, None], np.ones((1, 1))])
def test_parts_of_odd_designs(gp, x):
    tiled = Tiled(gp, x, np.arange(len(x))[:, None] / 9, size=16)
    for a, b in zip(tiled(x + 0.25), tiled.part(x + 0.25)(x + 0.25), strict=True):
        assert np.allclose(a, b, atol=1e-6)


def test_cells_are_small_near_the_data_and_no_larger_than_the_gap_they_are_in(gp, rng):
    """Were a cell of a gap as large as the gap, its targets near the edge would not be answered by what is near."""
    x = on_the_plane(rng, 4000)
    low, high = x.min(axis=0), x.max(axis=0)
    u = 4 * (x - low) / (high - low) - 2
    x = x[(np.abs(u) > 1).any(axis=1)]
    tiled = Tiled(gp, x, wave(x), size=64)
    for u in (rng.uniform(-1, 1, (500, 2)), np.stack([rng.uniform(-2, 2, 500), rng.uniform(2, 6, 500)], axis=1)):
        found = tiled.cells((u + 2) / 4 * (high - low) + low)
        distance, _ = KDTree(tiled.points).query([cell.middle for cell in found], 4)
        half = np.array([cell.half.max() for cell in found])
        assert (half <= distance[:, -1] + 1e-9).all()
        assert 5 < len(found) < 500 and half.max() > 5 * half.min()


def test_no_seams(gp, rng, monkeypatch):
    """Along a line through many cells the tiled mean moves by small steps; without overlap it jumps."""
    x = rng.uniform(0, 10, (400, 2))
    y = rng.normal(size=(400, 1))  # rough data: the cells disagree
    line = np.stack([np.linspace(0.5, 9.5, 3000), np.full(3000, 4.3)], axis=1)

    def largest_step():
        return np.abs(np.diff(Tiled(gp, x, y, size=48)(line).mean[:, 0])).max()

    smooth = largest_step()
    monkeypatch.setattr(cells, "OVERLAP", 1e-5)
    assert largest_step() > 5 * smooth


def test_shares_of_cells_end_without_bends():
    """All inside, half on the face, nothing beyond the overlap, and no jump of the slope anywhere."""
    at = np.linspace(-2, 2, 4001)
    share = cells.weight(np.zeros(1), np.ones(1), at[:, None])
    inner, outer = 1 - 2 * cells.OVERLAP, 1 + 2 * cells.OVERLAP
    assert np.allclose(share[np.abs(at) < inner], 1) and np.allclose(share[np.abs(at) > outer], 0)
    assert np.allclose(np.interp([-1, 1], at, share), 0.5)
    assert np.abs(np.diff(share, 2)).max() < 10 / (outer - inner) ** 2 * (at[1] - at[0]) ** 2


def test_close_to_the_exact_gp_with_a_sixth_of_the_context(gp, rng):
    """A short length scale in the whole becomes a longer one in a tile, so this GP's own scale is set per tile."""
    x = rng.uniform(-2, 2, (600, 2))
    f = np.sin(3 * x[:, :1]) * np.cos(3 * x[:, 1:])
    xt = rng.uniform(-2, 2, (200, 2))
    truth = np.sin(3 * xt[:, :1]) * np.cos(3 * xt[:, 1:])
    predicted = Tiled(gp, x, f, size=100)(xt)
    assert np.sqrt(np.mean((predicted.mean - truth) ** 2)) < 0.05
    assert (predicted.variance >= predicted.function_variance).all()


@pytest.mark.parametrize("level", [0.0, 1e9])
def test_blending_is_a_mixture(level):
    """Also far from zero, and whatever answers that are not present say."""
    blend, targets = Blend(1, 1), np.zeros(2, int)
    for weight, mean, variance in ((0.25, 1.0, 2.0), (0.75, 3.0, 1.0)):
        answers = Prediction(*(np.array([[a], [7.0]]) for a in (level + mean, variance**0.5, 0.5**0.5)))
        blend.add(targets, np.full(2, weight), answers, np.array([True, False]))
    mean, variance, function_variance = blend.moments()[:, 0, 0]
    assert mean == level + 2.5
    assert variance == pytest.approx(1.25 + 0.75) and function_variance == pytest.approx(0.5 + 0.75)


def test_targets_in_any_order_and_in_several_blocks(gp, rng, monkeypatch):
    """Each cell is conditioned about once: neighbours are answered together."""
    x, xt = on_the_plane(rng, 600), on_the_plane(rng, 300)
    tiled = Tiled(gp, x, wave(x), size=32)
    whole = tiled(xt)
    monkeypatch.setattr(tile, "BLOCK", 40)
    for a, b in zip(whole, tiled(xt), strict=True):
        assert np.allclose(a, b, atol=1e-4)
    monkeypatch.setattr(tile, "BLOCK", 1000)
    positions = on_the_plane(rng, 4000)
    blocks = list(tiled._blocks(positions))
    assert np.array_equal(np.sort(np.concatenate(blocks)), np.arange(4000))
    conditioned = sum(len(tiled.cells(positions[block])) for block in blocks)
    assert conditioned < 1.3 * len(tiled.cells(positions))
    assert sum(len(tiled.cells(positions[start::4])) for start in range(4)) > 2 * conditioned


@pytest.mark.parametrize("context", ["coincident", "line", "two clusters", "one point"])
def test_odd_designs_and_far_targets(gp, rng, context):
    x = {
        "coincident": np.full((100, 2), 7.0),
        "line": np.stack([np.linspace(0, 1, 100), np.full(100, 3.0)], axis=1),
        "two clusters": np.concatenate([rng.normal(0, 1e-6, (150, 2)), rng.normal(9, 1, (150, 2))]),
        "one point": np.ones((1, 2)),
    }[context]
    predicted = Tiled(gp, x, rng.normal(size=(len(x), 1)), size=32)(np.array([[0.0, 0.0], [7.0, 7.0], [1e4, -1e4]]))
    assert all(np.isfinite(a).all() for a in predicted)


def test_widths_trade_padding_for_calls():
    assert tile._best_width([10] * 50) == 16
    assert tile._best_width([50] * 50) == 64
    assert tile._best_width([5000] * 50) == 256


def test_records_of_stations_are_interpolated_between_them(gp, rng):
    """Tiles that saw one station only, however often, would know nothing of the course between two."""
    stations = np.arange(40.0)
    x = np.repeat(stations, 200)[:, None]
    wave = lambda x: np.sin(x / 2)  # noqa: E731
    between = stations[5:34, None] + 0.5
    predicted = Tiled(gp, x, wave(x) + 0.1 * rng.normal(size=x.shape))(between)
    assert np.sqrt(np.mean((predicted.mean - wave(between)) ** 2)) < 0.1


def test_the_order_of_the_observations_does_not_matter(small, rng):
    """Of many at one place some are seen, and in a gap some of those around it: the same ones, in any order."""
    angle, away = rng.uniform(0, 2 * np.pi, 600), rng.uniform(1, 3, 600)
    around_a_gap = np.stack([away * np.cos(angle), away * np.sin(angle)], axis=1)
    order, xt = rng.permutation(600), rng.uniform(-1, 1, (30, 2))
    for x in (around_a_gap, around_a_gap[np.arange(600) % 20]):
        y = wave(x) + rng.normal(size=(600, 2))
        for a, b in zip(Tiled(small, x, y, size=32)(xt), Tiled(small, x[order], y[order], size=32)(xt), strict=True):
            assert np.array_equal(a, b)


def test_the_order_of_equal_observations_of_other_errors_does_not_matter(rng):
    x, y = rng.normal(size=(10, 2))[np.arange(300) % 10], rng.integers(0, 2, (300, 1)).astype(float)
    error, order, xt = rng.uniform(0.1, 1, (300, 1)), rng.permutation(300), rng.normal(size=(20, 2))
    model = hearing(2)
    found = Tiled(model, x, y, error=error, size=16)(xt)
    again = Tiled(model, x[order], y[order], error=error[order], size=16)(xt)
    assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))


@pytest.mark.parametrize("counts", [[30_000, 20_000, 8_000, 4_000, 3_000], [700, 1], [50] * 100, [1], [90_000]])
def test_cells_of_many_targets_come_in_pieces_where_that_is_less_work(counts):
    starts = np.cumsum([0, *counts])
    whole = [Cell(np.zeros(2), np.ones(2), np.arange(a, b)) for a, b in itertools.pairwise(starts)]

    def work(cells):
        sizes = sorted((len(cell.targets) for cell in cells), reverse=True)
        return sum(8 * (size + 128) for size in sizes[::8])

    pieces = list(tile._evened(whole, 8, 128))
    np.testing.assert_array_equal(np.concatenate([piece.targets for piece in pieces]), np.arange(starts[-1]))
    assert work(pieces) <= work(whole)
    assert work(pieces) < 1.5 * sum(counts) + 9 * 8 * 300


def test_refuses_empty_cells(gp):
    with pytest.raises(ValueError, match="`size` must be a whole number, at least 1"):
        Tiled(gp, np.zeros((3, 1)), np.zeros((3, 1)), size=0)


def test_threads_share_the_boxes(gp, rng):
    """A thread must not find that another has just halved its box."""
    x, xt = on_the_plane(rng, 500), on_the_plane(rng, 20)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(6):
            tiled = Tiled(gp, x, wave(x), size=16)
            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(lambda _, tiled=tiled: len(tiled.cells(xt)), range(8)))
            assert len(set(found)) == 1
    finally:
        sys.setswitchinterval(interval)


def test_what_tiles_cannot_answer(gp, rng):
    x = on_the_plane(rng, 30)
    with pytest.raises(ValueError, match="`x` has no rows: tiles need observations"):
        Tiled(gp, x[:0], wave(x)[:0])
    with pytest.raises(ValueError, match="`x` must be finite, got NaN or infinity in row 1"):
        Tiled(gp, x, wave(x))(np.array([[1.0, 2.0], [np.nan, 0.0]]))


def test_cells_hold_no_more_than_they_may_unless_all_coincide():
    """Whatever is seen around them, and where a column is constant."""
    around = SimpleNamespace(near=4, distance=lambda middle, number: np.inf)

    def small(x, largest):
        return inspect.unwrap(cells.small)(around, largest, cells.Box(x.min(axis=0), x.max(axis=0), x), x)

    line = np.column_stack([np.arange(17.0), np.full(17, 7.0)])
    assert small(line, 17) and not small(line, 16) and small(line * [0, 1], 1)


def test_rounding_errors_do_not_decide_which_side_is_halved():
    high = np.array([1.0, 1 + 1e-12])
    half, _ = cells.Box(-high, high, np.zeros((1, 2))).halved(np.zeros((1, 2)))
    assert half.half[0] == 0.5
