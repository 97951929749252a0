"""What is imported for nothing costs every process its seconds."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["workshop, sagemaker.session", "local_sagemaker.server.app"])
def test_no_grammar_of_iris_is_compiled(module):
    """jsonschema 4.25 and later compile one where they can: requirements/base.in keeps it out."""
    code = f"import sys, {module}, jsonschema; print('lark' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True
    )
    assert done.stdout.split()[-1:] == ["False"], done.stdout + done.stderr
