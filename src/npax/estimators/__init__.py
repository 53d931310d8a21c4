"""Estimators: what users of scikit-learn, pandas and xarray expect."""

from .geo import interpolate as interpolate
from .sklearn import DroppedRows as DroppedRows, NeuralProcessRegressor as NeuralProcessRegressor
