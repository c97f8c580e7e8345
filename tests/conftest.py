"""What every test shares: where the checkout is, and how hypothesis behaves."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: a busy machine is not a bug. The database of examples stays inside the ignored cache.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the checkout."""
    return ROOT
