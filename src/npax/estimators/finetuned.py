"""Which model predicts after fine-tuning: where predictions are of means, training on single ones may do harm."""

import warnings
from copy import copy

import numpy as np

from ..metrics import nll
from ..models import AbstractNeuralProcess
from ..training import Finetuned

MOST = 2000
"""Observations on which two models are compared, at most."""


def better(estimator, tuned: Finetuned, X: np.ndarray, y: np.ndarray) -> AbstractNeuralProcess:
    """The trained model, unless near observations are averaged and the `estimator`'s own, which came, predicts what was
    held out of `X [n d]`, `y [n]` or `[n dy]` better from means: neither was trained on these.

    **Cost:** a fit and up to 2,000 predictions for each of the two.
    """
    came, trained = estimator.model_, tuned.model
    if tuned.steps == 0 or tuned.held_out is None:
        return trained
    seen, hidden = np.flatnonzero(~tuned.held_out), np.flatnonzero(tuned.held_out)
    hidden = np.random.default_rng(0).permutation(hidden)[:MOST]

    def fitted(model):
        other = copy(estimator)
        other.model_, other.progress = model, False
        return other._keep(X[seen], y[seen])

    def lost(other):
        prediction = other._predictor()(X[hidden])
        return nll(y[hidden], other._like_y(prediction.mean), other._like_y(prediction.std()))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `fit` warns of all observations
        from_trained = fitted(trained)
        if (from_trained.averaged_ == 1).all():
            return trained
        return came if lost(fitted(came)) < lost(from_trained) else trained
