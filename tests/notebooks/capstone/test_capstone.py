"""The capstone: what its grader gives to the reference, to each fault left in and to tricks."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from script_harness import module, replaced

from workshop.paths import NOTEBOOKS

GIVEN, REFERENCE = NOTEBOOKS / "capstone", Path(__file__).parent
CHANGED = tomllib.loads((REFERENCE / "faults.toml").read_text())
FAULTS, TRICKS = CHANGED["faults"], CHANGED["tricks"]
GOES_ON = [("start", 0), ("epoch", 5), ("epoch", 10), ("start", 1), ("epoch", 10), ("epoch", 15)]
RESTARTS = {  # (event, epoch or step, rank if not 0) ... -> what is said of an interrupted job
    "goes on": (GOES_ON, None),
    "rank 1's first line comes late": ([*GOES_ON[:2], ("start", 0, 1), *GOES_ON[2:]], None),
    "interrupted twice": ([*GOES_ON[:4], *GOES_ON[3:]], None),
    "begins again": ([*GOES_ON[:3], *GOES_ON[:3]], "began again at epoch 0"),
    "says that it resumes": ([*GOES_ON[:3], ("start", 1), *GOES_ON[1:3]], "went on with step 5"),
}


@pytest.fixture
def folder(tmp_path):
    """The capstone, with the reference's script and report."""
    shutil.copytree(GIVEN, tmp_path / "capstone", ignore=shutil.ignore_patterns("points.json"))
    for name in ("train_many.py", "report.md", "jobs.py"):
        shutil.copy(REFERENCE / name, tmp_path / "capstone")
    return tmp_path / "capstone"


@pytest.fixture
def grader(folder):
    """That folder's grade.py as a module."""
    return module("grade.py", folder)


def main(grader, monkeypatch, *words):
    """(exit status, points.json)."""
    monkeypatch.setattr(sys, "argv", ["grade.py", *map(str, words)])
    return grader.main(), json.loads(grader.POINTS.read_text())


def grade(folder, *words):
    """(exit status, points.json, what was printed)."""
    command = [sys.executable, folder / "grade.py", *words]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads((folder / "points.json").read_text()), done.stdout


def replace(folder, *changes):
    path = folder / "train_many.py"
    path.write_text(replaced(path.read_text(), changes))


@pytest.mark.timeout(600)
def test_the_reference_repairs_chooses_and_is_told_what_else_is_missing(folder):
    status, points, printed = grade(folder, 1, 4, 5, 6)
    assert [points[task]["points"] for task in "1456"] == [20, 10, 4, 0], printed
    assert status == 1 and "grade 2 and 3 before you clean up" in printed
    assert len((folder / "README.md").read_text().splitlines()) <= 60, "more than a page"


def test_without_a_number_all_six_are_graded_and_a_missing_bracket_has_a_line(
    grader, monkeypatch, capsys
):
    replace(grader.HERE, ("args = parse_args()", "args = parse_args("))
    status, points = main(grader, monkeypatch)
    assert status == 1 and set("123456") <= set(points)
    line = grader.MANY.read_text()[: grader.MANY.read_text().index("parse_args(\n")].count("\n") + 1
    assert points["1"]["lost"] == [f"-20: train_many.py, line {line}: '(' was never closed"]
    with pytest.raises(SystemExit, match="2"):
        main(grader, monkeypatch, 1, 7)
    assert "tasks are numbers from 1 to 6" in capsys.readouterr().err


def test_after_the_clean_up_points_of_jobs_stay(grader, monkeypatch, capsys):
    grader.POINTS.write_text(json.dumps({task: {"points": 10} for task in "236"}))
    _, points = main(grader, monkeypatch, 2, 3)
    assert points["2"] == points["3"] == {"points": 10}
    assert capsys.readouterr().out.count("10 of 20 kept from before the clean-up") == 2


def test_another_seat_is_not_the_one_to_clean_up(grader, monkeypatch):
    script = hashlib.sha256(grader.MANY.read_bytes()).hexdigest()
    points = {"2": {"points": 20}, "seat": "ann", "trained_together": script}
    grader.POINTS.write_text(json.dumps(points))
    _, points = main(grader, monkeypatch, 2, "--seat", "bob")
    assert points["2"]["lost"] == ["-20: jobs of seat ann have been graded: use --seat ann"]
    points["2"]["points"] = 20
    grader.POINTS.write_text(json.dumps(points))
    _, points = main(grader, monkeypatch, 6, "--seat", "bob")
    assert points["6"] == {"points": 0, "lost": ["-10" + points["2"]["lost"][0][3:]]}


@pytest.mark.parametrize("name", RESTARTS)
def test_a_restart_is_believed_if_its_next_step_fits(grader, name):
    rows, reason = RESTARTS[name]
    records = [
        {"event": event, "epoch" if event == "start" else "step": number, "rank": sum(rank)}
        for event, number, *rank in rows
    ]
    fault = grader.restart_fault(records)
    assert reason in fault if reason else fault is None


@pytest.mark.parametrize(
    ("changed", "hyperparameters", "reason"),
    [
        ("", {}, None),
        ("", {"epochs": 20}, "had hyperparameters: epochs"),
        ("train_alone.py", {}, "ran another train_alone.py"),
        ("train_many.py", {}, "ran another train_many.py"),
    ],
)
def test_a_job_with_other_settings_or_files(grader, monkeypatch, changed, hyperparameters, reason):
    files = {path.name: path.read_bytes() for path in (grader.ALONE, grader.MANY)}
    monkeypatch.setattr(grader, "files_of", lambda *_: files | ({changed: b""} if changed else {}))
    hyperparameters |= {"sagemaker_submit_directory": "s3://there", "sagemaker_mpi_enabled": True}
    events = [{"event": "epoch", "step": step} for step in range(60)]
    job = SimpleNamespace(name="capstone-2x1", hyperparameters=hyperparameters, events=events)
    fault = grader.wrong_job(None, "2 x 1", {"2 x 1": job})
    assert reason in fault if reason else fault is None


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_ranks_that_do_not_end_are_killed(grader, monkeypatch, tmp_path):
    """Torchrun starts each in a session of its own: to kill its group is not enough."""
    grader.MANY.write_text(
        "import os, pathlib, time\n"
        f"path = pathlib.Path({str(tmp_path)!r}, 'pid-' + os.environ['RANK'])\n"
        "path.write_text(str(os.getpid()))\n"
        "time.sleep(1000)\n"
    )
    monkeypatch.setattr(grader, "TIMEOUT", 60)
    with pytest.raises(grader.Refused, match="had not ended after 60 s"):
        grader.run_traced(tmp_path / "2 ranks", grader.MANY, 2, 1, tmp_path / "1")
    pids = [int((tmp_path / f"pid-{rank}").read_text()) for rank in range(2)]
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("choice", "usd", "reason"),
    [
        ("2 x ml.c5.2xlarge", "2.37", None),
        ("2x ml.c5.2xlarge", "2.37 USD", None),
        ("2 × `ml.c5.2xlarge`", "$2.37", None),
        ("`ml.c5.2xlarge` x 2", "USD 2.37", None),
        ("8 x ml.c5.xlarge", "3.92", "over the budget"),
        ("1 x ml.c5.xlarge", "2.04", "later than 3.0 h"),
        ("2 x ml.c5.2xlarge", "1.18", "does not cost 1.18 USD: count x hours"),
        ("2 x ml.c5.2xlarge", "", "does not cost nothing USD: count x hours"),
        ("3 x ml.c5.2xlarge", "2", "with hours in README.md's table"),
        ("many", "2", "with hours in README.md's table"),
    ],
)
def test_a_choice(grader, monkeypatch, choice, usd, reason):
    report = grader.HERE / "report.md"
    text = re.sub("Choice: .*", f"Choice: {choice}", report.read_text())
    report.write_text(re.sub("USD: .*", f"USD: {usd}", text))
    status, points = main(grader, monkeypatch, 4)
    lost = points["4"]["lost"]
    assert reason in lost[0] if reason else (status, lost) == (0, [])


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_untouched_it_has_no_point(folder):
    shutil.copy(GIVEN / "train_many.py", folder)
    shutil.copy(GIVEN / "report.md", folder)
    status, points, printed = grade(folder, 1, 2, 4, 5)
    assert status == 1 and [points[task]["points"] for task in "1245"] == [0] * 4, printed
    assert "train_many.py with 2 ranks, started again ..." in printed
    assert all(fault["says"] in printed for fault in FAULTS.values()), printed


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_left_in_is_seen(folder, name):
    fault = FAULTS[name]
    replace(folder, *fault["changes"])
    _, points, printed = grade(folder, 1)
    assert points["1"]["points"] == fault["points"], printed
    assert re.search(rf"-2: .*{re.escape(fault['says'])}", printed), printed


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_has_no_point(folder, name):
    replace(folder, *TRICKS[name]["changes"])
    _, points, printed = grade(folder, 1)
    assert points["1"]["points"] == 0 and TRICKS[name]["says"] in printed, printed
    assert points["trained_together"] is None, "tasks 2 and 3 would be graded"


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("forgets", [False, True])
def test_the_jobs_of_the_reference(folder, forgets, sagemaker_emulator, clean_aws):
    """The whole way to "Left: nothing"; then a script that forgets the optimizer."""
    if forgets:
        replace(folder, *FAULTS["checkpoint"]["changes"])
    seat = ["--seat", f"cap{forgets:d}"]
    grade(folder, 1)
    subprocess.run([sys.executable, folder / "jobs.py", seat[1], "10"], check=True)
    status, points, printed = grade(folder, *seat, 2, 3)
    assert [points[task]["points"] for task in "23"] == [20, 10 if forgets else 20], printed
    assert points["seat"] == seat[1] and set(points["jobs"]) == {"alone", "2 x 1", "1 x 2", "spot"}
    if forgets:
        assert "not equal to the last bit" in printed
        return
    report = (folder / "report.md").read_text()
    for name, kind in (("ALONE", "alone"), ("TWO_HOSTS", "2 x 1"), ("ONE_HOST", "1 x 2")):
        report = report.replace(name, f"{points['medians'][kind]:.1f}")
    (folder / "report.md").write_text(report)
    status, points, printed = grade(folder, *seat, 5, 6)
    assert (points["5"]["points"], points["6"]["points"]) == (8, 0), printed
    clean = [Path(sys.executable).with_name("workshop"), "clean", "--yes", *seat]
    done = subprocess.run([*map(str, clean)], capture_output=True, text=True)
    assert "Left: nothing." in done.stdout
    grade(folder, *seat, 4, 5, 6)
    status, points, printed = grade(folder, *seat, 2, 3)
    assert status == 0 and "88 of 88 points by program" in printed
