"""Scores of predictions: NumPy in, floats out, pooled over all values."""

from .calibration import calibration_curve as calibration_curve, pit as pit
from .crps import crps as crps, crps_lognormal as crps_lognormal, crps_samples as crps_samples
from .errors import mae as mae, rmse as rmse
from .intervals import coverage as coverage, interval_score as interval_score
from .nll import nll as nll
from .report import score_report as score_report
