"""Longitudes as users have them: across the date line they jump."""

import numpy as np

SHORTER = 60.0
"""Degrees by which another way round the globe must be shorter than the one that longitudes are written in."""


def unwrapped(lon: np.ndarray) -> np.ndarray:
    """Longitudes on the shorter arc: counted on from the end of the largest gap between them."""
    known = lon[np.isfinite(lon)]
    if not len(known):
        return lon
    order = np.argsort(known % 360.0)
    turned = (known % 360.0)[order]
    gaps = np.append(turned[1:], turned[0] + 360.0) - turned
    widest = int(np.argmax(gaps))
    if 360.0 - gaps[widest] > np.ptp(known) - SHORTER:
        return lon
    first = known[order[(widest + 1) % len(known)]]
    return first + (lon - first) % 360.0


def around(lon: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Longitudes in the frame of others: within half a turn of their middle."""
    west = (others.min() + others.max()) / 2 - 180.0
    return west + (lon - west) % 360.0
