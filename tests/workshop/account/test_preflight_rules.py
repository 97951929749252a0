"""What does not go together gets its own reason and remedy; what goes together passes."""

import pytest

from workshop.account.preflight import BadConfiguration, JobConfiguration, all_ok, check
from workshop.account.preflight.rules import RULES

# A job that is right. Each of the others differs from it.
RIGHT = {
    "framework": "tensorflow",
    "framework_version": "2.12.0",
    "py_version": "py310",
    "instance_type": "ml.c5.xlarge",
    "instance_count": 2,
}
PYTORCH = {"framework": "pytorch", "framework_version": "2.2.0", "py_version": "py310"}
P4D = {"instance_type": "ml.p4d.24xlarge"}
IMAGE = {"image_uri": "0" * 12 + ".dkr.ecr.us-east-1.amazonaws.com/horovod:1"}
SPOT = {"use_spot": True, "checkpoint_s3_uri": "s3://bucket/checkpoints"}
VPC = {"subnets": ("subnet-a",), "security_group_ids": ("sg-a",)}
MPI = {"distribution": {"mpi": {"enabled": True}}}
SERVERS = {"distribution": {"parameter_server": {"enabled": True}}}
MULTI_WORKER = {"distribution": {"multi_worker_mirrored_strategy": {"enabled": True}}}
TORCH = {"distribution": {"torch_distributed": {"enabled": True}}}
SMDDP = {"distribution": {"smdistributed": {"dataparallel": {"enabled": True}}}}
G5 = {"instance_type": "ml.g5.xlarge"}


def mpi(**options):
    """A distribution that starts mpirun with these options."""
    return {"distribution": {"mpi": {"enabled": True, **options}}}


def starts(**entries):
    """A distribution of these entries, in an image without Horovod."""
    return {"distribution": entries, "framework_version": "2.14.1"}


def version(framework_version, py_version="py310"):
    return {"framework_version": framework_version, "py_version": py_version}


def job(*changes, **others) -> JobConfiguration:
    """RIGHT with changes."""
    fields = dict(RIGHT)
    for change in (*changes, others):
        fields |= change
    return JobConfiguration(**fields)


def pytorch(*changes, **others) -> JobConfiguration:
    """RIGHT in PyTorch, with changes."""
    return job(PYTORCH, *changes, **others)


GOOD = {
    "one instance": job(instance_count=1),
    "without a number, one process": job(MPI),
    "horovod, every vCPU": job(mpi(processes_per_host=4)),
    "horovod in an image of one's own": job(IMAGE, MPI, framework_version="2.18.0"),
    "horovod for PyTorch": pytorch(
        version("1.13.1", "py39"),
        mpi(processes_per_host=1, custom_mpi_options="-x NCCL_DEBUG=INFO"),
        instance_type="ml.g4dn.xlarge",
    ),
    "PyTorch by mpi, without Horovod": pytorch(MPI, script="import torch"),
    "parameter servers": job(SERVERS, framework_version="2.14.1", instance_count=3),
    "multi-worker": job(MULTI_WORKER),
    "PyTorch, no distribution": pytorch(),
    "SMDDP": pytorch(P4D, SMDDP),
    "SMDDP for TensorFlow": job(P4D, SMDDP, version("2.11.0", "py39")),
    "torchrun": pytorch(G5, TORCH, version("2.8.0", "py312")),
    "torchrun on CPUs": pytorch(IMAGE, TORCH),
    "spot": job(SPOT),
    "VPC, EFA": pytorch(P4D, VPC, SMDDP),
    "a short version": job(framework_version="2.12"),
}
HOROVOD = "import horovod.torch as hvd"
# The one rule that speaks, a job against which it does, and what the finding says beyond the rule's
# fixed words.
BAD = [
    ("unknown_key", job(starts(horovod={"enabled": True})), 'Did you mean "mpi"?'),
    ("unknown_key", job(starts(parameter_sever={"enabled": True})), '"parameter_server"?'),
    ("unknown_option", job(mpi(custom_mpi_option="-x A=1")), 'mean "custom_mpi_options"?'),
    ("not_enabled", job(starts(mpi=True)), 'Write {"mpi": {"enabled": True}}'),
    ("not_enabled", job(starts(smdistributed=True)), ""),
    ("not_enabled", job(starts(parameter_server={"enabled": "true"})), ""),
    ("not_enabled", job(starts(mpi={"processes_per_host": 2})), "mpi is given but not enabled"),
    (
        "two_at_once",
        job(distribution=MPI["distribution"] | SERVERS["distribution"]),
        "mpi and parameter_server are enabled",
    ),
    ("too_many_processes", job(mpi(processes_per_host=8)), "ml.c5.xlarge has 4 vCPUs:"),
    ("too_many_processes", job(G5, mpi(processes_per_host=4)), "ml.g5.xlarge has 1 GPU:"),
    ("other_framework", pytorch(SERVERS), "start no servers"),
    ("other_framework", pytorch(MULTI_WORKER), "torch_distributed"),
    ("other_framework", job(G5, TORCH), "runs torchrun"),
    ("servers_on_one_instance", job(SERVERS, instance_count=1), ""),
    ("servers_and_idle_gpus", job(P4D, SERVERS), "7 of the 8 GPUs"),
    ("no_horovod", job(MPI, framework_version="2.14.1"), "would fail in 2.14.1. Write framework"),
    ("no_horovod", pytorch(MPI), ""),
    ("no_horovod", pytorch(MPI, script=HOROVOD), ""),
    ("no_horovod", job(MPI, framework_version="2.14.1", script="import os"), ""),
    ("horovod_on_cpus", pytorch(version("1.13.1", "py39"), MPI, script=HOROVOD), ""),
    ("smddp_on_p5", pytorch(SMDDP, instance_type="ml.p5.48xlarge"), "ml.p4de.24xlarge; on P5"),
    ("smddp_on_other_types", pytorch(SMDDP), "between GPUs"),
    ("smddp_on_other_types", pytorch(G5, SMDDP), "one of the two"),
    ("smddp_version", job(P4D, SMDDP), 'framework_version="2.11.0"'),
    (
        "smddp_version",
        pytorch(P4D, version("2.6.0", "py312"), SMDDP),
        "2.6.0's image has no SMDDP; the last with it is 2.5.1",
    ),
    ("smddp_by_torchrun", pytorch(P4D, TORCH, script='init_process_group("smddp")'), ""),
    ("spot_without_checkpoints", job(SPOT, checkpoint_s3_uri=""), ""),
]


@pytest.mark.parametrize(("rule", "configuration", "text"), BAD, ids=[row[0] for row in BAD])
def test_a_bad_job_is_told_what_why_and_what_to_do(rule, configuration, text):
    (finding,) = [row for row in check(configuration) if row.ok is False]
    assert [name for name, each in RULES.items() if list(each.match(configuration))] == [rule]
    assert finding.topic == RULES[rule].topic
    assert finding.reason.endswith(".")
    assert finding.remedy.endswith((".", "?")) and finding.source.startswith("https://")
    assert text in f"{finding.reason} {finding.remedy}"


def test_every_rule_speaks_against_one_of_them():
    assert {rule for rule, *_ in BAD} == RULES.keys()


def test_a_strategy_is_not_judged_by_a_dictionary_that_the_sdk_does_not_understand():
    wrong = job(SERVERS, instance_count=1)
    assert [row.topic for row in check(wrong) if row.ok is False] == ["strategy"]
    wrong = job(distribution=SERVERS["distribution"] | {"mip": {}}, instance_count=1)
    assert [row.topic for row in check(wrong) if row.ok is False] == ["distribution"]


def test_beside_another_strategy_one_may_be_off():
    off = MPI["distribution"] | {"parameter_server": {"enabled": False}}
    assert all_ok(check(job(distribution=off)))


@pytest.mark.parametrize("name", GOOD)
def test_a_good_job_passes(name):
    findings = check(GOOD[name])
    assert all_ok(findings), [row for row in findings if row.ok is False]
    assert (findings[0].topic, findings[0].ok) == ("job", True)


def test_several_mistakes_are_all_told():
    wrong = job(distribution={"mip": {}}, use_spot=True)
    topics = [row.topic for row in check(wrong) if row.ok is False]
    assert topics == ["distribution", "limits"]


def cost_of(configuration):
    """The finding about the cost."""
    return next(row for row in check(configuration) if row.topic == "cost")


def test_the_cost_is_bounded_by_max_run_with_date_and_source():
    price = cost_of(job(max_run=3480))
    assert price.reason.startswith("At most 0.41 USD, since max_run is 3480 s")
    assert "price list of 2026-09-27" in price.source


def test_what_is_not_known_is_said_and_does_not_fail():
    findings = check(job(mpi(processes_per_host=2), instance_type="ml.m8i-flex.large"))
    unknown = {row.topic: row.reason for row in findings if row.ok is None}
    assert unknown.keys() == {"cost"} and all_ok(findings)
    assert all("ml.m8i-flex.large" in reason for reason in unknown.values())


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"framework": "mxnet"}, "framework is 'mxnet'; it must be one of: tensorflow, pytorch"),
        ({"distribution": "mpi"}, "distribution is 'mpi'; it must be a dictionary"),
    ],
)
def test_a_value_that_no_job_could_have_is_refused_at_the_door(changes, message):
    with pytest.raises(BadConfiguration, match=message):
        job(**changes)


def test_only_estimators_of_the_frameworks_are_read():
    with pytest.raises(BadConfiguration, match="str is not an estimator"):
        JobConfiguration.from_estimator("an estimator")
    assert isinstance(job(), JobConfiguration)


def test_without_a_number_mpi_starts_a_process_for_each_gpu():
    """As the toolkit does: 8 GPUs, then no GPU."""
    assert job(MPI, instance_type="ml.p4d.24xlarge").processes == 8
    assert job(MPI).processes == 1 and job(TORCH).processes == 0
