import pytest
import untrained


@pytest.fixture(scope="session")
def small():
    """An untrained model of the shipped model's kind."""
    return untrained.small()


@pytest.fixture(scope="session")
def hearing():
    """One that hears of known errors, and is quick to compile."""
    return untrained.hearing(3)


@pytest.fixture(scope="session")
def tiny():
    """A model of any kind, where compiling is most of the work."""
    return untrained.cnp(3)
