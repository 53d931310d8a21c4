"""Data that comes with the package."""

from .argo import Argo as Argo, argo as argo
from .land import is_land as is_land, land as land
