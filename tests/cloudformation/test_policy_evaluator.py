"""The evaluator, against what AWS's reference of policies says of its own examples."""

import pytest
from policy_evaluator import ALLOWED, DENIED, FORBIDDEN, Request, decision

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
    return decision([{"Statement": [statement]}], Request(action, resource, dict(context)))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ({"Action": "s3:Get*"}, ALLOWED),
        ({"Action": "S3:getobject"}, ALLOWED),  # actions: any case
        ({"Action": "s3:GetObject?"}, DENIED),
        ({"Action": ["s3:PutObject", "s3:GetObject"]}, ALLOWED),
        ({"Resource": f"{BUCKET}/*"}, ALLOWED),
        ({"Resource": BUCKET}, DENIED),
        ({"Resource": f"{BUCKET}/HOME/*"}, DENIED),  # case counts
        ({"Effect": "Deny"}, FORBIDDEN),
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
    assert decision([allow, deny], request) == FORBIDDEN
    assert decision([], request) == DENIED


@pytest.mark.parametrize(
    ("condition", "context", "expected"),
    [
        (FOR_ALL, {"aws:TagKeys": TAGS[:1]}, ALLOWED),
        (FOR_ALL, {}, ALLOWED),
        (FOR_ALL, {"aws:TagKeys": [*TAGS, "owner"]}, DENIED),
        (FOR_ALL | {"Null": {"aws:TagKeys": "false"}}, {}, DENIED),
        ({"StringEquals": {A: "x"}}, {}, DENIED),
        ({"StringEquals": {A: "x"}}, {A: "X"}, DENIED),
        ({"StringEqualsIfExists": {A: "x"}}, {}, ALLOWED),
        ({"StringEqualsIfExists": {A: "x"}}, {A: "y"}, DENIED),
        # Several keys: all; several values of one key: any.
        ({"StringEquals": {A: ["x", "y"], "aws:b": "z"}}, {A: "y", "aws:b": "z"}, ALLOWED),
        ({"StringEquals": {A: ["x", "y"], "aws:b": "z"}}, {A: "y", "aws:b": "x"}, DENIED),
        ({"Null": {A: "true"}}, {A: "now"}, DENIED),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {"s3:max-keys": 10}, ALLOWED),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {"s3:max-keys": 11}, DENIED),
        # "ArnEquals and ArnLike behave identically", part by part.
        ({"ArnEquals": {SOURCE: "arn:aws:sns:*:1:t*"}}, {SOURCE: "arn:aws:sns:x:1:topic"}, ALLOWED),
        ({"ArnLike": {SOURCE: "arn:aws:sns:*:topic"}}, {SOURCE: "arn:aws:sns:x:1:topic"}, DENIED),
        # AWS's example of attribute-based access: whoever has the resource's own tag.
        (SAME_TEAM, RED, ALLOWED),
        (SAME_TEAM, RED | {"aws:PrincipalTag/team": "blue"}, DENIED),
        (SAME_TEAM, {"aws:PrincipalTag/team": "red"}, DENIED),
    ],
)
def test_conditions(condition, context, expected):
    assert decide({"Condition": condition}, context) == expected


@pytest.mark.parametrize(("user", "expected"), [("ann", ALLOWED), ("bob", DENIED), ("*", DENIED)])
def test_policy_variables(user, expected):
    assert decide(HOME, {"aws:username": user}) == expected, "a value is no pattern"
    assert decide(HOME) == DENIED, "without a value it matches nothing"


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
