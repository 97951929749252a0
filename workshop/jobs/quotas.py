"""What a class needs of AWS's quotas, and the words to ask for it.

print(quotas.request(quotas.needed(20), 20, "us-east-1"))
"""

from __future__ import annotations

from collections.abc import Mapping

from workshop.account.preflight.asking import ALL_INSTANCES
from workshop.account.stacks import template_parameters
from workshop.jobs.lesson_jobs import JOBS, lesson_jobs, lesson_parameters

WHERE = "Service Quotas, AWS services, Amazon SageMaker"


def needed(seats: int, notebooks: bool = False) -> dict[str, int]:
    """Quota name -> what it must be if all seats run the same cell at the same time.

    A lesson runs its jobs one after the other. notebooks: each seat has a notebook instance, too.
    """
    each: dict[str, int] = {}
    for job in (job for lesson in JOBS for job in lesson_jobs(lesson)):
        usages = ["training job usage"] + ["spot training job usage"] * bool(job.spot)
        for name in (ALL_INSTANCES, *(f"{job.instance_type} for {usage}" for usage in usages)):
            each[name] = max(each.get(name, 0), job.instance_count)
    for kind in filter(None, (lesson_parameters(lesson).get("serving_type") for lesson in JOBS)):
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
