"""What runs beside a notebook: session, launch, checks, plots and the command `workshop`.

    import workshop

    session = workshop.session(target="local")        # or "aws"
    estimator.fit(channels, wait=False)
    result = workshop.follow(estimator)

Names are loaded when they are first used: `workshop --help` need not wait for boto3.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

# jsonschema tries to import this, and nothing here checks IRIs: it compiles a grammar for 1.5 s.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

if TYPE_CHECKING:
    from workshop.account.compare import compare
    from workshop.account.prices import cost, cost_table
    from workshop.account.stacks import deploy
    from workshop.jobs.follow import follow, run_jobs
    from workshop.jobs.session import session
    from workshop.launch.ranks import RankFailed, start_ranks
    from workshop.lesson.check import check
    from workshop.lesson.guess import guess
    from workshop.lesson.quiz import quiz
    from workshop.lesson.results import save_results
    from workshop.lesson.show import show_diff, show_function, versions
    from workshop.paths import DATA, SCRIPTS

_HOME = {
    "DATA": "workshop.paths",
    "RankFailed": "workshop.launch.ranks",
    "SCRIPTS": "workshop.paths",
    "check": "workshop.lesson.check",
    "compare": "workshop.account.compare",
    "cost": "workshop.account.prices",
    "cost_table": "workshop.account.prices",
    "deploy": "workshop.account.stacks",
    "follow": "workshop.jobs.follow",
    "guess": "workshop.lesson.guess",
    "quiz": "workshop.lesson.quiz",
    "run_jobs": "workshop.jobs.follow",
    "save_results": "workshop.lesson.results",
    "session": "workshop.jobs.session",
    "show_diff": "workshop.lesson.show",
    "show_function": "workshop.lesson.show",
    "start_ranks": "workshop.launch.ranks",
    "versions": "workshop.lesson.show",
}

__all__ = [
    "DATA",
    "SCRIPTS",
    "RankFailed",
    "check",
    "compare",
    "cost",
    "cost_table",
    "deploy",
    "follow",
    "guess",
    "quiz",
    "run_jobs",
    "save_results",
    "session",
    "show_diff",
    "show_function",
    "start_ranks",
    "versions",
]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'workshop' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
