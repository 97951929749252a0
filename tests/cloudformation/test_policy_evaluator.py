"""The evaluator, against what AWS's reference of policies says of its own examples."""

import pytest
from policy_evaluator import ALLOWED, DENIED, FORBIDDEN, Request, decision

BUCKET = "arn:aws:s3:::bucket"
# AWS's "multivalued context keys": a request with the tag keys environment and cost-center, asked
# by ForAllValues; and the warning that ForAllValues is true of no key at all.
TAGS = ["environment", "cost-center"]
FOR_ALL = {"ForAllValues:StringEquals": {"aws:TagKeys": TAGS}}
A, HOME = "aws:RequestTag/a", BUCKET + "/home/${aws:username}/*"
SOURCE = "aws:SourceArn"
SAME_TEAM = {"StringEquals": {"aws:ResourceTag/team": "${aws:PrincipalTag/team}"}}
RED = {"aws:ResourceTag/team": "red", "aws:PrincipalTag/team": "red"}


def policy(**statement):
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow"} | statement]}


def decided(statement, action="s3:GetObject", resource=f"{BUCKET}/home/ann/file", context=None):
    document = policy(**({"Action": "*", "Resource": "*"} | statement))
    return decision([document], Request(action, resource, context or {}))


@pytest.mark.parametrize(
    ("statement", "action", "resource", "expected"),
    [
        ({"Action": "s3:Get*"}, "s3:GetObject", BUCKET, ALLOWED),
        ({"Action": "S3:getobject"}, "s3:GetObject", BUCKET, ALLOWED),  # actions: any case
        ({"Action": "s3:GetObject?"}, "s3:GetObject", BUCKET, DENIED),
        ({"Action": ["s3:PutObject", "s3:GetObject"]}, "s3:GetObject", BUCKET, ALLOWED),
        ({"Resource": f"{BUCKET}/*"}, "s3:GetObject", f"{BUCKET}/a/b", ALLOWED),
        ({"Resource": f"{BUCKET}/*"}, "s3:GetObject", BUCKET, DENIED),
        ({"Resource": f"{BUCKET}/A/*"}, "s3:GetObject", f"{BUCKET}/a/b", DENIED),  # case counts
    ],
)
def test_actions_and_resources(statement, action, resource, expected):
    assert decided(statement, action, resource) == expected


def test_a_deny_wins_and_nothing_said_is_a_denial():
    allow = policy(Action="s3:*", Resource="*")
    deny = policy(Effect="Deny", Action="s3:DeleteObject", Resource="*")
    assert decision([allow, deny], Request("s3:DeleteObject", BUCKET)) == FORBIDDEN
    assert decision([deny, allow], Request("s3:GetObject", BUCKET)) == ALLOWED
    assert decision([], Request("s3:GetObject", BUCKET)) == DENIED


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
        ({"Null": {A: "true"}}, {}, ALLOWED),
        ({"Null": {A: "true"}}, {A: "now"}, DENIED),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {"s3:max-keys": 10}, ALLOWED),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {"s3:max-keys": 11}, DENIED),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {}, DENIED),
        ({"NumericLessThanEqualsIfExists": {"s3:max-keys": "10"}}, {}, ALLOWED),
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
    assert decided({"Condition": condition}, context=context) == expected


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"aws:username": "ann"}, ALLOWED),
        ({"aws:username": "bob"}, DENIED),
        ({"aws:username": "*"}, DENIED),  # a value is no pattern
        ({}, DENIED),  # without a value it matches nothing
    ],
)
def test_policy_variables(context, expected):
    assert decided({"Resource": HOME}, context=context) == expected


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
        decided(statement, context={"aws:SourceIp": "10.0.0.1", "aws:TagKeys": ["a", "b"]})
