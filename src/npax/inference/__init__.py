"""Inference in the user's units: exact, in tiles, and joint samples."""

from .anisotropy import Fit as Fit
from .autoregressive import autoregressive_log_prob as autoregressive_log_prob, sample as sample
from .averages import average_covariance as average_covariance, average_std as average_std
from .buckets import bucket as bucket
from .by_column import ByColumn as ByColumn, Predictor as Predictor
from .counted import Counted as Counted, Rounds as Rounds, linearised as linearised
from .drift import Drift as Drift
from .fill import fill as fill
from .frames import Frame as Frame
from .joint import covariance as covariance, joint_samples as joint_samples
from .levels import (
    Levels as Levels,
    LevelsEverywhere as LevelsEverywhere,
    come_again as come_again,
    levels_of as levels_of,
)
from .normalise import (
    AbstractCoordinates as AbstractCoordinates,
    LatLon as LatLon,
    Planar as Planar,
    Unscaled as Unscaled,
    coordinates as coordinates,
)
from .predict import (
    Even as Even,
    Exact as Exact,
    Noise as Noise,
    Prediction as Prediction,
    adapted as adapted,
    grouped as grouped,
    known_errors as known_errors,
)
from .scatter import Scatter as Scatter
from .standardise import Standardiser as Standardiser
from .strategy import EXACT_UP_TO as EXACT_UP_TO, choose as choose, tile_reach as tile_reach
from .superobservations import superobservations as superobservations
from .tile import Tiled as Tiled
from .unknown_noise import unknown_noise as unknown_noise
from .with_drift import Columns as Columns, WithDrift as WithDrift
