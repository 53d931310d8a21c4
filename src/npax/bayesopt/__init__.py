"""Bayesian optimisation: the minimum of an expensive function, by a neural process that has seen its values."""

from .acquisition import (
    AbstractAcquisition as AbstractAcquisition,
    ConfidenceBound as ConfidenceBound,
    ExpectedImprovement as ExpectedImprovement,
    RandomSearch as RandomSearch,
    ThompsonSampling as ThompsonSampling,
    log_expected_improvement as log_expected_improvement,
)
from .minimize import minimize as minimize
from .optimizer import FailedEvaluation as FailedEvaluation, Optimizer as Optimizer
from .regret import (
    Problem as Problem,
    Search as Search,
    draw_problem as draw_problem,
    search as search,
    search_all as search_all,
)
from .surrogate import (
    AbstractSurrogate as AbstractSurrogate,
    Evaluations as Evaluations,
    GPSurrogate as GPSurrogate,
    ModelSurrogate as ModelSurrogate,
)
