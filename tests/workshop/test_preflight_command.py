"""`workshop preflight`: a table, what to do, and its exit status. It makes nothing."""

import re

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from click.testing import CliRunner

from workshop.cli import main

HOROVOD = [
    "--framework=tensorflow",
    "--framework-version=2.12.0",
    "--py-version=py310",
    "--instance-type=ml.c5.xlarge",
    "--instance-count=2",
    "--distribution=mpi",
]


def preflight(*arguments: str):
    """The command's exit status and output."""
    result = CliRunner().invoke(main, ["preflight", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.fixture(autouse=True)
def nobody(clean_aws):
    """No credentials of this machine are seen."""


@pytest.fixture
def calls(monkeypatch):
    """Credentials that look right, and AWS that refuses every call with `calls.code`."""

    class Calls(list):
        code = "ExpiredToken"

    made = Calls()

    def refuse(_, operation, __):
        made.append(operation)
        raise ClientError({"Error": {"Code": made.code, "Message": "no"}}, operation)

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    return made


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        ([], 0, ["OK  strategy      mpi goes together with tensorflow 2.12.0", "At most 0.22 USD"]),
        (
            ["--framework-version=2.14.1", "--instance-count=0"],
            2,
            [
                "NO  strategy      mpi starts Horovod scripts",
                'to do: Write framework_version="2.12.0"',
                "source: https://github.com/aws/deep-learning-containers",
                "NO  instances     instance_count is 0",
            ],
        ),
        (
            ['--distribution={"mpi": {"enabled": true, "processes_per_host": 8}}'],
            2,
            ["NO  processes     processes_per_host is 8"],
        ),
        (
            ["--instance-type=ml.p4d.24xlarge", "--region=eu-west-3", "--distribution={}"],
            2,
            ["NO  instances     The region eu-west-3 does not have ml.p4d.24xlarge"],
        ),
    ],
)
def test_a_job_offline(given, status, said):
    found, output = preflight("--offline", *HOROVOD, *given)
    assert found == status, output
    assert all(text in output for text in said), output
    assert output.count("NO  ") == sum(text.startswith("NO  ") for text in said)


@pytest.mark.parametrize(
    ("region", "said"),
    [("us-east-1", "AWS credentials are missing"), ("", "No AWS region is set")],
)
def test_without_credentials_or_region_one_line_and_status_2(monkeypatch, region, said):
    if region:
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    status, output = preflight(*HOROVOD)
    assert status == 2 and output.count("\n") == 1 and said in output


def test_with_expired_credentials_one_line_status_2_and_no_further_call(calls):
    status, output = preflight("00")
    assert status == 2
    assert output.count("\n") == 1 and "Your AWS sign-in has expired" in output
    assert calls == ["GetCallerIdentity"]


def test_a_lesson_is_checked_job_by_job():
    status, output = preflight("05", "--offline")
    assert status == 0, output
    jobs = [line for line in output.splitlines() if line and not line.startswith(" ")]
    total = re.search(r"All 6 jobs together: at most (\d+\.\d\d) USD\.", jobs.pop())
    assert total and float(total[1]) == pytest.approx(10 * 1020 / 3600 * 0.204, abs=0.005)
    assert [line.split(":")[0] for line in jobs] == [
        "horovod",
        "1 x 1",
        "1 x 2",
        "2 x 1",
        "2 x 2 in a VPC",
        "2 x 1 MultiWorker",
    ]


def test_a_lessons_parameters_can_make_it_wrong():
    status, output = preflight("05", "--offline", "-p", "processes_per_host=8")
    assert status == 2 and "ml.c5.xlarge has 4 vCPUs" in output


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "Name a LESSON, or describe a job"),
        (["02"], "Lesson 02 starts no job"),
        (["88"], "No lesson 88"),
        (["05", "--instance-count=1"], "LESSON and --instance-count do not go together"),
        ([*HOROVOD, "--distribution={mpi"], "expected JSON"),
        ([*HOROVOD, "--framework=mxnet"], "framework is 'mxnet'"),
        (["--framework=pytorch", "--instance-type=ml.c5.xlarge"], "py_version are needed"),
    ],
)
def test_wrong_use_has_status_2_and_a_sentence(arguments, said):
    status, output = preflight("--offline", *arguments)
    assert status == 2 and said in output, output


def test_the_local_endpoint_can_be_asked(own_endpoint):
    status, output = preflight("--target=local", "00")
    assert status == 0, output
    assert "?   quota         Could not be checked: List" in output
    assert "pulls no image" in output


def test_a_subnet_is_looked_for_where_it_should_be(own_endpoint, session):
    from workshop.jobs import vpc

    there = vpc.network(session)
    arguments = [f"--security-group={there['security_group_ids'][0]}", *HOROVOD]
    status, output = preflight("--target=local", f"--subnet={there['subnets'][0]}", *arguments)
    assert status == 0 and "free addresses in us-east-1" in output, output
    status, output = preflight("--target=local", "--subnet=subnet-0123456789abcdef0", *arguments)
    assert status == 2 and "NO  network" in output and "does not exist" in output


def test_a_lessons_job_in_a_vpc_is_checked_in_the_seats_own_network(session):
    from workshop.account import stacks

    status, output = preflight("--target=local", "--seat=tests", "05")
    assert status == 0, output
    assert "?   network       Could not be checked: the seat has no network stack" in output
    stacks.deploy(session, ("storage", "roles", "network"), say=lambda _: None)
    status, output = preflight("--target=local", "--seat=tests", "05")
    stacks.delete(session, ("network",), say=lambda _: None)
    assert status == 0 and "the seat has no network stack" not in output, output
    assert "free addresses in us-east-1" in output
