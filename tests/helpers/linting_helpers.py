"""What the tests of the templates share: policies as they are deployed, and their linter."""

import importlib.resources
import json
import sys
from types import ModuleType

import yaml


def policy_findings(document: dict) -> list[str]:
    """What parliament says against an IAM policy."""
    analyzed = _parliament().analyze_policy_string(json.dumps(document))
    return [
        f"{finding.issue}: {finding.detail} {finding.location}" for finding in analyzed.findings
    ]


def role_policies(session, stack: str) -> dict[str, dict]:
    """ "Role/policy" -> document, for every inline policy of a stack's roles."""
    documents, iam = {}, session.client("iam")
    pages = session.client("cloudformation").get_paginator("list_stack_resources")
    for row in pages.paginate(StackName=stack).search("StackResourceSummaries[]"):
        if row["ResourceType"] == "AWS::IAM::Role":
            role = row["PhysicalResourceId"]
            for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
                document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
                documents[f"{row['LogicalResourceId']}/{policy}"] = as_document(document)
    return documents


def as_document(policy) -> dict:
    """moto hands some out as the text of a dictionary, or as JSON."""
    return yaml.safe_load(policy) if isinstance(policy, str) else policy


def _parliament():
    """parliament 1.6.4 asks pkg_resources for the paths of its two data files.

    setuptools has had no pkg_resources since release 82, so this answers in its place.
    """
    if "pkg_resources" not in sys.modules:
        answering = ModuleType("pkg_resources")
        answering.resource_filename = lambda package, name: str(
            importlib.resources.files(package) / name
        )
        sys.modules["pkg_resources"] = answering
    import parliament

    return parliament
