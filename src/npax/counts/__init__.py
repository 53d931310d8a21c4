"""What counts say of a rate: events in a time or among people, positives among those who were tested."""

from ._base import AbstractCounts as AbstractCounts, Linearised as Linearised
from .binomial import Binomial as Binomial
from .poisson import Poisson as Poisson
from .scores import score_report as score_report
