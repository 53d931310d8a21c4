"""Estimators: what users of scikit-learn, pandas and xarray expect."""

from .sklearn import NeuralProcessRegressor as NeuralProcessRegressor
