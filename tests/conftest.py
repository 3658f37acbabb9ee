"""Fixtures that several test folders use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# no timed assertions: machines differ
settings.register_profile("roundline", deadline=None)
settings.load_profile("roundline")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference data beside the checkout; tests that need it are skipped without it."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder}")
    return folder
