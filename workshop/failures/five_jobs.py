"""Five jobs of the same model, for exercise 10.5: four are slow, each by another cause.

    from workshop.failures import five_jobs

    jobs = five_jobs.start("your name")     # about a minute
    jobs.table                              # what a step of each rank consists of
    jobs.trace("A")                         # when its ranks called a collective
    workshop.why(jobs["A"])

Which letter has which cause, and which rank, follows from the name: a neighbour's answer is of no
use. The ranks are those of scripts/demos/train_torch_settings.py.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from workshop.diagnosis.evidence import Evidence
from workshop.diagnosis.reading import read_record
from workshop.diagnosis.rules import find
from workshop.diagnosis.steps import step_times
from workshop.launch.processes import INTERFACE, Processes, free_port
from workshop.output import event
from workshop.paths import DEMOS

SCRIPT = DEMOS / "train_torch_settings.py"
NOTHING = "nothing is wrong"
# What an answer may name; no job has the last cause.
CAUSES = ("straggler", "slow input", "tiny buckets", "narrow link", NOTHING, "oversubscribed cores")
PARTS = ["compute", "data", "wait", "communication"]
RANKS = 2
LIMIT_SECONDS = 240.0  # far more than a job takes on a quiet machine
TRIES = 3
SHOWN_STEPS = 4
MAX_OF_NOTHING = 0.2  # of a step, that the job with no cause may wait, exchange or load


class TooBusy(RuntimeError):
    """The machine has so much else to do that the jobs' times do not show their causes."""


@dataclass(frozen=True)
class Jobs:
    """table: a row for each job and rank; columns below. causes: job -> (cause, rank or None).

    of_name: job -> the folder of its ranks' notes, which `workshop.why` takes.

    ms per step: step = compute + data + wait + communication, the last exposed. Per step:
    collectives, KiB of each, and batch, examples of the rank. Then threads of the rank, cores of
    the machine, and examples that the rank trains per second.
    """

    table: pd.DataFrame
    causes: dict[str, tuple[str, int | None]] = field(repr=False)  # who prints jobs is no cheat
    of_name: dict[str, Path]

    def __getitem__(self, name: str) -> Path:
        return self.of_name[name]

    def trace(self, name: str) -> None:
        """Draw when each rank of a job called a collective, over a few steps."""
        from workshop import plots

        calls = _last_calls(read_record(self[name]))
        first = min(times[0] for times in calls.values())
        title = f"Job {name}: each line is a collective that a rank calls"
        with plots.canvas(title, "ms", size=(8, 2.2)) as axes:
            for rank, times in calls.items():
                at = [1000 * (time - first) for time in times]
                axes.vlines(at, rank - 0.4, rank + 0.4, color=plots.COLOURS[rank])
            axes.set_yticks(range(RANKS), [f"rank {rank}" for rank in range(RANKS)])
            axes.set_ylim(RANKS - 0.5, -0.5)
            axes.grid(axis="y", visible=False)


_newest: list[Jobs] = []


def newest() -> Jobs | None:
    """The jobs that were started last in this process, for the exercise's check."""
    return _newest[-1] if _newest else None


def causes_for(name: str) -> dict[str, tuple[str, int | None]]:
    """Which job has which cause, and the rank that has it; None where all ranks are alike."""
    shuffled = random.Random(f"five jobs of {name}")
    # Only Linux can pace a connection; elsewhere there are four jobs.
    paced = sys.platform == "linux"
    causes = [cause for cause in CAUSES[:-1] if cause != "narrow link" or paced]
    shuffled.shuffle(causes)
    of_one_rank = ("straggler", "slow input")
    return {
        letter: (cause, shuffled.randrange(RANKS) if cause in of_one_rank else None)
        for letter, cause in zip("ABCDE", causes, strict=False)
    }


def start(name: str, seconds: float = 3.0) -> Jobs:
    """Run the jobs, one after the other.

    Args:
        name: yours. seconds: that each job trains, besides its start.

    A job whose times do not show its cause, because the machine did something else meanwhile, is
    run again. Raises TooBusy.
    """
    causes, of_name, rows = causes_for(name), {}, []
    for letter, (cause, rank) in causes.items():
        print(f"Job {letter} trains ...", flush=True)
        of_name[letter], evidence = _run(letter, cause, rank, seconds)
        rows += _rows(letter, evidence)
    jobs = Jobs(pd.DataFrame(rows), causes, of_name)
    _newest.append(jobs)
    return jobs


def _run(letter: str, cause: str, rank: int | None, seconds: float) -> tuple[Path, Evidence]:
    """Run a job until its times show its cause."""
    for _ in range(TRIES):
        environment = {
            "WORLD_SIZE": RANKS,
            "LOCAL_WORLD_SIZE": RANKS,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": free_port(),
            "OMP_NUM_THREADS": 1,
            "GLOO_SOCKET_IFNAME": INTERFACE,
            "JOB_SETTINGS": json.dumps(_settings(cause, rank)),
        }
        command = [sys.executable, SCRIPT, "--seconds", seconds]
        each = [{"RANK": number, "LOCAL_RANK": number} for number in range(RANKS)]
        with Processes([command] * RANKS, environment, each=each) as processes:
            processes.wait(LIMIT_SECONDS)
        evidence = read_record(processes.record)
        if _shows(evidence, cause, rank):
            return processes.record, evidence
    raise TooBusy(
        f"Job {letter} ran {TRIES} times, and its times do not show what makes it slow: this "
        "machine is too busy. Close what else computes, and run the cell again."
    )


def _shows(evidence: Evidence, cause: str, rank: int | None) -> bool:
    """Whether the rules of `workshop why` find this cause, at this rank."""
    steps, findings = step_times(evidence), find(evidence)
    if steps is None:
        return False
    if cause == NOTHING:
        others = (
            max(row.wait, row.communication, row.data * row.seconds) for row in steps.of_ranks
        )
        longest = max(row.seconds for row in steps.of_ranks)
        return not findings and max(others) < MAX_OF_NOTHING * longest
    where = "" if rank is None else f"rank {rank}"
    return any(item.cause == cause and item.where.startswith(where) for item in findings)


def _settings(cause: str, rank: int | None) -> dict:
    """As train_torch_settings.py takes them."""
    settings: dict[str, dict] = {
        "straggler": {"late_rank": rank},
        "slow input": {"input_rank": rank},
        "tiny buckets": {"bucket_mb": 0.001},
        "narrow link": {"narrow": True},
        NOTHING: {"batch": 1024},
    }
    return settings[cause]


def _rows(letter: str, evidence: Evidence) -> list[dict]:
    """The job's rows of the table."""
    steps = step_times(evidence)
    assert steps is not None
    ends = {
        record["rank"]: record
        for line in evidence.lines
        if (record := event(line.text)) and record["event"] == "end"
    }
    rows = []
    for times in steps.of_ranks:
        rank = evidence.rank(times.rank)
        assert rank is not None
        parts = {
            "compute": times.compute - times.data * times.seconds,
            "data": times.data * times.seconds,
            "wait": times.wait,
            "communication": times.communication,
        }
        rows.append(
            {"job": letter, "rank": times.rank, "step": 1000 * times.seconds}
            | {part: max(1000 * seconds, 0.0) for part, seconds in parts.items()}
            | {"collectives": steps.collectives}
            | {"KiB of each": steps.bytes / steps.collectives / 1024}
            | {"batch": ends[times.rank]["batch"]}
            | {"threads": rank.note["threads"], "cores": rank.note["cores"]}
            | {"examples/s": ends[times.rank]["examples_per_second"]}
        )
    return rows


def _last_calls(evidence: Evidence) -> dict[int, list[float]]:
    """Of each rank, when it called the collectives of the last steps: Unix seconds."""
    steps = step_times(evidence)
    assert steps is not None
    count = SHOWN_STEPS * steps.collectives
    # The last one is the barrier at the end.
    return {
        rank.number: [call.created for call in rank.collectives[-count - 1 : -1]]
        for rank in evidence.ranks
    }
