"""Text that is a number."""

from typing import Any


def is_number(given: Any) -> bool:
    """Whether `float` takes it: numbers, and text that is one."""
    try:
        float(given)
    except (TypeError, ValueError):  # dates, other text
        return False
    return True
