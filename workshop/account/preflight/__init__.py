"""Is this job right, before anything is spent?

    from workshop.account import preflight

    for finding in preflight.check(preflight.JobConfiguration.from_estimator(estimator)):
        print(finding.ok, finding.topic, finding.reason, finding.remedy, finding.source)

`check` makes no request: the rules (`rules.py`) know which parts of a job do not go together. `ask`
asks AWS (or the emulator) what only they know: quotas, subnets.
"""

from workshop.account.preflight.asking import ask
from workshop.account.preflight.facts import Finding, all_ok
from workshop.account.preflight.job import BadConfiguration, JobConfiguration
from workshop.account.preflight.rules import check

__all__ = [
    "BadConfiguration",
    "Finding",
    "JobConfiguration",
    "all_ok",
    "ask",
    "check",
]
