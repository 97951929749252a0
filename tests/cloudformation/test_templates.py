"""The CloudFormation templates, without AWS: lint, and least privilege."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import stacks_harness
from linting_helpers import policy_findings, role_policies

from workshop.account import stacks
from workshop.account.prices import idle_price as price
from workshop.account.stacks import NEEDS, template_parameters
from workshop.paths import CLOUDFORMATION

TEMPLATES = sorted(CLOUDFORMATION.glob("*.yaml"))
IMPORT = re.compile(r"Fn::ImportValue: !Sub \"?workshop-\$\{Seat\}-(\w+)")
EXPORT = re.compile(r"Export:\n +Name: !Sub \"?workshop-\$\{Seat\}-(\w+)")
each_template = pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)


def statements(template):
    """Every IAM statement of a template."""
    result, rest = [], [template]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            result += node["Statement"] if isinstance(node.get("Statement"), list) else []
            rest += node.values()
        elif isinstance(node, list):
            rest += node
    return result


def test_cfn_lint_finds_nothing():
    command = [Path(sys.executable).parent / "cfn-lint", *TEMPLATES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for path in [*TEMPLATES, *CLOUDFORMATION.parent.glob(".cfnlintrc*")]:
        assert not re.search("cfn-lint|ignore_checks", path.read_text()), "no check is switched off"


@each_template
def test_statements_are_named_and_narrow(path):
    from cfnlint.decode import cfn_yaml  # slow: not for all who collect tests

    for row in statements(cfn_yaml.load(str(path))):
        assert row.get("Sid"), f"a statement without Sid: {row}"
        actions = row["Action"] if isinstance(row["Action"], list) else [row["Action"]]
        if row["Effect"] == "Allow":
            assert not [action for action in actions if "*" in action], row["Sid"]
    assert "FullAccess" not in path.read_text()
    assert "ManagedPolicyArns" not in path.read_text()


def test_parliament_finds_nothing_in_the_roles_policies(monkeypatch):
    with stacks_harness.aws(monkeypatch):
        session = stacks_harness.session("lint")
        stacks.deploy(session, ("storage", "roles", "network"), log=lambda _: None)
        policies = role_policies(session, "workshop-lint-roles")
    assert sorted(policies) == [
        "NotebookRole/lessons",
        "NotebookRole/the-instance-itself",
        "TrainingRole/jobs-in-the-vpc",
        "TrainingRole/training-jobs",
    ]
    result = {name: policy_findings(document) for name, document in policies.items()}
    assert result == {name: [] for name in policies}
    (statement, *_) = policies["TrainingRole/training-jobs"]["Statement"]
    statement["Action"] = "sagemaker:StartTrainingJob"
    assert "UNKNOWN_ACTION" in policy_findings(policies["TrainingRole/training-jobs"])[0]


def test_stacks_are_made_after_those_whose_exports_they_import():
    texts = {name: (CLOUDFORMATION / f"{name}.yaml").read_text() for name in stacks.ALL}
    exported = {result: name for name, text in texts.items() for result in EXPORT.findall(text)}
    for name, text in texts.items():
        needed = {exported[result] for result in IMPORT.findall(text)}
        assert needed == set(NEEDS.get(name, ()))
        assert all(stacks.ALL.index(row) < stacks.ALL.index(name) for row in needed)


def test_the_networks_prices_are_those_of_the_price_table():
    parameters = template_parameters("network")
    row = f"{price('interface-endpoint').usd:g}"
    assert f"6 endpoints, each {row} USD an hour" in parameters["InterfaceEndpoints"]["Description"]
    nat, address = (f"{price(name).usd:g} USD an hour" for name in ("nat-gateway", "public-ipv4"))
    assert nat in parameters["Nat"]["Description"] and address in parameters["Nat"]["Description"]


def test_every_instance_type_of_the_notebook_has_a_price():
    for row in template_parameters("notebook")["InstanceType"]["AllowedValues"]:
        assert price(f"notebook {row}").usd > 0
