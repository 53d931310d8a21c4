"""Checks of arguments that classes share."""


def at_least_one(**sizes: int) -> None:
    """**Raises** `ValueError` for the first of the arguments that is below 1."""
    for name, value in sizes.items():
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}.")
