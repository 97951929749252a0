"""Run the tests, give points by part, and pack what you hand in.

    python notebooks/project/grade.py                             # your own work
    python grade.py handin.zip --seed 4711 --key key.toml         # the instructor: hidden tests

SUBMISSION is a folder, or the zip that a student handed in. Into build/ go handin.zip,
whose content is graded, junit.xml and, with --gradescope, results.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path("build")
PARTS = {
    1: ("All-reduce over send and receive", 25),
    2: ("DDP with buckets that overlap", 30),
    3: ("A sharded optimizer", 20),
    4: ("A hierarchical all-reduce", 15),
    5: ("Six calculations (4 of the points by hand)", 10),
}


def main() -> int:
    """Grade; 0 if every test that ran passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("submission", type=Path, nargs="?", default=HERE)
    parser.add_argument("--seed", type=int, default=0, help="of sizes, ranks and models")
    parser.add_argument("--key", type=Path, help="the numbers of part 5")
    parser.add_argument("--gradescope", action="store_true", help="write its results.json")
    args = parser.parse_args()
    handin = args.submission if args.submission.is_file() else pack(args.submission)
    key = [f"--key={args.key.resolve()}"] if args.key else []
    with tempfile.TemporaryDirectory() as folder:  # what is not in the zip is missing here, too
        zipfile.ZipFile(handin).extractall(folder)
        tests = run_tests(Path(folder), "-m", "", f"--seed={args.seed}", *key)
    print_table(tests)
    if args.gradescope:
        write_gradescope(tests, bool(args.seed))
    return int(any(test["failure"] for test in tests))


def run_tests(submission: Path, *arguments: str) -> list[dict]:
    """Run the tests of this folder on a submission; a dictionary for each. arguments: pytest's."""
    BUILD.mkdir(exist_ok=True)
    report = (BUILD / "junit.xml").resolve()
    options = ["-P", "-m", "pytest"]  # -P: the submission's modules, not those beside this file
    options += ["-c", "pytest.ini", "--tb=short", "--show-capture=no", "-rs"]
    options += [f"--junitxml={report}", *arguments]
    environment = os.environ | {"PROJECT_SUBMISSION": str(submission)}
    subprocess.run([sys.executable, *options], cwd=HERE, env=environment)
    return [read_test(case) for case in ElementTree.parse(report).iter("testcase")]


def read_test(case: ElementTree.Element) -> dict:
    """A test of the JUnit file: part, name, points, failure, skipped, seconds, figures."""
    properties = {p.get("name"): float(p.get("value")) for p in case.iter("property")}
    problems = [*case.findall("failure"), *case.findall("error")]
    return {
        "part": int(case.get("classname").rpartition("test_part")[2][:1]),
        "name": case.get("name").removeprefix("test_").replace("_", " "),
        "points": properties.pop("points", 0.0),
        "failure": problems[0].get("message") if problems else None,
        "skipped": case.find("skipped") is not None,
        "seconds": float(case.get("time")),
        "figures": {name.removeprefix("leaderboard: "): v for name, v in properties.items()},
    }


def earned(tests: list[dict]) -> float:
    """Return the points of the tests that passed."""
    return sum(t["points"] for t in tests if not t["failure"] and not t["skipped"])


def print_table(tests: list[dict]) -> None:
    """Print the points by part, and the figures of the leaderboards."""
    print(f"\n{'part':48}{'points':>7}{'of':>5}{'s':>7}")
    for part, (title, points) in PARTS.items():
        of_part = [test for test in tests if test["part"] == part]
        seconds = sum(test["seconds"] for test in of_part)
        print(f"{part} {title:46}{earned(of_part):7g}{points:5}{seconds:7.1f}")
    print(f"{'':48}{earned(tests):7g}{sum(p for _, p in PARTS.values()):5}")
    for test in (t for t in tests if t["failure"] and t["points"]):
        print(f"part {test['part']}, {test['name']}: 0 of {test['points']:g}")
    ungraded = sum(test["points"] for test in tests if test["skipped"])
    if ungraded:
        print(f"{ungraded:g} points are not graded here: the numbers of part 5 need --key.")
    for name, value in figures(tests):
        print(f"{name}: {value:g}")


def figures(tests: list[dict]) -> list[tuple[str, float]]:
    """Return the leaderboards' (name, figure): the less, the better."""
    return [pair for test in tests for pair in test["figures"].items()]


def pack(submission: Path) -> Path:
    """Write handin.zip: adapters.py, the modules beside and below it, and answers.toml."""
    BUILD.mkdir(exist_ok=True)
    paths = [*submission.rglob("*.py"), *submission.rglob("*.toml")]
    names = sorted(path.relative_to(submission) for path in paths)
    packed = [name for name in names if not _stays_here(name)]
    with zipfile.ZipFile(BUILD / "handin.zip", "w") as handin:
        for name in packed:
            handin.write(submission / name, name)
    print(f"{handin.filename}: {', '.join(map(str, packed))}", flush=True)
    return BUILD / "handin.zip"


def _stays_here(name: Path) -> bool:
    hidden = any(part.startswith(".") for part in name.parts)
    return hidden or name.parts[0] in ("tests", "build", "grade.py", "ruff.toml")


def write_gradescope(tests: list[dict], hidden: bool) -> None:
    """Write results.json as Gradescope reads it. hidden: show tests after the due date."""
    results = {
        "tests": [
            {
                "name": f"{test['part']}: {test['name']}",
                "number": f"{test['part']}.{number}",
                "score": earned([test]),
                "max_score": test["points"],
                "status": "failed" if test["failure"] else "passed",
                "output": test["failure"] or "",
                "visibility": "after_due_date" if hidden else "visible",
            }
            for number, test in enumerate(tests, 1)
            if test["points"]
        ],
        "leaderboard": [{"name": n, "value": v, "order": "asc"} for n, v in figures(tests)],
        "execution_time": sum(test["seconds"] for test in tests),
    }
    (BUILD / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    sys.exit(main())
