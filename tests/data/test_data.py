import numpy as np
import pytest

from npax.data import argo, is_land, land


def test_argo_is_all_there():
    lon, lat, temp, day = argo()
    assert lon.shape == lat.shape == temp.shape == day.shape == (32_436,)
    assert lon.min() >= 20 and lon.max() <= 380 and np.abs(lat).max() <= 65
    assert temp.min() > -2.5 and temp.max() < 32
    assert 0 <= day.min() < 0.1 and 90.9 < day.max() <= 91  # January to March of a leap year
    assert temp[np.abs(lat) < 15].mean() > temp[np.abs(lat) > 50].mean() + 10


def test_no_float_swims_on_land():
    lon, lat, *_ = argo()
    assert not is_land(lon[::20], lat[::20]).any()


@pytest.mark.parametrize(
    ("lon", "lat", "expected"),
    [
        (2.3, 48.8, True),  # Paris
        (-30, 30, False),  # Atlantic
        (51, 42, False),  # Caspian Sea: a hole
        (0, -90, True),  # south pole
        (0, 90, False),  # north pole
        (185, 67, True),  # Chukotka, beyond the date line
        (-175, 67, True),
        (380, 20, True),  # Sahara, once more round
        (180, 0, False),  # Pacific, on the date line
    ],
)
def test_land_where_the_atlas_says(lon, lat, expected):
    assert is_land(float(lon), float(lat)) == expected


def test_no_places_are_no_land():
    assert is_land(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)


def test_land_covers_29_percent_of_the_earth():
    lon, lat = np.meshgrid(np.arange(0.5, 360, 2), np.arange(-89.5, 90, 2))
    assert np.average(is_land(lon, lat), weights=np.cos(np.deg2rad(lat))) == pytest.approx(0.291, abs=0.01)


def test_rings_are_closed_and_without_jumps():
    for ring in land():
        np.testing.assert_array_equal(ring[0], ring[-1])
        steps = np.abs(np.diff(ring, axis=0)).max(axis=1)
        assert np.all((steps < 20) | (ring[1:, 1] <= -84))  # but for the edge that closes Antarctica at the pole
