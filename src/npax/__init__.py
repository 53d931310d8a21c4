"""npax: neural processes in JAX."""

from lazy_loader import attach_stub

# What there is stands in __init__.pyi, and is imported when it is first asked for: `npax --help` needs none of it.
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
