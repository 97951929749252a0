"""Is this job right, before anything is spent?

    from workshop.account import preflight

    for finding in preflight.check(preflight.of(estimator)):
        print(finding.ok, finding.what, finding.reason, finding.remedy, finding.source)

`check` asks nobody: it knows what does not go together, and why (the table `rules.RULES`). `ask`
asks AWS (or the emulator) what only they know: quotas, images, subnets.
"""

from workshop.account.preflight.asking import ask, serving
from workshop.account.preflight.facts import Finding, all_ok
from workshop.account.preflight.job import BadConfiguration, JobConfiguration, of
from workshop.account.preflight.rules import check, most_usd

__all__ = [
    "BadConfiguration",
    "Finding",
    "JobConfiguration",
    "all_ok",
    "ask",
    "check",
    "most_usd",
    "of",
    "serving",
]
