"""Distributions over tasks: pure functions of a key."""

from ._base import AbstractTasks as AbstractTasks
from .curriculum import Curriculum as Curriculum, Stage as Stage
from .posterior import PosteriorTask as PosteriorTask
from .prior import GPPrior as GPPrior
