"""Who may import whom. pyproject.toml has the contracts; what import-linter cannot express is here.

import-linter sees packages: scripts/ is none, and an attribute of a package is no import.
"""

import ast
from pathlib import Path

import pytest

import local_sagemaker

ROOT = Path(__file__).parent.parent
TRAIN = ROOT / "scripts" / "train"
OURS = {"workshop", "local_sagemaker", "data_prep", "tools", "sagemaker", "boto3"}


def imports(path: Path) -> set[str]:
    """The top-level names that a file imports, wherever in the file."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("scripts", OURS),  # on an instance nothing else of the kit is there
        # A reader takes one file alone.
        ("scripts/train", {"common", "scripts", *(path.stem for path in TRAIN.glob("*.py"))}),
        ("workshop", {"scripts", "common"}),
    ],
)
def test_files_import_nothing_of(folder, forbidden):
    files = sorted((ROOT / folder).rglob("*.py"))
    wrong = {str(path): imports(path) & forbidden for path in files}
    assert files and {path: names for path, names in wrong.items() if names} == {}


@pytest.mark.parametrize("folder", ["workshop", "tools", "notebooks"])
def test_the_course_uses_public_names_of_the_emulator(folder):
    names = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names |= {node.attr} if node.value.id == "local_sagemaker" else set()
            elif isinstance(node, ast.ImportFrom) and node.module == "local_sagemaker":
                names |= {alias.name for alias in node.names}
    assert names and names <= {*local_sagemaker.PUBLIC, "pytest_plugin"}
