from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import pdist

from npax.inference import Exact, LatLon, Planar, Standardiser, Tiled, coordinates
from npax.inference.frames import filling, half_range, mapped
from npax.inference.normalise import east_north_up


@given(st.integers(2, 40), st.integers(1, 3), st.floats(-1e9, 1e9), st.floats(1e-6, 1e6), st.integers(0, 100))
@settings(deadline=None, max_examples=30)
def test_planar_context_spans_the_trained_range(n, d, shift, scale, seed):
    x = np.random.default_rng(seed).uniform(0, 1, (n, d)) * scale + shift
    frame = Planar().frame(x)
    u = frame(x) @ frame.rotation.T  # what does not vary comes last in it
    varied = np.ptp(x, axis=0) / 2 > np.finfo(float).eps * np.abs(x).max(axis=0)  # by more than rounding errors
    assert np.allclose(u.min(axis=0)[varied], -2, atol=1e-6) and np.allclose(u.max(axis=0)[varied], 2, atol=1e-6)
    assert np.abs(u[:, ~varied]).max(initial=0.0) < 1e-6


def test_planar_keeps_small_differences_of_huge_coordinates():
    x = 1e9 + np.linspace(0, 1, 50)[:, None]
    assert np.allclose(Planar().frame(x)(x)[:, 0], np.linspace(-2, 2, 50), atol=1e-5)


def test_a_constant_column_keeps_its_unit():
    x = np.array([[1.0, 5.0], [3.0, 5.0]])
    assert np.allclose(Planar().frame(x)(np.array([[2.0, 6.5]])), [[0.0, 1.5]])
    rounded = np.stack([np.arange(3.0), [0.1 + 0.2, 0.3, 0.3]], axis=1)
    assert np.ptp(rounded[:, 1]) > 0, "which is no scale"
    assert np.allclose(Planar().frame(rounded)(np.array([[1.0, 1.8]])), [[0.0, 1.5]])
    assert Planar().surroundings(rounded).miss(np.array([[1.0, 0.3], [1.0, 1.8]])).tolist() == [False, True]


@pytest.mark.parametrize("strategy", [Exact, partial(Tiled, size=16)])
def test_columns_that_do_not_vary_change_no_answer(small, strategy, rng):
    """The series of a single station, with its longitude and latitude."""
    t, y = 10 * rng.uniform(size=(40, 1)), rng.normal(size=(40, 1))
    new, constant = 10 * rng.uniform(size=(20, 1)), np.ones((40, 1))
    expected = strategy(small, t, y)(new)
    for system in (Planar(), Planar(isotropic=True), LatLon()):
        x = np.concatenate([7 * constant, 50 * constant, t], axis=1)
        if strategy is not Exact and isinstance(system, LatLon):
            continue
        found = strategy(small, x, y, system)(np.concatenate([x[:20, :2], new], axis=1))
        assert np.allclose(found, expected, atol=1e-5)
        away = np.concatenate([x[:20, :2] + 1, new], axis=1)
        assert not np.allclose(strategy(small, x, y, system)(away), expected, atol=1e-3)


@pytest.mark.parametrize(("system", "d"), [(Planar(), 2), (Planar(isotropic=True), 2), (LatLon(), 2), (LatLon(), 3)])
def test_nothing_and_one_point_are_legal(system, d):
    for n in (0, 1):
        positions = system.positions(np.full((n, d), 30.0))
        target = system.positions(np.array([[10.0, 20.0, 3.0][:d]]))
        assert np.isfinite(system.frame(positions)(target)).all()
        assert np.isfinite(system.space(positions)(target)).all()


@pytest.mark.parametrize(("system", "d"), [(Planar(), 2), (Planar(isotropic=True), 2), (LatLon(), 2), (LatLon(), 3)])
def test_a_part_at_one_place_has_the_scale_of_the_whole(system, d, rng):
    positions = system.positions(rng.uniform(-3, 3, (20, d)))
    whole = system.space(positions)
    step = np.zeros_like(positions[0])
    step[-1] = 1e-3
    scale = whole.scale[-1] * 1e-3 if d == 3 else np.linalg.norm(whole(positions[:1] + step) - whole(positions[:1]))
    part = system.frame(np.repeat(positions[None, :1], 5, axis=1), whole, positions[None, 0])
    moved = part(positions[None, :1] + step) - part(positions[None, :1])
    assert np.linalg.norm(moved) == pytest.approx(scale)


@given(st.integers(2, 40), st.integers(1, 3), st.floats(-1e6, 1e6), st.integers(0, 100))
@settings(deadline=None, max_examples=30)
def test_columns_of_one_unit_keep_the_ratios_of_distances(n, d, shift, seed):
    x = np.random.default_rng(seed).uniform(0, 1, (n, d)) * [1.0, 7.0, 0.0][:d] + shift
    frame = Planar(isotropic=True).frame(x)
    u = frame(x)
    assert np.allclose(pdist(u), pdist(x) * frame.scale[0], atol=1e-6)
    assert np.ptp(u, axis=0).max() == pytest.approx(4)


@pytest.mark.parametrize("where", [(0, 0), (179.5, 10), (30, 89.5), (-70, -89.9), (12, 45)])
def test_on_the_sphere_a_patch_lies_flat_and_distances_keep_their_ratios(where, rng):
    system = LatLon()
    lon, lat = where
    x = np.stack([lon + rng.uniform(-3, 3, 60), np.clip(lat + rng.uniform(-3, 3, 60), -90, 90)], axis=1)
    positions = system.positions(x)
    frame = system.frame(positions)
    u = frame(positions)
    assert np.allclose(frame.rotation.T @ frame.rotation, np.eye(3))
    assert np.linalg.det(frame.rotation) == pytest.approx(1)
    assert np.allclose(pdist(u), pdist(positions) * frame.scale[0])
    assert np.abs(u).max() == pytest.approx(2)
    assert np.ptp(u[:, 2]) < 0.1 * np.ptp(u, axis=0)[:2].max()


@pytest.mark.parametrize("where", [(0, 0), (179.5, 10), (30, 88.9), (-70, -88.0), (12, 45)])
def test_beside_other_columns_the_sphere_is_a_map(where, rng):
    """Of true distances near the middle, of one scale; each other column has its own, wherever it lies."""
    system = LatLon()
    lon, lat = where
    x = np.stack([lon + rng.uniform(-1, 1, 60), lat + rng.uniform(-1, 1, 60)], axis=1)
    days = 1e6 + rng.uniform(0, 1e-2, 60)
    positions = system.positions(np.column_stack([x, days]))
    u = system.frame(positions)(positions)
    assert u.shape == (60, 3) and np.ptp(u, axis=0)[:2].max() == pytest.approx(4)
    ratios = pdist(u[:, :2]) / pdist(system.positions(x))
    assert ratios.max() / ratios.min() < 1.001
    assert np.allclose(u[:, 2], 4 * (days - days.min()) / np.ptp(days) - 2, atol=1e-5)
    turned = system.positions(np.column_stack([x + np.array([360, 0]), days]))
    assert np.allclose(system.frame(positions)(turned), u)


@given(st.floats(-180, 180), st.floats(-90, 90), st.floats(0.01, 3.14), st.integers(0, 100))
@settings(deadline=None, max_examples=30)
def test_a_map_is_stretched_as_it_says(lon, lat, angle, seed):
    """Distances from the middle are chords; along the circle and the radius, short ones as the docstring of `MapFrame`
    says."""
    rng = np.random.default_rng(seed)
    up = LatLon().positions(np.array([[lon, lat]]))[0]
    axes = east_north_up(up)
    round_, turn = rng.uniform(0, 2 * np.pi), 1e-6

    def at(angle, around):
        sphere = np.sin(angle) * (np.cos(around) * axes[:, 0] + np.sin(around) * axes[:, 1]) + np.cos(angle) * up
        return mapped(np.array([[*sphere, 7.0]]), axes)[0]

    here = at(angle, round_)
    assert here[2] == 7 and np.hypot(*here[:2]) == pytest.approx(2 * np.sin(angle / 2), abs=1e-9)
    along = np.linalg.norm(at(angle, round_ + turn) - here) / (turn * np.sin(angle))
    outward = np.linalg.norm(at(angle + turn, round_) - here) / turn
    assert along == pytest.approx(1 / np.cos(angle / 2), rel=1e-3) and outward == pytest.approx(
        np.cos(angle / 2), rel=1e-3
    )


def test_the_middle_and_the_antipode_are_on_the_map():
    axes = east_north_up(np.array([0.0, 0.0, 1.0]))
    places = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    assert np.allclose(np.linalg.norm(mapped(places, axes), axis=1), [0, 2])


def test_all_are_seen_together_within_ninety_degrees_of_their_middle(rng):
    system, days = LatLon(), rng.uniform(size=(40, 1))
    lon = rng.uniform(-180, 180, 40)
    north = system.positions(np.column_stack([lon, rng.uniform(30, 90, 40), days]))
    everywhere = system.positions(np.column_stack([lon, rng.uniform(-90, 90, 40), days]))
    assert system.in_one_view(north) and np.isfinite(system.frame(north)(everywhere)).all()
    assert not system.in_one_view(everywhere) and system.in_one_view(everywhere[:, :3])
    assert system.in_one_view(np.stack([north, north])) and not system.in_one_view(np.stack([north, everywhere]))
    with pytest.raises(ValueError, match=r'within 90 degrees of their middle.*strategy="tiled"'):
        system.frame(everywhere)


@pytest.mark.parametrize(("system", "d"), [(Planar(), 2), (Planar(isotropic=True), 3), (LatLon(), 2), (LatLon(), 4)])
def test_a_space_keeps_all_apart_and_knows_the_way_back(system, d, rng):
    positions = system.positions(rng.uniform(-80, 80, (30, d)))
    space = system.space(positions)
    u = space(positions)
    assert np.abs(u).max() == pytest.approx(2) and np.allclose(space.positions(u), positions)
    assert np.linalg.matrix_rank(u - u.mean(axis=0)) == positions.shape[1]


def test_longitudes_wrap():
    system = LatLon()
    a, b, c = (system.positions(np.array([[lon, 12.0]])) for lon in (-170.0, 190.0, 550.0))
    assert np.allclose(a, b) and np.allclose(a, c)


def test_chords_are_those_of_the_sphere():
    x = np.array([[0.0, 0.0], [90.0, 0.0], [0.0, 90.0], [180.0, 0.0]])
    assert np.allclose(pdist(LatLon().positions(x)), [2**0.5, 2**0.5, 2, 2**0.5, 2**0.5, 2**0.5])


def test_refusals():
    with pytest.raises(ValueError, match="longitude first"):
        LatLon().positions(np.array([[10.0, 91.0]]))
    with pytest.raises(ValueError, match=r"takes longitude and latitude.*got 1 column"):
        LatLon().positions(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="'polar'"):
        coordinates("polar")


def test_standardiser(rng):
    y = rng.normal(5, 3, (100, 2)) * [1, 1e8]
    z = Standardiser.of(y)(y)
    assert np.allclose(z.mean(axis=0), 0) and np.allclose(z.std(axis=0), 1)
    for constant in (
        np.full((5, 1), 0.1),
        np.full((1, 1), -7.0),
        np.full((9, 1), 1e9 / 3),
        np.full((3, 1), 0.1 * 2.0**200),
    ):
        assert Standardiser.of(constant).std == 1 and np.allclose(Standardiser.of(constant)(constant), 0)
    told = Standardiser.of(np.full((5, 1), 0.1), np.full((5, 1), 0.003))  # they vary by less than their errors
    assert told.mean == 0.1 and 0 < told.std < 0.003
    assert Standardiser.of(np.full((5, 1), 0.1), np.zeros((5, 1))).std == 1
    assert Standardiser.of(np.full((1, 1), 0.1), np.full((1, 1), 0.003)).std == 1
    empty = Standardiser.of(np.zeros((0, 2)))
    assert np.array_equal(empty.mean, [0, 0]) and np.array_equal(empty.std, [1, 1])


def test_latitudes_rounded_to_float32_are_no_mistake():
    north = LatLon().positions(np.array([[0.0, 90.00001]]))
    assert np.allclose(north, [[0, 0, 1]], atol=1e-6)
    with pytest.raises(ValueError, match=r"between -90 and 90 degrees; got 90\.0002"):
        LatLon().positions(np.array([[0.0, 90.0002]]))


@given(st.floats(-290, 307), st.integers(0, 100))
@settings(deadline=None, max_examples=60)
def test_standardised_values_do_not_depend_on_the_unit(exponent, seed):
    y, c = np.random.default_rng(seed).uniform([-1, 2], [1, 4], (9, 2)), 10**exponent
    plain, scaled = Standardiser.of(y), Standardiser.of(c * y)
    np.testing.assert_allclose(scaled.std / c, plain.std, rtol=1e-12)
    np.testing.assert_allclose(scaled(c * y), plain(y), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(scaled.undo(plain(y)) / c, y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("largest", [np.finfo(float).max, np.finfo(float).smallest_subnormal])
def test_the_ends_of_float64_are_numbers_too(largest):
    y = largest * np.array([[1.0], [-1.0], [-1.0], [0.0]])
    standardiser = Standardiser.of(y)
    assert np.isfinite(standardiser(y)).all() and standardiser.std > 0
    np.testing.assert_allclose(standardiser.undo(standardiser(y)), y, rtol=1e-12)


@pytest.mark.parametrize("system", [Planar(), Planar(isotropic=True), LatLon()])
def test_many_contexts_at_once_are_as_one_by_one(system, rng):
    contexts = [rng.uniform(-60, 60, (7, 2)), rng.uniform(0, 1e-3, (7, 2)), np.full((7, 2), 3.0)]
    positions = np.stack([system.positions(x) for x in contexts])
    together = system.frame(positions)(positions)
    values = rng.normal(size=(3, 7, 2)) * [[[1.0, 1e6]]]
    standardiser = Standardiser.of(values)
    for i, p in enumerate(positions):
        assert np.allclose(together[i], system.frame(p)(p), atol=1e-12)
        assert np.allclose(standardiser(values)[i], Standardiser.of(values[i])(values[i]), atol=1e-12)
    assert np.allclose(standardiser.undo(standardiser(values)), values)
    assert system.frame(positions[:, :0])(positions).shape == positions.shape


def test_columns_of_what_lies_inside_the_sphere_are_those_of_its_direction(rng):
    x = np.column_stack([rng.uniform(-180, 180, 30), rng.uniform(-90, 90, 30), rng.uniform(size=30)])
    assert np.allclose(LatLon().columns(LatLon().positions(x) * [0.5, 0.5, 0.5, 1.0]), x)


def test_a_map_has_the_units_of_east_and_north(rng):
    system = LatLon(units=(1.0, 3.0, 1.0, 0.5))
    positions = system.positions(rng.uniform(0, 10, (20, 3)))
    scale, whole = system.frame(positions).frame.scale, system.space(positions)
    assert np.allclose(scale / scale[0], [1, 3, 0.5])
    part = system.frame(np.repeat(positions[None, :1], 5, axis=1), whole, positions[None, 0])
    assert np.allclose(part.frame.scale[0], whole.scale[[0, 1, 3]])


@pytest.mark.parametrize(("lat", "seen"), [(0.1, True), (-0.1, False)])
def test_ninety_degrees_from_the_middle_are_the_edge_of_a_view(lat, seen):
    """A ring of places around the pole."""
    lon = np.tile(np.arange(0.0, 360, 30), 2)
    ring = np.column_stack([lon, np.repeat([60.0, lat], 12), np.zeros(24)])
    assert LatLon().in_one_view(LatLon().positions(ring)) == seen


def test_from_the_middle_that_is_given_all_distances_on_a_map_are_true(rng):
    system = LatLon(units=(1.0,) * 4)
    positions = system.positions(rng.uniform([0, 0, 0], [40, 40, 1e-3], (30, 3)))
    middle = system.positions(np.array([[60.0, -20.0, 0.0]]))
    frame = system.frame(positions[None], system.space(positions), middle)
    apart = np.linalg.norm((frame(positions[None]) - frame(middle[None]))[0, :, :2], axis=1)
    chords = np.linalg.norm((positions - middle)[:, :3], axis=1)
    assert np.allclose(apart / apart[0], chords / chords[0])


@pytest.mark.parametrize("number", [np.finfo(float).smallest_subnormal, np.finfo(float).tiny, 1.0, np.finfo(float).max])
def test_ranges_have_finite_scales_at_the_ends_of_float64(number):
    half = half_range(np.array([-number]), np.array([number]))
    assert half == (number if number > np.finfo(float).tiny else 0)
    assert 0 < filling(half) < np.inf
