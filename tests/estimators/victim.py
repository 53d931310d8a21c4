"""Predicts into a store until it is killed; `victim.py PATH fsync N` kills itself."""

import os
import signal
import sys
import time

import numpy as np
import pandas as pd

import npax
from npax.estimators import geo, store

GRID = {"lat": np.linspace(40, 48, 24), "lon": np.linspace(-5, 5, 20)}


def observations():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"lon": rng.uniform(-5, 5, 30), "lat": rng.uniform(40, 48, 30)})
    return table.assign(temp=np.sin(table["lon"]))


def write(path, model, seen=lambda places: None):
    """`seen` is called with the places of each block."""
    original = geo.moments_at

    def moments(predictor, places, include_noise):
        seen(places)
        return original(predictor, places, include_noise)

    geo.moments_at = moments
    try:
        return npax.interpolate(observations(), GRID, y="temp", model=model, store=path)
    finally:
        geo.moments_at = original


if __name__ == "__main__":
    from untrained import small

    path, *manner = sys.argv[1:]
    store.BLOCK = 64
    if manner:
        original, calls = os.fsync, iter(range(1, 10**6))

        def deadly(file):
            if next(calls) == int(manner[1]):
                os.ftruncate(file, os.fstat(file).st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            original(file)

        os.fsync = deadly
    write(path, small(), lambda places: time.sleep(0.1))
