"""`npax bench` (not imported by `import npax`): all models on the papers' Gaussian process tasks; timing tables."""

from .floors import score_floor as score_floor, score_oracle as score_oracle
from .report import report as report
from .results import Result as Result, Run as Run, circumstances as circumstances, finished as finished, read as read
from .run import Benchmark as Benchmark, model_presets as model_presets, prepare as prepare, run as run
from .scores import Scores as Scores, draw as draw, mean_and_error as mean_and_error, score_model as score_model
from .speed import (
    ROWS as ROWS,
    TILED as TILED,
    Cell as Cell,
    Timing as Timing,
    cells as cells,
    measure as measure,
    measured as measured,
    speed_report as speed_report,
)
from .tables import Table as Table, anp as anp, gp1d as gp1d, gp2d as gp2d, shift as shift
