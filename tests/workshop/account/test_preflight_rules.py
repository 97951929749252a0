"""What does not go together gets its own reason and remedy; what goes together passes."""

import tomllib
from pathlib import Path

import pytest

from workshop.account.preflight import BadConfiguration, JobConfiguration, all_ok, check
from workshop.account.preflight.rules import RULES

JOBS = tomllib.loads(Path(__file__).with_name("preflight_jobs.toml").read_text())
GOOD, BAD, CHANGES = JOBS["good"], JOBS["bad"], JOBS["changes"]
MPI, SERVERS, TORCH = (CHANGES[name] for name in ("mpi", "servers", "torchrun"))


def job(*changes, **others) -> JobConfiguration:
    """The one that is right, with changes."""
    fields = dict(JOBS["right"])
    for change in (*changes, others):
        fields |= change
    return JobConfiguration(**fields)


def configuration(row: dict) -> JobConfiguration:
    """A job of the file."""
    return job(*(CHANGES[name] for name in row.get("with", ())), row.get("job", {}))


@pytest.mark.parametrize("row", BAD, ids=lambda row: row["rule"])
def test_a_bad_job_is_told_what_why_and_what_to_do(row):
    bad, rule = configuration(row), row["rule"]
    (finding,) = [row for row in check(bad) if row.ok is False]
    assert [name for name, each in RULES.items() if list(each.match(bad))] == [rule]
    assert finding.topic == RULES[rule].topic
    assert finding.reason.endswith(".")
    assert finding.remedy.endswith((".", "?")) and finding.source.startswith("https://")
    assert row.get("says", "") in f"{finding.reason} {finding.remedy}"


def test_every_rule_speaks_against_one_of_them():
    assert {row["rule"] for row in BAD} == RULES.keys()


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
    findings = check(configuration(GOOD[name]))
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
    two_ranks = {"mpi": {"enabled": True, "processes_per_host": 2}}
    findings = check(job(distribution=two_ranks, instance_type="ml.m8i-flex.large"))
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
