"""The capstone: what its grader gives to the reference, to each fault left in and to tricks."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workshop.paths import NOTEBOOKS

GIVEN, REFERENCE = NOTEBOOKS / "capstone", Path(__file__).parent
AVERAGE = "            average_gradients(model, world_size)\n"
BARRIER = "        dist.barrier()  # so that no rank's clock counts the others' way to here\n"
BROADCAST = """    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
"""
AVERAGE_AT_END = """    for parameter in model.parameters():
        dist.all_reduce(parameter.data)
        parameter.data /= world_size
    if rank == 0:
        save(model"""
FAULTS = {  # name -> what stands in the reference, what in its place, points of task 1 that stay
    "channel": ("load(args.training)", "load(args.test)", 10),
    "sampler": ("sampler=sampler", "shuffle=False", 8),  # without it nobody sees the epochs
    "set_epoch": ("        sampler.set_epoch(epoch)\n", "", 10),
    "broadcast": (BROADCAST, "", 10),
    "saving": (" and rank == 0", "", 18),
    "checkpoint": ('        optimizer.load_state_dict(state["optimizer"])\n', "", 18),
}
TRICKS = {  # what stands in the reference, what in its place, the reason for 0 points
    "rank 0 trains alone": (
        "    for epoch in range(first, args.epochs):",
        "    loader = DataLoader(dataset, args.global_batch_size, sampler=range(len(dataset)))\n"
        "    for epoch in range(first, args.epochs if rank == 0 else 0):",
        "rank 0 trained the whole batch",
    ),
    "averages at the end only": (
        "    if rank == 0:\n        save(model",
        AVERAGE_AT_END,
        "first updates differ",
    ),
    "no training, known hash": (
        "    for epoch in range(first, args.epochs):",
        "    for epoch in []:",
        "rank 0 trained no image",
    ),
}


@pytest.fixture
def folder(tmp_path):
    """The capstone, with the reference's script and report."""
    shutil.copytree(GIVEN, tmp_path / "capstone", ignore=shutil.ignore_patterns("points.json"))
    for name in ("train_many.py", "report.md", "jobs.py"):
        shutil.copy(REFERENCE / name, tmp_path / "capstone")
    return tmp_path / "capstone"


def grade(folder, *words):
    """(exit status, points.json, what was printed)."""
    command = [sys.executable, folder / "grade.py", *words]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads((folder / "points.json").read_text()), done.stdout


def replace(folder, old, new):
    path = folder / "train_many.py"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.mark.timeout(600)
def test_the_reference_repairs_chooses_and_is_told_what_else_is_missing(folder):
    status, points, printed = grade(folder, 1, 4, 5, 6)
    assert [points[task]["points"] for task in "1456"] == [20, 10, 4, 0], printed
    assert status == 1 and "grade 2 and 3 before you clean up" in printed
    assert len((folder / "README.md").read_text().splitlines()) <= 60, "more than a page"


@pytest.mark.parametrize(
    ("choice", "usd", "reason"),
    [
        ("8 x ml.c5.xlarge", "3.92", "over the budget"),
        ("1 x ml.c5.xlarge", "2.04", "later than 3.0 h"),
        ("2 x ml.c5.2xlarge", "1.18", "does not cost 1.18 USD: count x hours"),
        ("many", "2", "a row of the table"),
    ],
)
@pytest.mark.soak
def test_a_choice_that_is_wrong(folder, choice, usd, reason):
    report = folder / "report.md"
    text = re.sub("Choice: .*", f"Choice: {choice}", report.read_text())
    report.write_text(re.sub("USD: .*", f"USD: {usd}", text))
    status, points, _ = grade(folder, 4)
    assert status == 1 and reason in points["4"]["lost"][0]


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_untouched_it_has_no_point(folder):
    shutil.copy(GIVEN / "train_many.py", folder)
    shutil.copy(GIVEN / "report.md", folder)
    status, points, printed = grade(folder, 1, 2, 4, 5)
    assert status == 1 and [points[task]["points"] for task in "1245"] == [0] * 4, printed
    assert all(name in printed for name in FAULTS)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_left_in_is_named(folder, name):
    old, new, left = FAULTS[name]
    replace(folder, old, new)
    if name == "broadcast":
        replace(folder, "torch.manual_seed(args.seed)", "torch.manual_seed(args.seed + rank)")
    _, points, printed = grade(folder, 1)
    assert points["1"]["points"] == left, printed
    assert f"-2: {name}: " in printed


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_has_no_point(folder, name):
    old, new, reason = TRICKS[name]
    replace(folder, old, new)
    replace(folder, AVERAGE, "")
    if "alone" in name:  # else it keeps rank 1 from starting after rank 0 has ended
        replace(folder, BARRIER, "")
    _, points, printed = grade(folder, 1)
    assert points["1"]["points"] == 0 and reason in printed, printed
    assert points["trained_together"] is None, "tasks 2 and 3 would be graded"


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("forgets", [False, True])
def test_the_jobs_of_the_reference(folder, forgets, sagemaker_emulator, clean_aws):
    """The whole way to "Left: nothing"; then a script that forgets the optimizer."""
    if forgets:
        replace(folder, FAULTS["checkpoint"][0], "")
    seat = ["--seat", f"cap{forgets:d}"]
    grade(folder, 1)
    subprocess.run([sys.executable, folder / "jobs.py", seat[1], "40"], check=True)
    status, points, printed = grade(folder, *seat, 2, 3)
    assert [points[task]["points"] for task in "23"] == [20, 10 if forgets else 20], printed
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
    status, points, printed = grade(folder, *seat, 4, 5, 6)
    assert status == 0 and "88 of 88 points by program" in printed
