"""The demonstration: a map of the world's ocean temperature, and how good it is."""

from .argo import run as run
from .baselines import InverseDistance as InverseDistance, SubsetGP as SubsetGP
