from .floors import score_floor as score_floor, score_gp as score_gp, score_oracle as score_oracle
from .report import report as report
from .results import Result as Result, Run as Run, circumstances as circumstances, finished as finished, read as read
from .run import (
    BASELINES as BASELINES,
    Benchmark as Benchmark,
    model_presets as model_presets,
    prepare as prepare,
    rows as rows,
    run as run,
    run_of as run_of,
)
from .scores import Scores as Scores, draw as draw, mean_and_error as mean_and_error, score_model as score_model
from .speed import (
    EXACT as EXACT,
    ROWS as ROWS,
    SIZES as SIZES,
    TILED as TILED,
    Cell as Cell,
    Timing as Timing,
    cells as cells,
    measure as measure,
    measured as measured,
    speed_report as speed_report,
)
from .tables import (
    Table as Table,
    anp as anp,
    bimodal as bimodal,
    celeba as celeba,
    cifar10 as cifar10,
    environment as environment,
    gp1d as gp1d,
    gp2d as gp2d,
    kolmogorov as kolmogorov,
    mnist as mnist,
    shift as shift,
    sir as sir,
    stations as stations,
    tcifar10 as tcifar10,
    tmnist as tmnist,
)
