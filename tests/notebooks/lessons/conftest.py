"""Executed lessons, and machines without Horovod."""

import os

import lesson_runs
import pytest
from lesson_runs import lesson_run

__all__ = ["lesson_run"]


@pytest.fixture
def own_endpoint(tmp_path):
    """An endpoint of this test's own."""
    with lesson_runs.endpoint(tmp_path / "state"):
        yield tmp_path / "state"


@pytest.fixture
def without_horovod(tmp_path, monkeypatch):
    """In this process and in those that it starts, Horovod is a package without a library."""
    shadow = tmp_path / "shadow"
    (shadow / "horovod").mkdir(parents=True)
    (shadow / "horovod" / "__init__.py").write_text("")  # found first
    monkeypatch.syspath_prepend(shadow)
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(shadow), before])))
