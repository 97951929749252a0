"""Executed lessons, and machines without Horovod."""

import os

import pytest
from lesson_runs import lesson_run

__all__ = ["lesson_run"]


def pytest_itemcollected(item):
    """Who is the first to read a lesson's run waits until it is executed, for minutes."""
    if item.path.name.startswith("test_lesson_"):
        item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.timeout(1500))


@pytest.fixture
def lesson(lesson_run, request):
    """The run, with smaller numbers, of the lesson that the file of the test is named after."""
    return lesson_run(request.path.stem.removeprefix("test_lesson_"))


@pytest.fixture
def results(lesson):
    """What that run recorded."""
    return lesson.results


@pytest.fixture
def without_horovod(tmp_path, monkeypatch):
    """In this process and in those that it starts, Horovod is a package without a library."""
    shadow = tmp_path / "shadow"
    (shadow / "horovod").mkdir(parents=True)
    (shadow / "horovod" / "__init__.py").write_text("")  # found first
    monkeypatch.syspath_prepend(shadow)
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(shadow), before])))
