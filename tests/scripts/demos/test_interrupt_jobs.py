"""Jobs that are killed: what the script counts is what was done, written and done again."""

import random
import subprocess
import sys

import pytest

from workshop.output import event
from workshop.paths import DEMOS

STEPS, STEP, WRITE = 60, 10, 30


def run(between):
    command = [sys.executable, DEMOS / "interrupt_jobs.py", "--intervals", "4,20"]
    command += ["--schedules", 3, "--steps", STEPS, "--between", between]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return [event(line) for line in done.stdout.splitlines()]


def expected(interval, schedule, between):
    """(seconds, interruptions), from the schedule alone: no process, no file."""
    gaps, passed, interruptions, saved = random.Random(f"0 {schedule}"), 0.0, 0, 0
    while True:
        left, at, newest = gaps.expovariate(1 / between), 0.0, saved
        for step in range(saved + 1, STEPS + 1):
            at += STEP
            if step % interval == 0:
                at += WRITE
                newest = step if at <= left else newest
        if at <= left:
            return passed + at, interruptions
        passed, interruptions, saved = passed + left, interruptions + 1, newest


@pytest.mark.parametrize("between", [200, 10**9])
def test_a_job_takes_what_its_schedule_makes_it_do_again(between):
    jobs = run(between)
    assert len(jobs) == 6
    for job in jobs:
        seconds, interruptions = expected(job["interval"], job["schedule"], between)
        assert job["seconds"] == pytest.approx(seconds) and job["interruptions"] == interruptions
    assert len({job["weights"] for job in jobs}) == 1
    assert any(job["interruptions"] for job in jobs) == (between == 200)
