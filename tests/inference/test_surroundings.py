import numpy as np
import pytest

from npax.inference import LatLon, Planar, Unscaled
from npax.inference.surroundings import Surroundings

AT = np.array([[1.0, 1.0], [1.49, -1.49], [1.51, 0.0], [0.0, -1.51], [20.0, 20.0]])
"""In half-widths from the middle."""
OUTSIDE = [False, False, True, True, True]


@pytest.mark.parametrize("system", [Planar(), Unscaled(Planar())])
@pytest.mark.parametrize("half", [[1.0, 1.0], [1e-6, 1e3], [1e200, 1e-200]])
def test_a_plane_ends_half_a_half_width_beyond_the_box(system, half, rng):
    x = np.concatenate([[[-1.0, 1.0], [1.0, -1.0]], rng.uniform(-1, 1, (9, 2))])
    for middle in (0.0, 1e9 if half[0] == 1 else 0.0):
        found = system.surroundings(x * half + middle).miss(AT * half + middle)
        assert found.tolist() == OUTSIDE


def test_a_coordinate_that_is_constant_ends_there():
    """Nothing says how fast values change along it; but of one place nothing says anything."""
    line = np.stack([np.linspace(-1, 1, 5), np.full(5, 7.1)], axis=1)
    at = np.array([[1.4, 7.1], [1.4, np.float32(7.1)], [1.4, 7.2], [1.6, 7.1]])
    assert Planar().surroundings(line).miss(at).tolist() == [False, False, True, True]
    for system in (Planar(), LatLon()):
        alone = system.positions(np.array([[10.0, 50.0]]))
        assert not system.surroundings(alone).miss(system.positions(np.array([[-170.0, -50.0], [10.0, 50.1]]))).any()


@pytest.mark.parametrize("place", [(9.2, 48.8), (-70.3, -33.4), (179.9, 0.1)])
def test_a_station_is_not_outside_its_own_series(place):
    """However many are asked for together, which products of matrices are rounded by."""
    system = LatLon()
    series = np.column_stack([np.tile(place, (60, 1)), np.arange(60.0)])
    around = system.surroundings(system.positions(series))
    for n in (1, 2, 3, 60):
        assert not any(around.miss(system.positions(rows)).any() for rows in np.split(series, 60 // n))
    other = np.array([[place[0], place[1] - 0.01, 3.0], [*place, 100.0]])
    assert around.miss(system.positions(other)).all()


@pytest.mark.parametrize("middle", [(0, 0), (180, 10), (30, 89.9), (-70, -89), (12, 45)])
@pytest.mark.parametrize("degrees", [0.01, 1.0, 5.0])
def test_on_the_sphere_there_is_no_place_apart(middle, degrees):
    """A patch, placed anywhere, ends where it does at the equator, and where a plane would."""
    system = LatLon()
    equator = system.positions(np.zeros((1, 2)))[0]
    at = system.positions(np.array([middle], float))[0]
    side = np.linspace(-degrees, degrees, 5)
    patch = system.positions(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))
    places = system.positions(AT[:4] * degrees)
    found = system.surroundings(system.moved(patch, equator, at)).miss(system.moved(places, equator, at))
    assert found.tolist() == OUTSIDE[:4]
    assert system.surroundings(system.moved(patch, equator, at)).miss(-at[None]).all()  # the antipode


def test_the_antipode_is_far_away():
    """Its direction is any, and rounding errors need not give it one."""
    axes = np.eye(3)  # up is the north pole
    near = np.array([[0.1, 0.0, 0.99], [-0.1, 0.1, 0.99], [0.0, -0.1, 0.99]])
    assert Surroundings.of(near, axes).miss(np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])).tolist() == [True, False]


def test_a_track_ends_at_its_length_on_the_sphere():
    """Its width, all but nothing, is no measure: distances in all directions count alike."""
    system = LatLon()
    track = system.positions(np.stack([np.linspace(0, 10, 50), np.full(50, 60.0)], axis=1))
    near, far = system.positions(np.array([[5.0, 61.0], [5.0, 59.0], [5.0, 64.0], [10.5, 60.0]])), [[20.0, 60.0]]
    assert not system.surroundings(track).miss(near[:2]).any() and not system.surroundings(track).miss(near[3:]).any()
    assert system.surroundings(track).miss(system.positions(np.array([*far, [5.0, 70.0]]))).all()


def test_beside_the_sphere_a_column_ends_by_itself(rng):
    system = LatLon()
    x = np.column_stack([rng.uniform(-1, 1, (200, 2)), np.linspace(0, 1e6, 200)])
    at = np.array([[0.0, 0.0, 1.24e6], [0.0, 0.0, 1.26e6], [1.4, 0.0, 5e5], [1.6, 0.0, 5e5]])
    missed = system.surroundings(system.positions(x)).miss(system.positions(at))
    assert missed.tolist() == [False, True, False, True]


def test_the_globe_has_no_outside(rng):
    def everywhere(n):
        return np.stack([rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))], axis=1)

    system = LatLon()
    assert not system.surroundings(system.positions(everywhere(300))).miss(system.positions(everywhere(5000))).any()
