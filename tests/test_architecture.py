"""Who may import whom: the endpoint, the scripts and the data know nothing of the workshop."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = {"workshop", "local_sagemaker", "scripts", "data_prep", "common", "bench", "bootstrap"}
FRAMEWORKS = {"tensorflow", "torch", "horovod", "keras", "tf_keras"}
# Programs, run as processes of their own, that may import a framework: on an instance in the
# place of the image's, and a notebook's ranks.
STAND_INS = {
    "local_sagemaker/image/ps_server.py": {"tensorflow"},
    "local_sagemaker/image/site/smdistributed/dataparallel/torch/torch_smddp.py": {"torch"},
    "local_sagemaker/image/site/smdistributed/dataparallel/tensorflow.py": {"horovod"},
    "local_sagemaker/serving/runtime/saved_models.py": {"tensorflow"},
    "local_sagemaker/serving/runtime/torch_defaults.py": {"torch"},
    "workshop/launch/rank_process.py": {"torch"},
}
# folder -> what it must not import
RULES = {
    "local_sagemaker": (OURS - {"local_sagemaker"}) | FRAMEWORKS | {"sagemaker"},
    "scripts": OURS - {"common"} | {"sagemaker", "boto3", "local_sagemaker"},
    "data_prep": OURS - {"data_prep"} | {"sagemaker", "torch", "horovod"},
    "workshop": {"scripts", "common", "bench", "bootstrap"} | FRAMEWORKS,
}


def imports(path: Path) -> set[str]:
    """The top-level names that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("folder", RULES)
def test_arrows(folder):
    wrong = {}
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files, f"no files in {folder}"
    for path in files:
        name = str(path.relative_to(ROOT))
        bad = imports(path) & RULES[folder] - STAND_INS.get(name, set())
        if bad:
            wrong[name] = bad
    assert wrong == {}


def test_the_rule_would_catch_a_wrong_import(tmp_path):
    path = tmp_path / "x.py"
    path.write_text("def f():\n    from workshop.cli import main\n    import torch.nn\n")
    assert imports(path) & RULES["local_sagemaker"] == {"workshop", "torch"}
