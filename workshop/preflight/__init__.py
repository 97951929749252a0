"""Is this job right, before anything is spent?

    from workshop import preflight

    for finding in preflight.check(preflight.of(estimator)):
        print(finding.ok, finding.what, finding.reason, finding.remedy, finding.source)

`check` asks nobody: it knows what does not go together, and why. `ask` asks AWS (or the local
endpoint) what only they know: quotas, images, subnets.
"""

from workshop.preflight.asking import ask
from workshop.preflight.checking import check
from workshop.preflight.configuration import BadConfiguration, JobConfiguration, of
from workshop.preflight.finding import Finding, all_ok

__all__ = ["BadConfiguration", "Finding", "JobConfiguration", "all_ok", "ask", "check", "of"]
