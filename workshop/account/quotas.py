"""What a class needs of AWS's quotas, and the words to ask for it.

print(quotas.request(quotas.needed(20), 20, "us-east-1"))
"""

from __future__ import annotations

from collections.abc import Mapping

from workshop.account.preflight.asking import ALL_INSTANCES
from workshop.jobs.lesson_jobs import JOBS, lesson_jobs, lesson_parameters
from workshop.jobs.seat import template_parameters

WHERE = "Service Quotas, AWS services, Amazon SageMaker"


def at_once() -> dict[str, int]:
    """Instance type -> the most that one seat uses at once in training jobs."""
    most: dict[str, int] = {}
    for job in (job for lesson in JOBS for job in lesson_jobs(lesson)):
        most[job.instance_type] = max(most.get(job.instance_type, 0), job.instance_count)
    return most


def needed(seats: int, notebooks: bool = False) -> dict[str, int]:
    """Quota name -> what it must be if all seats run the same cell at the same time.

    A lesson runs its jobs one after the other. notebooks: each seat has a notebook instance, too.
    """
    each = {f"{kind} for training job usage": count for kind, count in at_once().items()}
    each[ALL_INSTANCES] = max(at_once().values())
    for job in (job for lesson in JOBS for job in lesson_jobs(lesson) if job.spot):
        name = f"{job.instance_type} for spot training job usage"
        each[name] = max(each.get(name, 0), job.instance_count)
    for lesson in JOBS:
        if kind := lesson_parameters(lesson).get("serving_type"):
            each |= {f"{kind} for endpoint usage": 1, f"{kind} for transform job usage": 1}
    if notebooks:
        kind = template_parameters("notebook")["InstanceType"]["Default"]
        each[f"{kind} for notebook instance usage"] = 1
    return {name: seats * count for name, count in each.items()}


def request(
    needs: Mapping[str, int], seats: int, region: str, have: Mapping[str, float] | None = None
) -> str:
    """A request for the quotas that are too low, to be pasted; a sentence if none is.

    have: quota name -> its value now; without it all are asked for. One that it does not name is
    asked for, too.
    """
    lacking = {name: n for name, n in needs.items() if not have or have.get(name, 0) < n}
    if not lacking:
        return f"Every quota is large enough for {seats} seats in {region}."
    lines = [
        f"Region: {region}. Quotas of Amazon SageMaker ({WHERE}):",
        "",
        *(
            f"- {name}: please raise to {count}"
            + (f" (now {have[name]:g})" if have and name in have else "")
            for name, count in lacking.items()
        ),
        "",
        f"Reason: a workshop on data-parallel training with {seats} learners, all of whom run the "
        "same training jobs at the same time. Jobs take a few minutes each, on CPU instances; "
        "their run time and instance types are limited by IAM policies. Date of the class: [DATE].",
    ]
    return "\n".join(lines)
