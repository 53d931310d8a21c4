"""Data that comes with the package, and readers of data sets that do not."""

from .argo import (
    ARGO_ACKNOWLEDGEMENT as ARGO_ACKNOWLEDGEMENT,
    ARGO_START as ARGO_START,
    Argo as Argo,
    argo as argo,
)
from .fields import (
    Ozone as Ozone,
    Rainfall as Rainfall,
    era5_europe as era5_europe,
    era5_uk as era5_uk,
    ozone as ozone,
    rainfall as rainfall,
)
from .images import Images as Images, celeba32 as celeba32, cifar10 as cifar10, mnist as mnist
from .land import is_land as is_land, land as land
