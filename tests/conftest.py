"""Fixtures for every room's tests."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # importlib mode leaves the tests' folder off the path
import browser


@pytest.fixture(scope="session")
def browse() -> Iterator[Callable[..., browser.Opened]]:
    """`browse(path, width, ...)` opens a page in a real browser: Browser.open_page in tests/browser.py."""
    program = browser.find()
    if program is None:
        pytest.skip(f"no Chromium found ({', '.join(browser.NAMES)})")
    with browser.started(program) as running:
        yield running.open_page
