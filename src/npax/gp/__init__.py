"""Exact Gaussian processes: the references that neural processes are measured against."""

from .coregionalised import (
    CoregionalisedGP as CoregionalisedGP,
    maximum_a_posteriori as maximum_a_posteriori,
    maximum_a_posteriori_gp as maximum_a_posteriori_gp,
)
from .exact import exact_posterior as exact_posterior, oracle as oracle
from .mixture import bayes_mixture as bayes_mixture
