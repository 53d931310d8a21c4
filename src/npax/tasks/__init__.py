"""Distributions over tasks: pure functions of a key."""

from ._base import AbstractTasks as AbstractTasks
from .curriculum import Curriculum as Curriculum, Stage as Stage
from .gp import GPPosteriorTask as GPPosteriorTask, GPTask as GPTask, gp_1d as gp_1d, gp_2d as gp_2d
from .gp_kernels import (
    AbstractKernelPrior as AbstractKernelPrior,
    Matern32Prior as Matern32Prior,
    PeriodicPrior as PeriodicPrior,
    RBFPrior as RBFPrior,
)
from .posterior import PosteriorTask as PosteriorTask
from .prior import GPPrior as GPPrior
