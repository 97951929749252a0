"""Each failure shows itself as described; with the mistake fixed it does not.

Of those of ranks lesson 10, which the tests execute, reproduces two; `make soak` reproduces all.
That the times of exercise 10.5's jobs show their causes, test_exercises.py tests.
"""

import ast
import runpy
import sys

import pytest

from workshop import failures
from workshop.diagnosis.rules import find
from workshop.failures import five_jobs, jobs, ranks
from workshop.paths import DEMOS

# Lesson 10 and others may show the whole log of these.
LOGGED = {"rank-hangs", "mismatched-shapes", "forgotten-broadcast", "ranks-overwrite"}
# name: what the line of the log must have
LINES = {
    "rank-dies": ("torchrun: ", "mpirun: "),
    "rank-hangs": ("in wait_for", "Timed out waiting 6000ms"),
    "mismatched-shapes": ("params[0] in this process with sizes [10, 64]",),
    "forgotten-broadcast": ("hash of the weights at the end: rank 0 ",),
    "forgotten-set-epoch": ('"images_in_order": ["',),
    "lr-not-scaled": ('"train_loss" after 4 epochs: 1 rank 0.',),
    "ranks-overwrite": ("Error: ",),
    "blocked-security-group": ("Cannot connect to host algo-2", "MaxRuntimeExceeded"),
    "no-s3-endpoint": ("Data download failed:Please ensure that the subnet's route table",),
    "s3-path": ("No S3 objects found",),
    "lost-distribution": ("KeyError: 'LOCAL_WORLD_SIZE'",),
    "requirements-offline": ("Retrying", "No matching distribution found for humanize==4.9.0"),
}


JOB_NAMES = jobs.CHECKS.keys()  # of jobs `why` has the log: see diagnosis/
# In `make test`: diagnosis/test_rules.py has recorded evidence of others, `make soak` has all.
SHORT_NOW = (
    *("uneven-batches", "gathered-sizes", "port-taken", "wrong-label", "unused-parameters"),
    "forgotten-average",
)


def reproduce(name: str, fixed: bool) -> None:
    run = failures.reproduce(name, fixed)
    assert not run.impossible, run.impossible
    assert run.as_described, str(run)
    assert run.line and run.fixed == fixed and run.seconds > 0
    if not fixed:
        assert [part for part in LINES.get(name, ()) if part not in run.line] == []
        assert run.failure.cause in run.why or name in JOB_NAMES
    if name in LOGGED:
        assert {line[:4] for line in run.log} >= {"[0] ", "[1] "}, "the log of both ranks"


def test_there_are_these():
    assert list(failures.table().index) == list(failures.ALL) and len(failures.ALL) >= 25
    assert failures.ALL.keys() >= LINES.keys()
    # By this number lesson 10 picks one whose name would tell too much.
    assert list(failures.ALL)[3] == "forgotten-broadcast"


def test_each_way_of_the_scripts_is_a_failure_of_ranks():
    tree = ast.parse((DEMOS / "breaking" / "short.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    ways = {node.name for node in functions if node.decorator_list}
    names = failures.ALL.keys() - JOB_NAMES
    assert {name.replace("-", "_") for name in names} == ways | {"rank_hangs"}
    assert ranks.CHECKS.keys() <= names


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT_NOW)
def test_why_names_the_cause(name):
    reproduce(name, fixed=False)


@pytest.mark.soak
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("name", [name for name in failures.ALL if name not in JOB_NAMES])
def test_all_of_ranks(name, fixed):
    reproduce(name, fixed)


@pytest.mark.soak
@pytest.mark.namespaces
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("name", list(JOB_NAMES))
def test_all_of_jobs(sagemaker_emulator, clean_aws, name, fixed):
    reproduce(name, fixed)


@pytest.mark.namespaces
@pytest.mark.parametrize(
    "name",
    ["no-s3-endpoint", pytest.param("requirements-offline", marks=pytest.mark.soak)],  # pip retries
)
def test_jobs_that_leave_nothing(sagemaker_emulator, session, name):
    def everything() -> dict:
        ec2 = session.client("ec2")
        endpoints = ec2.describe_vpc_endpoints()["VpcEndpoints"]
        return {
            "vpcs": ec2.describe_vpcs()["Vpcs"],
            "groups": ec2.describe_security_groups()["SecurityGroups"],
            "endpoints": [endpoint for endpoint in endpoints if endpoint["State"] != "deleted"],
            "buckets": [
                bucket["Name"] for bucket in session.client("s3").list_buckets()["Buckets"]
            ],
            "jobs": session.client("sagemaker").list_training_jobs()["TrainingJobSummaries"],
        }

    before = everything()
    reproduce(name, fixed=False)
    assert everything() == before


def test_each_name_gets_five_jobs_with_all_causes_in_an_order_of_its_own():
    by_name = [five_jobs.causes_for(name) for name in map(str, range(30))]
    for causes in by_name:
        assert len({cause for cause, _ in causes.values()}) == len(causes) >= 4
        for cause, rank in causes.values():
            assert (rank is None) == (cause not in ("straggler", "slow input"))
    assert five_jobs.causes_for("1") == by_name[1]
    assert len({tuple(causes.items()) for causes in by_name}) > 25
    assert {rank for causes in by_name for _, rank in causes.values()} == {None, 0, 1}


@pytest.mark.parametrize("cause", five_jobs.CAUSES[:-1])
def test_the_script_of_the_five_jobs_takes_the_settings_of_each_cause(cause, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DEMOS), *sys.path])
    Settings = runpy.run_path(str(five_jobs.SCRIPT))["Settings"]
    assert Settings(**five_jobs._settings(cause, 1)) != Settings()


@pytest.mark.slow
def test_the_job_with_nothing_wrong_gives_each_rank_examples_of_its_own(monkeypatch):
    # What is slow is left to the exercise's test: on a busy machine a job is run again for that.
    monkeypatch.setattr(five_jobs, "_shows", lambda *_: True)
    _, evidence = five_jobs._run("A", five_jobs.NOTHING, None, 1.0)
    assert "same data on all ranks" not in [finding.cause for finding in find(evidence)]
