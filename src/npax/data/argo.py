from pathlib import Path
from typing import NamedTuple

import numpy as np

ARGO_ACKNOWLEDGEMENT = (
    "These data were collected and made freely available by the International Argo Program and the national "
    "programs that contribute to it (https://argo.ucsd.edu, https://www.ocean-ops.org). The Argo Program is part of "
    "the Global Ocean Observing System. Selection of January to March 2016: R package GpGp 0.5.1 (J. Guinness, "
    "M. Katzfuss, Y. Fahmy; MIT licence)."
)

ARGO_START = np.datetime64("2016-01-01")
"""What days are counted from."""


class Argo(NamedTuple):
    """`lon` (degrees east, 20 to 380) and `lat` (degrees north), `temp` (degrees Celsius at 100 dbar) and `day` (days
    since `npax.data.ARGO_START`, to a sixteenth of a day), each `[n]`."""

    lon: np.ndarray
    lat: np.ndarray
    temp: np.ndarray
    day: np.ndarray


def argo() -> Argo:
    """Ocean temperatures at 100 dbar (about 100 m deep) measured by Argo floats, January to March 2016.

    32,436 profiles, float64. A float drifts slowly and measures about every ten days, so one float's profiles are
    near each other: a random hold-out is interpolation among near neighbours, not extrapolation. Who publishes results
    made with them is asked to print `npax.data.ARGO_ACKNOWLEDGEMENT`; days are counted from `npax.data.ARGO_START`.
    """
    with np.load(Path(__file__).parent / "argo2016.npz") as file:
        return Argo(*(file[name].astype(np.float64) for name in ("lon", "lat", "temp100", "day")))
