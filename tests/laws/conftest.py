import mpmath as mp
import pytest


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(80):
        yield
