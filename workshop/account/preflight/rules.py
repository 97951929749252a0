"""What does not go together in a job. When a rule speaks is here; what it says is in rules.toml.

There is no rule about what the SDK's own estimators refuse at once and with a reason, such as
torch_distributed on CPUs, or subnets without security_group_ids.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from packaging.version import Version

from workshop.account.preflight.facts import (
    Finding,
    bad,
    facts,
    sagemaker_regions,
    source,
    training_types,
    unknown,
)
from workshop.account.preflight.job import JobConfiguration
from workshop.account.prices import Cost, PriceNotKnown, cost
from workshop.paths import SCRIPTS, TRAIN

RULES = Path(__file__).with_name("rules.toml")
NOT_OURS = ("modelparallel",)  # model parallel training, which this course does not teach


def check(configuration: JobConfiguration | None = None, **fields) -> list[Finding]:
    """What can be said of a job without asking AWS: a finding or more for each kind of rule.

    fields: those of JobConfiguration, in place of one. Raises BadConfiguration as it does.
    A kind of rule with which all is well has one finding, with ok=True.
    """
    job, found = configuration or JobConfiguration(**fields), []
    for what, describe in ALL_IS_WELL.items():
        against = _findings(job, what)
        if what == "distribution" and against:
            # The strategies cannot be judged by a dictionary that the SDK does not understand.
            job = replace(job, distribution={})
        found += against or [Finding(what, True, describe(job))]
    found += _findings(job, "processes")
    if isinstance(job.processes, int) and job.processes > 1 and not job.places[0]:
        why = f"how many GPUs and vCPUs {job.instance_type} has is not in prices.toml."
        found.append(unknown("processes", why, f"Make sure that it has {job.processes} or more."))
    return [*found, *_debugger(job), price(job)]


def _debugger(job: JobConfiguration) -> Iterator[Finding]:
    """No rule: who used it before that day may go on, and nobody has seen what others are told."""
    if job.debugger:
        why = (
            "Not known whether your account may: the SDK adds SageMaker Debugger to the job, which "
            "takes no new customers since 2026-07-30."
        )
        do = "Write debugger_hook_config=False."
        yield Finding("debugger", None, why, do, source("debugger"))


def _findings(job: JobConfiguration, what: str) -> list[Finding]:
    """What the rules of one kind say of a job."""
    return [
        bad(
            what,
            rule["reason"].format(job=job, **facts(), **case),
            rule["remedy"].format(job=job, **facts(), **case),
            rule.get("source", ""),
        )
        for name, rule in rules().items()
        if rule["what"] == what
        for case in _cases(WHEN[name](job))
    ]


def _cases(found: object) -> Iterable[dict]:
    """A condition's answer as a dictionary for each finding."""
    if isinstance(found, Iterator):
        return found
    return [{}] if found else []


@cache
def rules() -> dict[str, dict[str, str]]:
    """rules.toml as it is."""
    return tomllib.loads(RULES.read_text(encoding="utf-8"))


def most_usd(job: JobConfiguration) -> float:
    """What a job costs at most, its warm pool included. Raises PriceNotKnown, ValueError."""
    found = cost(job.instance_type, job.instance_count, 0, job.max_run)
    return found.most_usd + _warm_usd(job, found)


def price(job: JobConfiguration) -> Finding:
    """What the job costs at most, and what is expected if seconds are given."""
    if job.instance_count < 1:
        return unknown("cost", "there is no instance to pay for.")
    try:
        found = cost(job.instance_type, job.instance_count, job.seconds or 0, job.max_run)
    except PriceNotKnown as error:
        return unknown("cost", str(error))
    expected = f"about {found.usd:.2f} USD for {job.seconds:g} s, " if job.seconds else ""
    warm = _warm_usd(job, found)
    also = f" (and {warm:.2f} USD for the warm pool)" if warm else ""
    said = f"{expected}at most {found.most_usd:.2f} USD, since max_run is {job.max_run} s{also}. "
    at = f"{found.usd_per_hour:g} USD per instance and hour on demand in {found.region}."
    dated = f"{found.source} (price list of {found.price_date})"
    return Finding("cost", True, said[0].upper() + said[1:] + at, source=dated)


def _warm_usd(job: JobConfiguration, found: Cost) -> float:
    """What the job's instances cost while they are kept warm."""
    return job.instance_count * job.keep_alive / 3600 * found.usd_per_hour


# What is said where no rule objects to a job


def _starts(job: JobConfiguration) -> str:
    if job.enabled:
        return f"{job.strategies} starts the script."
    if job.instance_count > 1:
        return (
            f"No distribution: each of the {job.instance_count} instances runs the script by "
            "itself and knows nothing of the others."
        )
    return "No distribution: one process."


def _strategy(job: JobConfiguration) -> str:
    if not job.enabled:
        return "Nothing to check without a distribution."
    what = job.image_uri or f"{job.framework} {job.framework_version}"
    return f"{job.strategies} goes together with {what} and {job.instance_type}."


def _limits(job: JobConfiguration) -> str:
    how = "spot" if job.use_spot else "on demand"
    warm = f", kept warm for {job.keep_alive} s (billed)" if job.keep_alive else ""
    return f"Ends after {job.max_run} s at the latest; {how}{warm}."


def _network(job: JobConfiguration) -> str:
    if not job.subnets:
        return "SageMaker's own network."
    return f"{', '.join(job.subnets)} with {', '.join(job.security_group_ids)}."


# In the order in which findings are shown
ALL_IS_WELL: dict[str, Callable[[JobConfiguration], str]] = {
    "instances": lambda job: f"{job.instance_count} x {job.instance_type} in {job.region}.",
    "image": lambda job: job.image,
    "distribution": _starts,
    "strategy": _strategy,
    "limits": _limits,
    "network": _network,
}


# Conditions that are more than an expression. Each yields a dictionary for each finding.


def _near(name: str, known: Iterable[str], example: str, count: int = 1) -> str:
    """What a misspelt name may have meant; an example if nothing is near."""
    found = difflib.get_close_matches(name, sorted(known), n=count)
    return f"Did you mean {' or '.join(found)}?" if found else example


def _unknown_type(job: JobConfiguration) -> Iterator[dict]:
    name, known = job.instance_type, training_types()
    if name not in known and f"ml.{name}" not in known:
        yield {"hint": _near(name, known, "For example: ml.c5.xlarge.", count=3)}


def _unknown_region(job: JobConfiguration) -> Iterator[dict]:
    if job.region not in (known := sagemaker_regions()):
        yield {"hint": _near(job.region, known, "For example: us-east-1.")}


def _not_offered(job: JobConfiguration) -> Iterator[dict]:
    if job.offered and job.region not in job.offered:
        yield {"offered": ", ".join(job.offered)}


def _no_image(job: JobConfiguration) -> Iterator[dict]:
    if not job.image_uri and not job.pythons:
        yield {"newest": job.versions[-1], "last": ", ".join(job.versions[-6:])}


def _no_python(job: JobConfiguration) -> Iterator[dict]:
    if not job.image_uri and job.pythons and job.py_version not in job.pythons:
        yield {"pythons": " or ".join(map(repr, job.pythons))}


def _old_python(job: JobConfiguration) -> bool:
    """Whether one of the kit's scripts would fail on the Python of its image."""
    known = facts()["scripts"]
    if not (job.python and job.python < Version(known["first_python"])):
        return False
    on_3_9 = job.framework == "tensorflow" and job.version
    if on_3_9 and on_3_9.release[:2] == Version(known["tensorflow_on_3_9"]).release:
        return job.script in _own_scripts(SCRIPTS) - _own_scripts(TRAIN)
    return job.script in _own_scripts(SCRIPTS)


@cache
def _own_scripts(folder: Path) -> frozenset[str]:
    """The texts of the kit's scripts. One that somebody has changed is not known here."""
    return frozenset(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))


def _unresolved_image(job: JobConfiguration) -> Iterator[dict]:
    if job.py_version in job.pythons:
        try:
            _ = job.image
        except ValueError as error:
            yield {"error": error}


def _unknown_keys(job: JobConfiguration) -> Iterator[dict]:
    known, meant = list(facts()["strategies"]), facts()["meant"]
    for key in job.distribution:
        if key not in known:
            right = meant.get(key.lower()) or "".join(difflib.get_close_matches(key, known, n=1))
            hint = f'Did you mean "{right}"?' if right else f"Known keys: {', '.join(known)}."
            yield {"key": key, "hint": hint}


def _unknown_options(job: JobConfiguration) -> Iterator[dict]:
    for key, value in _dictionaries(job).items():
        known = facts()["strategies"][key]
        for name in value:
            if name not in known and name not in NOT_OURS:
                right = "".join(difflib.get_close_matches(name, known, n=1))
                takes = f"{key} takes: {', '.join(known)}."
                hint = f'Did you mean "{right}"?' if right else takes
                yield {"key": key, "name": name, "hint": hint}


def _no_dictionaries(job: JobConfiguration) -> Iterator[dict]:
    for key, value in job.known.items():
        if not isinstance(value, Mapping):
            yield {"key": key, "value": value}


def _not_true(job: JobConfiguration) -> Iterator[dict]:
    for key, value in _dictionaries(job).items():
        if value.get("enabled") not in (True, False, None):
            yield {"key": key, "value": value["enabled"]}


def _all_off(job: JobConfiguration) -> Iterator[dict]:
    found = [value.get("dataparallel", value) for value in _dictionaries(job).values()]
    off = [isinstance(one, Mapping) and one.get("enabled", False) is False for one in found]
    if off and all(off) and len(off) == len(job.known):
        yield {"keys": " and ".join(job.known)}


def _dictionaries(job: JobConfiguration) -> dict[str, Mapping]:
    return {key: value for key, value in job.known.items() if isinstance(value, Mapping)}


def _idle_gpus(job: JobConfiguration) -> Iterator[dict]:
    if _on(job, "parameter_server", "tensorflow") and job.gpus > 1:
        yield {"idle": job.gpus - 1}


def _no_horovod(job: JobConfiguration) -> bool:
    # mpirun starts other scripts as well: Open MPI and mpi4py are in all of these images.
    torch_alone = job.framework == "pytorch" and job.script and "horovod" not in job.script
    return bool(job.mpi) and _newer(job, job.last_horovod) and not torch_alone


def _smddp_is_over(job: JobConfiguration) -> bool:
    key = {"tensorflow": "last_tensorflow", "pytorch": "last_pytorch_image"}[job.framework]
    return job.smddp and _newer(job, facts()["smddp"][key])


def _smddp_type(job: JobConfiguration) -> str:
    """Why SMDDP does not run on the job's type: a family, "CPU" or "other"; empty if it does."""
    if not job.smddp or job.instance_type in facts()["smddp"]["types"]:
        return ""
    if job.family.startswith(("p5", "p3")):
        return job.family[:2]
    return "CPU" if job.places[1] == "vCPU" else "other"


def _efa_over_subnets(job: JobConfiguration) -> Iterator[dict]:
    if job.efa and job.instance_count > 1 and (count := len(set(job.subnets))) > 1:
        yield {"count": count}


def _on(job: JobConfiguration, strategy: str, framework: str) -> bool:
    return strategy in job.enabled and job.framework == framework


def _newer(job: JobConfiguration, last: str) -> bool:
    return bool(job.version) and job.version > Version(last)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


# A rule's name in rules.toml -> whether it objects to a job; or a dictionary for each finding,
# with what its sentences name beside the job.
WHEN: dict[str, Callable[[JobConfiguration], object]] = {
    # instances
    "no instance": lambda job: job.instance_count < 1,
    "EC2 type": lambda job: f"ml.{job.instance_type}" in training_types(),
    "unknown type": _unknown_type,
    "unknown region": _unknown_region,
    "not offered": _not_offered,
    # processes
    "no process": lambda job: job.mpi and not _is_count(job.processes),
    "too many processes": lambda job: (
        _is_count(job.processes) and job.processes > job.places[0] > 0
    ),
    # image
    "no image": _no_image,
    "no Python": _no_python,
    "old Python": _old_python,
    "unresolved image": _unresolved_image,
    # distribution
    "unknown key": _unknown_keys,
    "no dictionary": _no_dictionaries,
    "unknown option": _unknown_options,
    "enabled is not True": _not_true,
    "not enabled": _all_off,
    "two at once": lambda job: (
        len(job.enabled) > 1 and job.enabled != {"smdistributed", "torch_distributed"}
    ),
    # strategy
    "servers for PyTorch": lambda job: _on(job, "parameter_server", "pytorch"),
    "servers on one instance": lambda job: (
        _on(job, "parameter_server", "tensorflow") and job.instance_count == 1
    ),
    "servers and idle GPUs": _idle_gpus,
    "multi-worker for PyTorch": lambda job: _on(job, "multi_worker_mirrored_strategy", "pytorch"),
    "multi-worker, too old": lambda job: (
        _on(job, "multi_worker_mirrored_strategy", "tensorflow")
        and job.version
        and job.version < Version(facts()["limits"]["first_multi_worker_mirrored"])
    ),
    "no Horovod": _no_horovod,
    "Horovod on CPUs": lambda job: (
        _on(job, "mpi", "pytorch")
        and "horovod" in job.script
        and not job.image_uri
        and not _newer(job, job.last_horovod)
        and job.places[1] == "vCPU"
    ),
    "MPI options": lambda job: not isinstance(job.mpi_options, str),
    "NCCL_DEBUG": lambda job: "--NCCL_DEBUG" in str(job.mpi_options),
    "torchrun for TensorFlow": lambda job: _on(job, "torch_distributed", "tensorflow"),
    # SMDDP: few types, few versions, one launcher
    "SMDDP on P5": lambda job: _smddp_type(job) == "p5",
    "SMDDP on P3": lambda job: _smddp_type(job) == "p3",
    "SMDDP on CPUs": lambda job: _smddp_type(job) == "CPU",
    "SMDDP on other types": lambda job: _smddp_type(job) == "other",
    "SMDDP, TensorFlow too new": lambda job: job.framework == "tensorflow" and _smddp_is_over(job),
    "SMDDP, PyTorch too new": lambda job: job.framework == "pytorch" and _smddp_is_over(job),
    "SMDDP by torchrun": lambda job: (
        "smddp" in job.script
        and job.enabled == {"torch_distributed"}
        and job.framework == "pytorch"
    ),
    # limits: what SageMaker does not refuse itself, at once and for nothing
    "spot without checkpoints": lambda job: job.use_spot and not job.checkpoint_s3_uri,
    # network
    "EFA over subnets": _efa_over_subnets,
}
