"""Data that comes with the package, and readers of data sets that do not."""

from .argo import Argo as Argo, argo as argo
from .images import Images as Images, celeba32 as celeba32, cifar10 as cifar10, mnist as mnist
from .land import is_land as is_land, land as land
