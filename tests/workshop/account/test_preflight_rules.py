"""What does not go together gets its own reason and remedy; what goes together passes."""

import pytest
from sagemaker.pytorch import PyTorch

from workshop.account.preflight import BadConfiguration, JobConfiguration, all_ok, check, of
from workshop.account.preflight.rules import WHEN, _cases, rules
from workshop.jobs.job_preview import preview_session
from workshop.paths import TRAIN

TRAIN_SCRIPT = (TRAIN / "train_tf.py").read_text(encoding="utf-8")
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


def job(*changes, **more) -> JobConfiguration:
    """RIGHT with changes."""
    fields = dict(RIGHT)
    for one in (*changes, more):
        fields |= one
    return JobConfiguration(**fields)


def pytorch(*changes, **more) -> JobConfiguration:
    """RIGHT in PyTorch, with changes."""
    return job(PYTORCH, *changes, **more)


GOOD = {
    "one instance": job(instance_count=1),
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
    "warm pool": job(keep_alive=600),
    "VPC, EFA": pytorch(P4D, VPC, SMDDP),
    "a short version": job(framework_version="2.12"),
    "Europe": pytorch(P4D, SMDDP, region="eu-west-1"),
}
HOROVOD = "import horovod.torch as hvd"
# The one rule that speaks (its name in rules.toml), a job against which it does, and what the
# finding says beyond the rule's fixed words.
BAD = [
    ("no instance", job(instance_count=0), ""),
    ("EC2 type", job(instance_type="m5.xlarge"), 'Write "ml.m5.xlarge"'),
    ("unknown type", job(instance_type="ml.c5.xlrage"), "Did you mean ml.c5.xlarge"),
    ("unknown region", job(region="us-east-9"), "Did you mean us-east-"),
    ("not offered", pytorch(P4D, SMDDP, region="eu-west-3"), "us-west-2"),
    ("no image", job(framework_version="2.15"), "newest that it knows is 2.1"),
    ("no Python", job(py_version="py38"), "'py310'"),
    (
        "old Python",
        job(version("2.10.1", "py39"), script=TRAIN_SCRIPT),
        "needs Python 3.10; the image of tensorflow 2.10.1 has 3.9",
    ),
    ("unresolved image", job(region="eusc-de-east-1"), "Unsupported region"),
    ("unknown key", job(starts(horovod={"enabled": True})), 'Did you mean "mpi"?'),
    ("unknown key", job(starts(parameter_sever={"enabled": True})), '"parameter_server"?'),
    ("no dictionary", job(starts(mpi=True)), 'Write {"mpi": {"enabled": True}}'),
    ("no dictionary", job(starts(smdistributed=True)), ""),
    (
        "unknown option",
        job(mpi(custom_mpi_option="-x A=1")),
        'Did you mean "custom_mpi_options"?',
    ),
    ("enabled is not True", job(starts(parameter_server={"enabled": "true"})), ""),
    ("not enabled", job(starts(mpi={"processes_per_host": 2})), "mpi is given but not enabled"),
    (
        "two at once",
        job(distribution=MPI["distribution"] | SERVERS["distribution"]),
        "mpi and parameter_server are enabled",
    ),
    ("no process", job(mpi(processes_per_host=0)), ""),
    ("no process", job(mpi(processes_per_host="2")), ""),
    ("too many processes", job(mpi(processes_per_host=8)), "ml.c5.xlarge has 4 vCPUs"),
    ("too many processes", job(G5, mpi(processes_per_host=4)), "ml.g5.xlarge has 1 GPU:"),
    ("servers for PyTorch", pytorch(SERVERS), ""),
    ("servers on one instance", job(SERVERS, instance_count=1), ""),
    ("servers and idle GPUs", job(P4D, SERVERS), "7 of the 8 GPUs"),
    ("multi-worker for PyTorch", pytorch(MULTI_WORKER), ""),
    (
        "multi-worker, too old",
        job(version("2.8.0", "py39"), MULTI_WORKER),
        "2.9 or newer, not 2.8.0",
    ),
    (
        "no Horovod",
        job(MPI, framework_version="2.14.1"),
        'would fail in 2.14.1. Write framework_version="2.12.0"',
    ),
    ("no Horovod", pytorch(MPI), ""),
    ("no Horovod", pytorch(MPI, script=HOROVOD), ""),
    ("no Horovod", job(MPI, framework_version="2.14.1", script="import os"), ""),
    ("Horovod on CPUs", pytorch(version("1.13.1", "py39"), MPI, script=HOROVOD), ""),
    ("NCCL_DEBUG", job(mpi(custom_mpi_options="--NCCL_DEBUG=INFO")), ""),
    ("MPI options", job(mpi(custom_mpi_options=["-x", "A=1"])), ""),
    ("torchrun for TensorFlow", job(G5, TORCH), ""),
    ("SMDDP on CPUs", pytorch(SMDDP), ""),
    ("SMDDP on P3", pytorch(SMDDP, instance_type="ml.p3dn.24xlarge"), ""),
    (
        "SMDDP on P5",
        pytorch(SMDDP, instance_type="ml.p5.48xlarge"),
        "Take ml.p4d.24xlarge or ml.p4de.24xlarge; on P5",
    ),
    ("SMDDP on other types", pytorch(G5, SMDDP), ""),
    ("SMDDP, TensorFlow too new", job(P4D, SMDDP), 'framework_version="2.11.0"'),
    (
        "SMDDP, PyTorch too new",
        pytorch(P4D, version("2.6.0", "py312"), SMDDP),
        "2.6.0's image has no SMDDP; the last with it is 2.5.1",
    ),
    ("SMDDP by torchrun", pytorch(P4D, TORCH, script='init_process_group("smddp")'), ""),
    ("spot without checkpoints", job(SPOT, checkpoint_s3_uri=""), ""),
    (
        "EFA over subnets",
        pytorch(P4D, VPC, SMDDP, subnets=("subnet-a", "subnet-b")),
        "2 subnets may be in several",
    ),
]


# Reasons about the configuration alone: no fact about AWS is in them.
WITHOUT_SOURCE = {"no instance", "no process"}


@pytest.mark.parametrize(("rule", "configuration", "says"), BAD, ids=[one[0] for one in BAD])
def test_a_bad_job_is_told_what_why_and_what_to_do(rule, configuration, says):
    (found,) = [one for one in check(configuration) if one.ok is False]
    assert spoken(configuration) == {rule} and found.what == rules()[rule]["what"]
    assert found.reason.endswith(".") and found.remedy.endswith((".", "?"))
    assert found.source.startswith("https://") or rule in WITHOUT_SOURCE
    assert says in f"{found.reason} {found.remedy}"
    if found.what == "distribution":  # its strategies cannot be judged
        assert "Nothing to check" in next(
            one.reason for one in check(configuration) if one.what == "strategy"
        )


def spoken(configuration) -> set[str]:
    """The rules that speak against a job."""
    answers = {name: when(configuration) for name, when in WHEN.items()}
    return {name for name, answer in answers.items() if list(_cases(answer))}


def test_every_rule_speaks_against_one_of_them():
    assert {rule for rule, *_ in BAD} == set(WHEN) == set(rules())


@pytest.mark.parametrize("name", GOOD)
def test_a_good_job_passes(name):
    found = check(GOOD[name])
    assert all_ok(found), [one for one in found if one.ok is False]
    assert {one.what for one in found if one.ok} >= {"instances", "image", "limits", "network"}


def test_several_mistakes_are_all_told():
    wrong = job(instance_type="m5.xlarge", py_version="py38", use_spot=True)
    found = [one for one in check(wrong) if one.ok is False]
    assert [one.what for one in found] == ["instances", "image", "limits"]


def test_the_cost_is_bounded_by_max_run_with_date_and_source():
    price = next(one for one in check(job(max_run=3480)) if one.what == "cost")
    assert "at most 0.41 USD, since max_run is 3480 s" in price.reason.lower().replace("usd", "USD")
    assert "price list of 2026-09-27" in price.source
    expected = next(one for one in check(job(seconds=1800)) if one.what == "cost")
    assert expected.reason.startswith("About 0.20 USD for 1800 s, at most 0.22 USD")


def test_debugger_is_named_and_is_no_objection(clean_aws):
    session = preview_session("aws", region="us-east-1")
    settings = session.job_settings("x") | {"entry_point": "train_torch.py", **PYTORCH}
    del settings["framework"]
    for given, told in ((None, 1), (False, 0)):
        settings["debugger_hook_config"] = given
        found = check(of(PyTorch(instance_type="ml.c5.xlarge", instance_count=1, **settings)))
        assert sum(one.what == "debugger" for one in found) == told and all_ok(found)


def test_a_warm_pool_costs_too():
    price = next(one for one in check(job(keep_alive=3600)) if one.what == "cost")
    assert "0.41 USD for the warm pool" in price.reason


def test_what_is_not_known_is_said_and_does_not_fail():
    found = check(job(instance_type="ml.m8i-flex.large", distribution={}))
    price = next(one for one in found if one.what == "cost")
    assert price.ok is None and "ml.m8i-flex.large" in price.reason and all_ok(found)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"framework": "mxnet"}, "framework is 'mxnet'; it must be one of: tensorflow, pytorch"),
        ({"instance_count": "2"}, "instance_count is '2'"),
        ({"instance_count": True}, "instance_count is True"),
        ({"distribution": "mpi"}, "distribution is 'mpi'; it must be a dictionary"),
        ({"py_version": None}, "py_version are needed, or an image_uri"),
    ],
)
def test_a_value_that_no_job_could_have_is_refused_at_the_door(changes, message):
    with pytest.raises(BadConfiguration, match=message):
        job(**changes)


def test_only_estimators_of_the_frameworks_are_read():
    with pytest.raises(BadConfiguration, match="str is not an estimator"):
        of("an estimator")
    assert isinstance(job(), JobConfiguration)
