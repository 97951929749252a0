"""Executed lessons, and machines without Horovod."""

import os

import lesson_runs
import pytest
from lesson_runs import lesson_run

from local_sagemaker.pytest_plugin import emulator

__all__ = ["lesson_run"]


@pytest.fixture
def own_emulator(tmp_path):
    """An emulator of this test's own."""
    with emulator(tmp_path / "state", lesson_runs.AS_A_LEARNER) as running:
        yield running


@pytest.fixture
def without_horovod(tmp_path, monkeypatch):
    """In this process and in those that it starts, Horovod is a package without a library."""
    shadow = tmp_path / "shadow"
    (shadow / "horovod").mkdir(parents=True)
    (shadow / "horovod" / "__init__.py").write_text("")  # found first
    monkeypatch.syspath_prepend(shadow)
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(shadow), before])))
