"""The CloudFormation templates, without AWS: lint, and least privilege."""

import subprocess
import sys
from pathlib import Path

import pytest
from cfnlint.decode import cfn_yaml

from workshop.paths import CLOUDFORMATION

TEMPLATES = sorted(CLOUDFORMATION.glob("*.yaml"))


def statements(template):
    """Every IAM statement of a template."""
    found, rest = [], [template]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            found += node["Statement"] if isinstance(node.get("Statement"), list) else []
            rest += node.values()
        elif isinstance(node, list):
            rest += node
    return found


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_cfn_lint_finds_nothing(path):
    command = [Path(sys.executable).parent / "cfn-lint", path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_statements_are_named_and_narrow(path):
    for one in statements(cfn_yaml.load(str(path))):
        assert one.get("Sid"), f"a statement without Sid: {one}"
        actions = one["Action"] if isinstance(one["Action"], list) else [one["Action"]]
        if one["Effect"] == "Allow":
            assert not [action for action in actions if "*" in action], one["Sid"]
    assert "FullAccess" not in path.read_text()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_star_has_its_reason(path):
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.strip().endswith('"*"'):
            before = [one.strip() for one in lines[max(0, number - 3) : number]]
            assert any(one.startswith("#") for one in before), f"{path.name}:{number + 1}"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_parameters_are_few_and_described(path):
    parameters = cfn_yaml.load(str(path))["Parameters"]
    assert len(parameters) <= 5
    for name, one in parameters.items():
        assert one["Description"] and "Default" in one, name
        assert "AllowedPattern" in one or "MinValue" in one or "AllowedValues" in one, name
