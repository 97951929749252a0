"""All rules over one job."""

from __future__ import annotations

from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.finding import Finding
from workshop.preflight.rules import images, keys, limits, network, resources, strategies

RULES = (resources, images, keys, strategies, limits, network)


def check(job: JobConfiguration) -> list[Finding]:
    """What can be said of a job without asking AWS: a finding or more for each kind of rule.

    A kind of rule with which all is well has one finding, with ok=True.
    """
    findings = []
    for rule in RULES:
        found = list(rule.check(job))
        if not any(one.ok is False for one in found):
            findings.append(Finding(rule.WHAT, True, rule.describe(job)))
        findings += found
    return [*findings, limits.price(job)]
