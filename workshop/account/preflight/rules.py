"""The rules: one function for each way in which the parts of a job do not go together.

A rule's function yields a reason and a remedy for each case that it finds; its name is the rule's
id, and `@rule` says what the finding is about and where AWS documents the fact. There is no rule
for what the SDK or SageMaker refuses at once, for free and with a clear reason.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from workshop.account.preflight.facts import Finding, facts, source, unknown
from workshop.account.preflight.job import JobConfiguration
from workshop.account.prices import up_to_cents

Cases = Iterator[tuple[str, str]]  # a reason and a remedy for each


@dataclass(frozen=True)
class Rule:
    """topic: of its findings. source_name: under [sources] of facts.toml."""

    topic: str
    source_name: str
    match: Callable[[JobConfiguration], Cases]

    def findings(self, job: JobConfiguration) -> Iterator[Finding]:
        """What the rule says against a job."""
        for reason, remedy in self.match(job):
            yield Finding(self.topic, False, reason, remedy, source(self.source_name))


RULES: dict[str, Rule] = {}  # in the order in which findings are shown


def rule(topic: str, source_name: str):
    """Add a function to RULES under its name."""

    def add(match: Callable[[JobConfiguration], Cases]):
        RULES[match.__name__] = Rule(topic, source_name, match)
        return match

    return add


def check(configuration: JobConfiguration | None = None, **fields) -> list[Finding]:
    """What can be said of a job without asking AWS: what is against it, and what it costs.

    fields: those of JobConfiguration, in place of one. Raises BadConfiguration as it does.
    A job that no rule speaks against has a finding with ok=True that says how it starts.
    """
    job = configuration or JobConfiguration(**fields)
    findings: list[Finding] = []
    for each in RULES.values():
        # A strategy cannot be judged by a dictionary that the SDK does not understand.
        if each.topic != "strategy" or all(row.topic != "distribution" for row in findings):
            findings += each.findings(job)
    return [*(findings or [Finding("job", True, _start(job))]), price(job)]


def _start(job: JobConfiguration) -> str:
    """How a good job starts."""
    if job.enabled:
        start = f"{job.strategies} starts the script"
    elif job.instance_count > 1:
        start = "without a distribution, each instance runs the script and knows of no other"
    else:
        start = "one process runs the script"
    image = job.image_uri or f"{job.framework} {job.framework_version}"
    return f"In {image}, in {job.region}: {start}."


# The dictionary `distribution`


@rule("distribution", "sdk")
def unknown_key(job: JobConfiguration) -> Cases:
    strategies, meant = facts()["strategies"], facts()["meant"]
    for key in (key for key in job.distribution if key not in strategies):
        if key.lower() in meant:
            hint = f'Did you mean "{meant[key.lower()]}"?'
        else:
            hint = _near(key, strategies, f"Known keys: {', '.join(strategies)}.")
        yield f'The SDK ignores the unknown key "{key}": the job would start without it.', hint


@rule("distribution", "sdk")
def unknown_option(job: JobConfiguration) -> Cases:
    for key, options in job.known.items():
        # Model parallel training, which this course does not teach, has options of its own.
        names = [*facts()["strategies"][key], "modelparallel"]
        for name in options if isinstance(options, Mapping) else ():
            if name not in names:
                hint = _near(name, names, f"{key} takes: {', '.join(names)}.")
                yield (
                    f'"{name}" in {key} is unknown to the SDK, which leaves it out silently.',
                    hint,
                )


@rule("distribution", "sdk")
def not_enabled(job: JobConfiguration) -> Cases:
    for key in (key for key in job.known if key not in job.enabled):
        # Beside another strategy, one that is off on purpose is fine.
        if job.state(key) is None or not job.enabled:
            yield (
                f"{key} is given but not enabled: {job.distribution[key]!r}.",
                f'Write {{"{key}": {{"enabled": True}}}}, without quotation marks around True, or '
                "leave it out.",
            )


@rule("distribution", "sdk")
def two_at_once(job: JobConfiguration) -> Cases:
    if len(job.enabled) > 1 and job.enabled != {"smdistributed", "torch_distributed"}:
        yield (
            f"{job.strategies} are enabled together. A script is started in one way.",
            "Keep the one that the script is written for.",
        )


# Strategies


@rule("strategy", "sdk-versions")
def other_framework(job: JobConfiguration) -> Cases:
    for strategy in sorted(job.enabled & facts()["frameworks"].keys()):
        owner = facts()["frameworks"][strategy]
        if job.framework != owner["name"]:
            yield (
                f"{strategy} works with {owner['name']} only: {owner['reason']}.",
                f"For {job.framework} use {owner['instead']}.",
            )


@rule("strategy", "tensorflow-toolkit")
def servers_on_one_instance(job: JobConfiguration) -> Cases:
    if job.uses("parameter_server", "tensorflow") and job.instance_count == 1:
        yield (
            "parameter_server with 1 instance: servers are started only where there are several "
            "hosts, so the script would find no TF_CONFIG.",
            "Give instance_count=2 or more.",
        )


@rule("strategy", "sdk-versions")
def servers_and_idle_gpus(job: JobConfiguration) -> Cases:
    if job.uses("parameter_server", "tensorflow") and job.gpus > 1:
        yield (
            f"parameter_server starts one worker on each instance, so {job.gpus - 1} of the "
            f"{job.gpus} GPUs of {job.instance_type} that you pay for would idle.",
            "Take a type with one GPU or none, or mpi with a process for each GPU.",
        )


def needs_horovod(script: str) -> bool:
    """Whether a PyTorch script can average by Horovod alone."""
    return "horovod" in script and "torch.distributed" not in script


@rule("strategy", "images")
def no_horovod(job: JobConfiguration) -> Cases:
    last = facts()["horovod"][job.framework]
    # mpirun starts other scripts as well: Open MPI and mpi4py are in all of these images.
    torch_alone = job.framework == "pytorch" and job.script and not needs_horovod(job.script)
    if "mpi" in job.enabled and job.newer_than(last) and not torch_alone:
        yield (
            f"mpi starts Horovod scripts, and AWS's {job.framework} images have no Horovod after "
            f"version {last}: `import horovod` would fail in {job.version}.",
            f'Write framework_version="{last}", or give the image_uri of an image with Horovod. A '
            "PyTorch script that uses torch.distributed alone may be started by mpi.",
        )


@rule("strategy", "images")
def horovod_on_cpus(job: JobConfiguration) -> Cases:
    has_horovod = job.version and not job.newer_than(facts()["horovod"][job.framework])
    by_horovod = job.uses("mpi", "pytorch") and needs_horovod(job.script)
    if has_horovod and by_horovod and job.processors[1] == "vCPU":
        yield (
            "AWS's PyTorch images have Horovod in those for GPUs only: `import horovod` would "
            f"fail on {job.instance_type}.",
            "Take a GPU type such as ml.g4dn.xlarge, or start a script of torch.distributed alone.",
        )


# SMDDP: few types, few versions, one launcher

P4D = facts()["smddp"]["types"]
TAKE_P4D = f"Take {' or '.join(P4D)}"


@rule("strategy", "smddp-p5")
def smddp_on_p5(job: JobConfiguration) -> Cases:
    if job.smddp and job.family.startswith("p5"):
        yield (
            f"SMDDP does not support P5, so not {job.instance_type} either.",
            f"{TAKE_P4D}; on P5 use torch_distributed with the backend nccl.",
        )


@rule("strategy", "smddp")
def smddp_on_other_types(job: JobConfiguration) -> Cases:
    if not job.smddp or job.instance_type in P4D or job.family.startswith("p5"):
        return
    if job.processors[1] == "vCPU":
        yield (
            f"SMDDP moves gradients between GPUs; {job.instance_type} has none. The SDK would "
            "send the job all the same.",
            f"{TAKE_P4D}, or for CPUs mpi.",
        )
    else:
        yield (
            f"SMDDP runs on {' and '.join(P4D)} only, not on {job.instance_type}.",
            "Take one of the two, or use torch_distributed with the backend nccl.",
        )


@rule("strategy", "images")
def smddp_version(job: JobConfiguration) -> Cases:
    last, horovod = facts()["smddp"]["last"][job.framework], facts()["horovod"]["tensorflow"]
    if not job.smddp or not job.newer_than(last):
        return
    if job.framework == "tensorflow":
        yield (
            f"SMDDP has left TensorFlow: {last} was the last version with it, not {job.version}.",
            f'Write framework_version="{last}", or use mpi (up to {horovod}), or PyTorch.',
        )
    else:
        yield (
            f"PyTorch {job.version}'s image has no SMDDP; the last with it is {last}.",
            f"Keep smdistributed and give the image_uri of {last}: the SDK checks no version of "
            "an image that you name.",
        )


# The backend by name; a script that takes it as an option may use another.
STARTS_SMDDP = re.compile(r"""init_process_group\(\s*(backend\s*=\s*)?["']smddp["']""")


@rule("strategy", "smddp-launcher")
def smddp_by_torchrun(job: JobConfiguration) -> Cases:
    if job.enabled == {"torch_distributed"} and STARTS_SMDDP.search(job.script):
        yield (
            "The script uses SMDDP, and torch_distributed starts it by torchrun: SMDDP's "
            "AllReduce works under mpirun only.",
            'Write {"smdistributed": {"dataparallel": {"enabled": True}}}, which runs mpirun.',
        )


# Processes, limits


@rule("processes", "ec2-types")
def too_many_processes(job: JobConfiguration) -> Cases:
    count, kind = job.processors
    if job.processes > count > 0:
        yield (
            f"processes_per_host is {job.processes}, but {job.instance_type} has {count} {kind}"
            f"{'s' * (count != 1)}: some processes would have to share one.",
            f"Give {count} at most.",
        )


@rule("limits", "spot")
def spot_without_checkpoints(job: JobConfiguration) -> Cases:
    if job.use_spot and not job.checkpoint_s3_uri:
        yield (
            "A spot job without checkpoints begins again from nothing each time AWS takes its "
            "instances away.",
            "Give checkpoint_s3_uri, and let the script save to /opt/ml/checkpoints.",
        )


def _near(name: str, known: Iterable[str], otherwise: str) -> str:
    """What a misspelt key may have meant; `otherwise` if nothing is near."""
    matches = difflib.get_close_matches(name, known, n=1)
    return f'Did you mean "{matches[0]}"?' if matches else otherwise


# What it costs


def price(job: JobConfiguration) -> Finding:
    """What the job costs at most."""
    try:
        job_cost = job.cost
    except ValueError as error:  # PriceNotKnown is one
        return unknown("cost", str(error))
    limit = f"At most {up_to_cents(job_cost.most_usd):.2f} USD, since max_run is {job.max_run} s."
    rate = f"{job_cost.usd_per_hour:g} USD per instance and hour on demand in {job_cost.region}."
    dated = f"{job_cost.source} (price list of {job_cost.price_date})"
    return Finding("cost", True, f"{limit} {rate}", source=dated)
