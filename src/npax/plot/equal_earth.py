import numpy as np
from numpy.typing import ArrayLike

from ..arrays import floats

_A1, _A2, _A3, _A4 = 1.340264, -0.081106, 0.000893, 0.003796


def equal_earth(lon: ArrayLike | float, lat: ArrayLike | float, center: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The Equal Earth projection of degrees to map coordinates, on a sphere of radius 1: equal areas, round shoulders.

    `center` is the central meridian. Longitudes are not wrapped: those more than 180 from it land outside the map.

    **Reference:** Savric, Patterson and Jenny (2019), The Equal Earth map projection, eq. 1.
    """
    lon, lat = np.broadcast_arrays(floats(lon), floats(lat))
    theta = np.arcsin(np.sqrt(3) / 2 * np.sin(np.deg2rad(lat)))
    t2 = theta**2
    stretch = _A1 + 3 * _A2 * t2 + t2**3 * (7 * _A3 + 9 * _A4 * t2)
    x = 2 * np.sqrt(3) * np.deg2rad(lon - center) * np.cos(theta) / (3 * stretch)
    y = theta * (_A1 + _A2 * t2 + t2**3 * (_A3 + _A4 * t2))
    return np.asarray(x), np.asarray(y)
