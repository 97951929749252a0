"""What runs beside a notebook: session, launch, checks, plots and the command `workshop`.

    import workshop

    session = workshop.session(target="local")        # or "aws"
    estimator.fit(channels, wait=False)
    result = workshop.follow(estimator)

Names are loaded when they are first used: `workshop --help` need not wait for boto3.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workshop.account.compare import compare
    from workshop.account.prices import cost, cost_table
    from workshop.account.stacks import deploy
    from workshop.exercises.checking import check
    from workshop.jobs.follow import follow, run_jobs
    from workshop.jobs.session import session
    from workshop.paths import DATA, SCRIPTS
    from workshop.predicting import predict
    from workshop.quizzing import quiz
    from workshop.ranks import start_ranks
    from workshop.recording import record
    from workshop.source import show_diff, show_function

_HOME = {
    "DATA": "workshop.paths",
    "SCRIPTS": "workshop.paths",
    "check": "workshop.exercises.checking",
    "compare": "workshop.account.compare",
    "cost": "workshop.account.prices",
    "cost_table": "workshop.account.prices",
    "deploy": "workshop.account.stacks",
    "follow": "workshop.jobs.follow",
    "predict": "workshop.predicting",
    "quiz": "workshop.quizzing",
    "record": "workshop.recording",
    "run_jobs": "workshop.jobs.follow",
    "session": "workshop.jobs.session",
    "show_diff": "workshop.source",
    "show_function": "workshop.source",
    "start_ranks": "workshop.ranks",
}

__all__ = [
    "DATA",
    "SCRIPTS",
    "check",
    "compare",
    "cost",
    "cost_table",
    "deploy",
    "follow",
    "predict",
    "quiz",
    "record",
    "run_jobs",
    "session",
    "show_diff",
    "show_function",
    "start_ranks",
]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'workshop' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
