"""The project's tests give the reference all points, and take them from wrong solutions."""

import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from script_harness import replaced

HERE = Path(__file__).parent
MUTANTS = tomllib.loads((HERE / "mutants.toml").read_text())
FEW = ("the rest of a division is left out", "the mean of the ranks' means")
PROJECT = HERE.parents[2] / "notebooks" / "project"
sys.path.insert(0, str(PROJECT))

import grade  # noqa: E402

KEY = f"--key={HERE / 'key.toml'}"
OF_POWERS_OF_TWO = {"bytes on any number of ranks"}
ONE_BUCKET = {"buckets are flat and of bucket bytes", "buckets travel while backward goes on"}
NO_PIPELINE = {"both links work at the same time"}


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def failures(tests: list[dict]) -> dict[str, str]:
    return {test["name"]: test["failure"] for test in tests if test["failure"]}


def mutated(name: str, folder: Path) -> Path:
    """A copy of the reference with the mutant's words."""
    shutil.copytree(HERE / "reference", folder)
    path = folder / MUTANTS[name]["file"]
    path.write_text(replaced(path.read_text(), MUTANTS[name]["changes"]))
    return folder


@pytest.mark.parametrize(
    "name",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.soak) for name in MUTANTS],
)
def test_a_wrong_solution_loses_points_where_it_is_wrong(name, tmp_path):
    part, fails = MUTANTS[name]["part"], MUTANTS[name]["fails"]
    names = [f"tests/test_part{part}.py::test_{test.replace(' ', '_')}" for test in fails]
    tests = grade.run_tests(mutated(name, tmp_path / "wrong"), *names)
    wrong = failures(tests)
    assert wrong.keys() == set(fails) and grade.earned(tests) == 0
    assert max(test["seconds"] for test in tests) < 20
    says = MUTANTS[name].get("says", "")
    assert all(" rank" in text and says in text for text in wrong.values())  # and where


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 6))]
)
def test_the_reference_gets_all_points(seed):
    """All but the four that are given by hand."""
    tests = grade.run_tests(HERE / "reference", KEY, f"--seed={seed}")
    assert failures(tests) == {} and grade.earned(tests) == 96


@pytest.mark.soak
def test_the_reference_handed_in_for_gradescope():
    """Through the zip, to results.json; with a sub-folder, and modules named as the tests' are."""
    command = [sys.executable, PROJECT / "grade.py"]
    folder = Path(shutil.copytree(HERE / "reference", "student"))
    (folder / "parts").mkdir()
    (folder / "sharded.py").rename(folder / "parts" / "sharded.py")
    (folder / "ring.py").rename(folder / "ranks.py")
    for path in (folder / "adapters.py", folder / "hierarchical.py"):
        text = path.read_text().replace("import ring", "import ranks as ring")
        path.write_text(text.replace("import sharded", "from parts import sharded"))
    handin = shutil.move(grade.pack(folder), "student.zip")
    done = subprocess.run([*command, handin, KEY, "--gradescope"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    results = json.loads(Path("build/results.json").read_text())
    assert sum(test["score"] for test in results["tests"]) == 96
    assert {entry["order"] for entry in results["leaderboard"]} == {"asc"}
    assert "96  100" in done.stdout


@pytest.mark.soak
def test_another_design_gets_what_it_earns():
    wrong = failures(grade.run_tests(HERE / "halving", KEY))
    assert wrong.keys() == OF_POWERS_OF_TWO | ONE_BUCKET | NO_PIPELINE


def test_own_modules_are_packed_with_sub_folders_and_nothing_else(tmp_path):
    names = {"adapters.py", "answers.toml", "net/ring.py"}
    for name in (*names, "grade.py", "ruff.toml", "tests/a.py", "build/a.py", ".venv/a.py", "a.md"):
        path = tmp_path / "student" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with zipfile.ZipFile(grade.pack(tmp_path / "student")) as handin:
        assert set(handin.namelist()) == names


def test_an_untouched_adapter_gets_nothing():
    tests = grade.run_tests(PROJECT)
    assert grade.earned(tests) == 0
    assert all("part" in text or "answers.toml" in text for text in failures(tests).values())


@pytest.mark.soak
def test_ranks_that_wait_for_each_other_are_shown(tmp_path):
    wrong = tmp_path / "wrong"
    shutil.copytree(HERE / "reference", wrong)
    text = (wrong / "ring.py").read_text()
    (wrong / "ring.py").write_text(text.replace("dist.irecv(", "dist.recv("))
    (failure,) = failures(grade.run_tests(wrong, "tests/test_part1.py", "-k", "mean")).values()
    assert "rank 0 is at ring.py:" in failure and "dist.recv(" in failure
