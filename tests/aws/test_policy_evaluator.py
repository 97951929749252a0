"""The evaluator, against what AWS's reference of policies says of its own examples."""

import pytest
from policy_evaluator import ALLOWED, DENIED, FORBIDDEN, Request, decision

BUCKET = "arn:aws:s3:::bucket"


def policy(**statement):
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow"} | statement]}


def decided(statement, action="s3:GetObject", resource=f"{BUCKET}/a/b", **context):
    names = {name.replace("__", "/").replace("_", ":", 1): one for name, one in context.items()}
    full = {"Action": "*", "Resource": "*"} | statement
    if "NotAction" in full:
        del full["Action"]
    if "NotResource" in full:
        del full["Resource"]
    return decision([policy(**full)], Request(action, resource, names))


@pytest.mark.parametrize(
    ("statement", "action", "resource", "wanted"),
    [
        ({"Action": "s3:Get*"}, "s3:GetObject", BUCKET, ALLOWED),
        ({"Action": "S3:getobject"}, "s3:GetObject", BUCKET, ALLOWED),  # actions: any case
        ({"Action": "s3:GetObject?"}, "s3:GetObject", BUCKET, DENIED),
        ({"Action": ["s3:PutObject", "s3:GetObject"]}, "s3:GetObject", BUCKET, ALLOWED),
        ({"NotAction": "iam:*"}, "s3:GetObject", BUCKET, ALLOWED),
        ({"NotAction": "iam:*"}, "iam:PassRole", BUCKET, DENIED),
        ({"Resource": f"{BUCKET}/*"}, "s3:GetObject", f"{BUCKET}/a/b", ALLOWED),
        ({"Resource": f"{BUCKET}/*"}, "s3:GetObject", BUCKET, DENIED),
        ({"Resource": f"{BUCKET}/A/*"}, "s3:GetObject", f"{BUCKET}/a/b", DENIED),  # case counts
        ({"NotResource": f"{BUCKET}/*"}, "s3:GetObject", f"{BUCKET}/a", DENIED),
    ],
)
def test_actions_and_resources(statement, action, resource, wanted):
    assert decided(statement, action, resource) == wanted


def test_a_deny_wins_and_nothing_said_is_a_denial():
    allow = policy(Action="s3:*", Resource="*")
    deny = policy(Effect="Deny", Action="s3:DeleteObject", Resource="*")
    assert decision([allow, deny], Request("s3:DeleteObject", BUCKET)) == FORBIDDEN
    assert decision([deny, allow], Request("s3:GetObject", BUCKET)) == ALLOWED
    assert decision([], Request("s3:GetObject", BUCKET)) == DENIED


# AWS's "multivalued context keys": a request with the tag keys environment and cost-center, asked
# by ForAllValues and ForAnyValue; and the warning that ForAllValues is true of no key at all.
TAGS = ["environment", "cost-center"]


@pytest.mark.parametrize(
    ("condition", "context", "wanted"),
    [
        ({"ForAllValues:StringEquals": {"aws:TagKeys": TAGS}}, {"aws_TagKeys": TAGS}, ALLOWED),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": TAGS}}, {"aws_TagKeys": TAGS[:1]}, ALLOWED),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": TAGS}}, {}, ALLOWED),
        (
            {"ForAllValues:StringEquals": {"aws:TagKeys": TAGS}},
            {"aws_TagKeys": [*TAGS, "owner"]},
            DENIED,
        ),
        (
            {"ForAllValues:StringEquals": {"aws:TagKeys": TAGS}, "Null": {"aws:TagKeys": "false"}},
            {},
            DENIED,
        ),
        ({"ForAnyValue:StringEquals": {"aws:TagKeys": TAGS}}, {"aws_TagKeys": ["owner"]}, DENIED),
        (
            {"ForAnyValue:StringEquals": {"aws:TagKeys": TAGS}},
            {"aws_TagKeys": ["owner", TAGS[0]]},
            ALLOWED,
        ),
        ({"ForAnyValue:StringEquals": {"aws:TagKeys": TAGS}}, {}, DENIED),
        # "StringNotEquals": true of a missing key, and none of several values may match.
        ({"StringNotEquals": {"aws:RequestTag/a": ["x", "y"]}}, {}, ALLOWED),
        ({"StringNotEquals": {"aws:RequestTag/a": ["x", "y"]}}, {"aws_RequestTag__a": "y"}, DENIED),
        ({"StringNotLike": {"aws:RequestTag/a": "x*"}}, {"aws_RequestTag__a": "y"}, ALLOWED),
        ({"StringEquals": {"aws:RequestTag/a": "x"}}, {}, DENIED),
        ({"StringEqualsIfExists": {"aws:RequestTag/a": "x"}}, {}, ALLOWED),
        ({"StringEqualsIfExists": {"aws:RequestTag/a": "x"}}, {"aws_RequestTag__a": "y"}, DENIED),
        ({"StringEquals": {"aws:RequestTag/a": "x"}}, {"aws_RequestTag__a": "X"}, DENIED),
        (
            {"StringEqualsIgnoreCase": {"aws:RequestTag/a": "x"}},
            {"aws_RequestTag__a": "X"},
            ALLOWED,
        ),
        # Several operators and keys: all; several values of one key: any.
        (
            {"StringEquals": {"aws:RequestTag/a": ["x", "y"], "aws:RequestTag/b": "z"}},
            {"aws_RequestTag__a": "y", "aws_RequestTag__b": "z"},
            ALLOWED,
        ),
        (
            {"StringEquals": {"aws:RequestTag/a": "x"}, "Bool": {"aws:SecureTransport": "true"}},
            {"aws_RequestTag__a": "x", "aws_SecureTransport": False},
            DENIED,
        ),
        ({"BoolIfExists": {"aws:MultiFactorAuthPresent": "false"}}, {}, ALLOWED),
        ({"Null": {"aws:TokenIssueTime": "true"}}, {}, ALLOWED),
        ({"Null": {"aws:TokenIssueTime": "true"}}, {"aws_TokenIssueTime": "now"}, DENIED),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {"s3_max-keys": 10}, ALLOWED),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {"s3_max-keys": 11}, DENIED),
        ({"NumericLessThanEquals": {"s3:max-keys": "10"}}, {}, DENIED),
        ({"NumericLessThanEqualsIfExists": {"s3:max-keys": "10"}}, {}, ALLOWED),
        # "ArnEquals and ArnLike behave identically", part by part.
        (
            {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:*:1:t*"}},
            {"aws_SourceArn": "arn:aws:sns:eu-west-1:1:topic"},
            ALLOWED,
        ),
        (
            {"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:topic"}},
            {"aws_SourceArn": "arn:aws:sns:eu-west-1:1:topic"},
            DENIED,
        ),
        ({"ArnNotEquals": {"aws:SourceArn": "arn:aws:sns:*:1:t*"}}, {}, ALLOWED),
    ],
)
def test_conditions(condition, context, wanted):
    assert decided({"Condition": condition}, **context) == wanted


@pytest.mark.parametrize(
    ("resource", "context", "wanted"),
    [
        ("/home/${aws:username}/*", {"aws_username": "ann"}, ALLOWED),
        ("/home/${aws:username}/*", {"aws_username": "bob"}, DENIED),
        ("/home/${aws:username}/*", {"aws_username": "*"}, DENIED),  # a value is no pattern
        ("/home/${aws:username}/*", {}, DENIED),  # without a value it matches nothing
        ("/home/${aws:username, 'ann'}/*", {}, ALLOWED),
        ("/home/${*}nn/*", {}, DENIED),  # the character itself
    ],
)
def test_policy_variables(resource, context, wanted):
    statement = {"Resource": BUCKET + resource}
    assert decided(statement, resource=f"{BUCKET}/home/ann/file", **context) == wanted


def test_a_variable_in_a_condition():
    """AWS's example of attribute-based access: whoever has the resource's own tag."""
    same = {"StringEquals": {"aws:ResourceTag/team": "${aws:PrincipalTag/team}"}}
    tags = {"aws_ResourceTag__team": "red", "aws_PrincipalTag__team": "red"}
    assert decided({"Condition": same}, **tags) == ALLOWED
    assert decided({"Condition": same}, **tags | {"aws_PrincipalTag__team": "blue"}) == DENIED
    assert decided({"Condition": same}, aws_PrincipalTag__team="red") == DENIED


@pytest.mark.parametrize(
    "statement",
    [
        {"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}},
        {"Principal": "*"},
        {"Condition": {"StringEquals": {"aws:TagKeys": "a"}}},
    ],
)
def test_what_it_does_not_know_it_refuses(statement):
    with pytest.raises(NotImplementedError):
        decided(statement, aws_SourceIp="10.0.0.1", aws_TagKeys=["a", "b"])
