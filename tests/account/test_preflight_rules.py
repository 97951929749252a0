"""What does not go together gets its own reason and remedy; what goes together passes."""

import pytest
from jobs_helpers import BAD, GOOD, SAYS, job

from workshop.account.preflight import BadConfiguration, JobConfiguration, all_ok, check, of
from workshop.account.preflight.derived import Job
from workshop.account.preflight.rules import WHEN, _cases, rules

# Reasons about the configuration alone: no fact about AWS is in them.
WITHOUT_SOURCE = {"no instance", "no process"}


@pytest.mark.parametrize(("rule", "configuration"), BAD, ids=[rule for rule, _ in BAD])
def test_a_bad_job_is_told_what_why_and_what_to_do(rule, configuration):
    (found,) = [one for one in check(configuration) if one.ok is False]
    assert spoken(configuration) == {rule} and found.what == rules()[rule]["what"]
    assert found.reason.endswith(".") and found.remedy.endswith((".", "?"))
    assert found.source.startswith("https://") or rule in WITHOUT_SOURCE
    if configuration is dict(reversed(BAD))[rule]:
        assert SAYS.get(rule, "") in f"{found.reason} {found.remedy}"


def spoken(configuration) -> set[str]:
    """The rules that speak against a job."""
    answers = {name: when(Job(configuration)) for name, when in WHEN.items()}
    return {name for name, answer in answers.items() if list(_cases(answer))}


def test_every_rule_speaks_against_one_of_them():
    assert {rule for rule, _ in BAD} == set(WHEN) == set(rules()) >= set(SAYS)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_job_passes(name):
    found = check(GOOD[name])
    assert all_ok(found), [one for one in found if one.ok is False]
    assert {one.what for one in found if one.ok} >= {"instances", "image", "limits", "network"}


def test_several_mistakes_are_all_told():
    wrong = job(instance_type="m5.xlarge", py_version="py38", use_spot=True, subnets=("subnet-a",))
    found = [one for one in check(wrong) if one.ok is False]
    assert [one.what for one in found] == ["instances", "image", "limits", "network"]


def test_the_cost_is_bounded_by_max_run_with_date_and_source():
    price = next(one for one in check(job(max_run=3480)) if one.what == "cost")
    assert "at most 0.41 USD, since max_run is 3480 s" in price.reason.lower().replace("usd", "USD")
    assert "price list of 2026-09-27" in price.source
    expected = next(one for one in check(job(seconds=1800)) if one.what == "cost")
    assert expected.reason.startswith("About 0.20 USD for 1800 s, at most 0.22 USD")


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
        ({"subnets": ["subnet-a"]}, "subnets is"),
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
