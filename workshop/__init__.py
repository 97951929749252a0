"""What runs beside a notebook: session, launch, checks, plots and the command `workshop`.

    import workshop

    session = workshop.session(target="local")        # or "aws"
    estimator.fit(channels, wait=False)
    result = workshop.follow(estimator)

Names are loaded when they are first used: `workshop --help` need not wait for boto3.
"""

from importlib import import_module

_HOME = {  # name -> the module that it comes from
    "DATA": "workshop.paths",
    "DEMOS": "workshop.paths",
    "RankFailed": "workshop.launch.ranks",
    "TRAIN": "workshop.paths",
    "check": "workshop.lesson.check",
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
    "up_to_cents": "workshop.account.prices",
    "versions": "workshop.lesson.show",
    "why": "workshop.diagnosis.answer",
}


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'workshop' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
