"""Who may import whom: the endpoint, the scripts and the data know nothing of the workshop.

An import counts wherever it stands: at the top of a file, in a function, under TYPE_CHECKING, or
as a name for import_module. So no late import dodges a circle.
"""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = {"workshop", "local_sagemaker", "scripts", "data_prep", "common", "tools"}
FRAMEWORKS = {"tensorflow", "torch", "horovod", "keras", "tf_keras"}
# Programs, run as processes of their own, that may import a framework: on an instance in the
# place of the image's, and a notebook's ranks.
EMULATOR = "local-sagemaker/src/local_sagemaker"
STAND_INS = {
    f"{EMULATOR}/container/parameter_server.py": {"tensorflow"},
    f"{EMULATOR}/container/keras_2/keras/__init__.py": {"tf_keras"},
    f"{EMULATOR}/container/site/smdistributed/dataparallel/torch/torch_smddp.py": {"torch"},
    f"{EMULATOR}/container/site/smdistributed/dataparallel/tensorflow.py": {"horovod"},
    f"{EMULATOR}/pytest_plugin.py": {"sagemaker"},  # the caller's, when a test asks for a job
    f"{EMULATOR}/hosting/runtime/saved_models.py": {"tensorflow"},
    f"{EMULATOR}/hosting/runtime/defaults.py": {"torch"},
    "workshop/launch/rank_process.py": {"torch"},
}
TRAIN = {path.stem for path in (ROOT / "scripts" / "train").glob("*.py")}
# folder -> what it must not import
RULES = {
    "local-sagemaker/src": (OURS - {"local_sagemaker"}) | FRAMEWORKS | {"sagemaker"},
    "scripts": OURS - {"common"} | {"sagemaker", "boto3", "local_sagemaker"},
    # Each file is complete in itself, so that somebody can take it alone.
    "scripts/train": OURS | {"sagemaker", "boto3"} | TRAIN,
    "data_prep": OURS - {"data_prep"} | {"sagemaker", "torch", "horovod"},
    "workshop": {"scripts", "common", "tools"} | FRAMEWORKS,
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
    assert imports(path) & RULES["local-sagemaker/src"] == {"workshop", "torch"}


# Where modules are found that Python names from there: `workshop.paths`, `common.data`.
PLACES = {
    ".": ("workshop", "data_prep", "tools"),
    "local-sagemaker/src": ("local_sagemaker",),
    "scripts/demos": (".",),
}


def modules(root: Path = ROOT, places: dict[str, tuple[str, ...]] = PLACES) -> dict[str, Path]:
    """Every module of the house, by the name that Python gives it."""
    found = {}
    for place, folders in places.items():
        for folder in folders:
            for path in (root / place / folder).rglob("*.py"):
                parts = path.relative_to(root / place).with_suffix("").parts
                found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(name: str, known: dict[str, Path]) -> set[str]:
    """Those of the `known` modules that the module `name` imports."""
    package = name if known[name].name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(known[name].read_text())
    found, strings, by_string = set(), set(), False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            for alias in node.names:
                by_string |= alias.name == "import_module"
                inside = f"{base}.{alias.name}"
                found.add(inside if inside in known else base)
        elif isinstance(node, ast.Attribute):
            by_string |= node.attr == "import_module"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
    return (found | (strings if by_string else set())) & known.keys() - {name}


def circle(known: dict[str, Path]) -> list[str]:
    """Modules that import each other in a circle; an empty list if there are none."""
    try:
        graphlib.TopologicalSorter({name: imported(name, known) for name in known}).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_there_is_no_circle():
    known = modules()
    assert len(known) > 200 and "common" in known and "workshop" in known
    assert circle(known) == []


@pytest.mark.parametrize(
    "back",
    [
        "import kit.a",
        "from . import a",
        "from kit.a import f",
        "def g():\n    from .a import f",
        "import importlib\nimportlib.import_module('kit.a')",
        "from importlib import import_module\nHOME = {'f': 'kit.a'}\nimport_module(HOME['f'])",
    ],
)
def test_a_circle_would_be_found(tmp_path, back):
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").touch()
    (tmp_path / "kit" / "a.py").write_text("from kit import b\n")
    (tmp_path / "kit" / "b.py").write_text(back)
    known = modules(tmp_path, {".": ("kit",)})
    assert set(circle(known)) == {"kit.a", "kit.b"}
    (tmp_path / "kit" / "b.py").write_text("NAME = 'kit.a'\n")
    assert circle(known) == []


# workshop/: room -> the rooms that it may import. Each may import the ground as well: the few
# files beside the rooms, which import no room.
ROOMS = {
    "cli": {
        "course",
        "failures",
        "account",
        "doctor",
        "plots",
        "measure",
        "jobs",
        "launch",
        "lesson",
    },
    "course": {"account", "jobs", "lesson"},
    "failures": {"jobs", "launch", "lesson"},
    "account": set(),
    "plots": set(),
    "measure": {"launch"},
    "doctor": {"launch"},
    "jobs": {"account", "launch"},
    "launch": set(),
    "lesson": set(),
}
MOST_FILES = 3  # beside the rooms
MOST_ARROWS = 27  # between rooms, and from rooms to the files beside them


def wrong_arrows(known: dict[str, Path]) -> dict[str, set[str]]:
    """Modules of workshop/ with what they import and must not: another room, or the face.

    The face, workshop/__init__.py, may name every room: it is for lessons.
    """
    wrong = {}
    ours = {name: name.split(".")[1] for name in known if name.startswith("workshop.")}
    ground = {room for name, room in ours.items() if known[name].parent.name == "workshop"}
    for name, room in ours.items():
        may = ROOMS.get(room, set()) | ground | {room}
        met = {one for one in imported(name, known) if one.split(".")[0] == "workshop"}
        if bad := {one for one in met if one.partition(".")[2].split(".")[0] not in may}:
            wrong[name] = bad
    return wrong


def test_the_rooms_are_these():
    top = ROOT / "workshop"
    files = [path.relative_to(top) for path in top.rglob("*") if path.is_file()]
    files = [path for path in files if "__pycache__" not in path.parts]  # also a former room's
    assert {path.parts[0] for path in files if len(path.parts) > 1} == set(ROOMS)
    beside = [path.name for path in files if path.parent == Path() and path.suffix == ".py"]
    assert "__init__.py" in beside and len(beside) <= MOST_FILES, beside


def test_no_room_reaches_up():
    assert wrong_arrows(modules()) == {}


def arrows(known: dict[str, Path]) -> set[tuple[str, str]]:
    """(room, room or file beside the rooms that it imports); the face, for lessons, not counted."""
    rooms = {name: name.split(".")[1] for name in known if name.startswith("workshop.")}
    pairs = {
        (room, rooms[one])
        for name, room in rooms.items()
        for one in imported(name, known) & rooms.keys()
    }
    return {pair for pair in pairs if pair[0] != pair[1]}


def test_there_are_few_arrows():
    found = arrows(modules())
    assert len(found) <= MOST_ARROWS, sorted(found)
    assert {("cli", "jobs"), ("jobs", "paths"), ("jobs", "account")} <= found


@pytest.mark.parametrize(
    ("module", "imports", "wrong"),
    [
        ("account/prices", "from workshop.jobs import session", {"workshop.jobs.session"}),
        ("jobs/session", "def f():\n    import workshop.cli.run", {"workshop.cli.run"}),
        ("paths", "from workshop.jobs import session", {"workshop.jobs.session"}),
        ("lesson/check", "import workshop", {"workshop"}),
        ("lesson/check", "from workshop import paths", set()),
        ("jobs/session", "from ..account import prices", set()),
        ("cli/run", "from workshop.account.prices import table", set()),
    ],
)
def test_an_arrow_up_would_be_found(tmp_path, module, imports, wrong):
    for name in ("jobs/session", "account/prices", "cli/run", "lesson/check", "paths"):
        path = tmp_path / "workshop" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(imports if name == module else "")
        (path.parent / "__init__.py").touch()
    found = wrong_arrows(modules(tmp_path, {".": ("workshop",)}))
    assert found == ({f"workshop.{module.replace('/', '.')}": wrong} if wrong else {})


def test_contributing_tells_the_same_rooms():
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines()
        if line.startswith("| `workshop/")
    ]
    told = {row[0].strip("`").split("/")[1]: set(filter(None, row[2].split(", "))) for row in rows}
    below = set(ROOMS) - {"cli"}
    assert {room: below if may == {"all below"} else may for room, may in told.items()} == ROOMS


# local_sagemaker/: a folder imports only those after it (local_sagemaker/__init__.py says what
# each is). container/ runs on an instance and imports none of them.
LAYERS = (
    "cli",
    "server",
    "moto_backend",
    "api",
    "hosting",
    "training",
    "cluster",
    "core",
    "s3",
    "protocol",
    "storage",
)


def upward(known: dict[str, Path]) -> set[tuple[str, str]]:
    """(module of local_sagemaker/, module that it imports from a folder before its own)."""
    layer = {
        name: LAYERS.index(name.split(".")[1])
        for name in known
        if name.startswith("local_sagemaker.") and name.split(".")[1] in LAYERS
    }
    return {
        (name, one)
        for name in layer
        for one in imported(name, known) & layer.keys()
        if layer[one] < layer[name]
    }


def test_no_folder_of_the_endpoint_reaches_up(tmp_path):
    assert upward(modules()) == set()
    for name, text in {
        "training/job_run": "from local_sagemaker.server import app",
        "server/app": "",
    }.items():
        path = tmp_path / "local_sagemaker" / f"{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    known = modules(tmp_path, {".": ("local_sagemaker",)})
    assert upward(known) == {("local_sagemaker.training.job_run", "local_sagemaker.server.app")}


def test_the_container_imports_no_folder_of_the_endpoint():
    known = modules()
    ours = {name for name in known if name.startswith("local_sagemaker.container")}
    met = {one for name in ours for one in imported(name, known)} - ours
    assert {one for one in met if one.split(".")[1] in LAYERS} == set()
