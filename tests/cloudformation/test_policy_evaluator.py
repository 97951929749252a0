"""The evaluator, against what AWS's reference of policies says of its own examples."""

import pytest
from policy_evaluator import Request, allows

BUCKET = "arn:aws:s3:::bucket"
# AWS's "multivalued context keys": a request with the tag keys environment and cost-center, asked
# by ForAllValues; and the warning that ForAllValues is true of no key at all.
TAGS = ["environment", "cost-center"]
FOR_ALL = {"ForAllValues:StringEquals": {"aws:TagKeys": TAGS}}
A, SOURCE = "aws:RequestTag/a", "aws:SourceArn"
HOME = {"Resource": BUCKET + "/home/${aws:username}/*"}
SAME_TEAM = {"StringEquals": {"aws:ResourceTag/team": "${aws:PrincipalTag/team}"}}
RED = {"aws:ResourceTag/team": "red", "aws:PrincipalTag/team": "red"}


def decide(statement, context=(), action="s3:GetObject", resource=f"{BUCKET}/home/ann/file"):
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*"} | statement
    return allows([{"Statement": [statement]}], Request(action, resource, dict(context)))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ({"Action": "s3:Get*"}, True),
        ({"Action": "S3:getobject"}, True),  # actions: any case
        ({"Action": "s3:GetObject?"}, False),
        ({"Action": ["s3:PutObject", "s3:GetObject"]}, True),
        ({"Resource": f"{BUCKET}/*"}, True),
        ({"Resource": BUCKET}, False),
        ({"Resource": f"{BUCKET}/HOME/*"}, False),  # case counts
        ({"Effect": "Deny"}, False),
    ],
)
def test_actions_and_resources(statement, expected):
    assert decide(statement) == expected


def test_a_deny_wins_and_nothing_said_is_a_denial():
    allow, deny = (
        {"Statement": {"Effect": effect, "Action": "s3:*", "Resource": "*"}}
        for effect in ("Allow", "Deny")
    )
    request = Request("s3:DeleteObject", BUCKET)
    assert allows([allow], request)
    assert not allows([allow, deny], request) and not allows([], request)


@pytest.mark.parametrize(
    ("condition", "context", "expected"),
    [
        (FOR_ALL, {"aws:TagKeys": TAGS[:1]}, True),
        (FOR_ALL, {}, True),
        (FOR_ALL, {"aws:TagKeys": [*TAGS, "owner"]}, False),
        (FOR_ALL | {"Null": {"aws:TagKeys": "false"}}, {}, False),
        ({"StringEquals": {A: "x"}}, {}, False),
        ({"StringEquals": {A: "x"}}, {A: "X"}, False),
        ({"StringEqualsIfExists": {A: "x"}}, {}, True),
        ({"StringEqualsIfExists": {A: "x"}}, {A: "y"}, False),
        # Several keys: all; several values of one key: any.
        ({"StringEquals": {A: ["x", "y"], "aws:b": "z"}}, {A: "y", "aws:b": "z"}, True),
        ({"StringEquals": {A: ["x", "y"], "aws:b": "z"}}, {A: "y", "aws:b": "x"}, False),
        ({"Null": {A: "true"}}, {A: "now"}, False),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {"s3:max-keys": 10}, True),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {"s3:max-keys": 11}, False),
        # "ArnEquals and ArnLike behave identically", part by part.
        ({"ArnEquals": {SOURCE: "arn:aws:sns:*:1:t*"}}, {SOURCE: "arn:aws:sns:x:1:topic"}, True),
        ({"ArnLike": {SOURCE: "arn:aws:sns:*:topic"}}, {SOURCE: "arn:aws:sns:x:1:topic"}, False),
        # AWS's example of attribute-based access: whoever has the resource's own tag.
        (SAME_TEAM, RED, True),
        (SAME_TEAM, RED | {"aws:PrincipalTag/team": "blue"}, False),
        (SAME_TEAM, {"aws:PrincipalTag/team": "red"}, False),
    ],
)
def test_conditions(condition, context, expected):
    assert decide({"Condition": condition}, context) == expected


@pytest.mark.parametrize(("user", "expected"), [("ann", True), ("bob", False), ("*", False)])
def test_policy_variables(user, expected):
    assert decide(HOME, {"aws:username": user}) == expected, "a value is no pattern"
    assert not decide(HOME), "without a value it matches nothing"


@pytest.mark.parametrize(
    "statement",
    [
        {"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}},
        {"Principal": "*"},
        {"Condition": {"StringEquals": {"aws:TagKeys": "a"}}},  # of several values
    ],
)
def test_what_it_does_not_know_it_refuses(statement):
    with pytest.raises(NotImplementedError):
        decide(statement, {"aws:SourceIp": "10.0.0.1", "aws:TagKeys": ["a", "b"]})
