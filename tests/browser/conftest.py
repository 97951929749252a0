"""One JupyterLab and one Chromium for all tests of this folder."""

import os
import shutil

import pytest
from lesson_runs import lesson_run

from lab_harness import chromium, end_lab, start_lab
from workshop.paths import NOTEBOOKS, ROOT

__all__ = ["lesson_run"]


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory):
    """A Chromium that notes what pages ask for."""
    with chromium(tmp_path_factory.mktemp("chromium"), log_requests=True) as driver:
        yield driver


@pytest.fixture(scope="session")
def lab(tmp_path_factory, browser):
    """`workshop lab` on a copy of the notebooks: what it saves stays out of the kit."""
    folder = tmp_path_factory.mktemp("lab")
    root = folder / "kit"
    shutil.copytree(NOTEBOOKS, root / NOTEBOOKS.name)
    shutil.copy(ROOT / "pyproject.toml", root)
    for lesson in root.rglob("*.ipynb"):  # jupytext would not open one that is newer than its .py
        os.utime(lesson)
    running = start_lab(folder, root)
    yield running
    if running.process.poll() is None:
        end_lab(running)
