"""The jobs of exercise 10.5. That their times show their causes, test_exercises.py tests."""

import runpy
import sys

import pytest

from workshop.failures import five_jobs
from workshop.paths import DEMOS


def test_each_name_has_all_causes_in_an_order_of_its_own():
    by_name = [five_jobs.causes_for(name) for name in map(str, range(30))]
    for causes in by_name:
        assert len({cause for cause, _ in causes.values()}) == len(causes) >= 4
        for cause, rank in causes.values():
            assert (rank is None) == (cause not in ("straggler", "slow input"))
    assert five_jobs.causes_for("1") == by_name[1]
    assert len({tuple(causes.items()) for causes in by_name}) > 25
    assert {rank for causes in by_name for _, rank in causes.values()} == {None, 0, 1}


@pytest.mark.parametrize("cause", five_jobs.CAUSES[:-1])
def test_the_script_takes_the_settings_of_each_cause(cause, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DEMOS), *sys.path])
    Settings = runpy.run_path(str(five_jobs.SCRIPT))["Settings"]
    assert Settings(**five_jobs._settings(cause, 1)) != Settings()
