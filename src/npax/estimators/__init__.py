"""Estimators: what users of scikit-learn, pandas and xarray expect."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
