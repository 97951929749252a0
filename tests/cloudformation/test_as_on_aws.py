"""`workshop run --target aws` in an account of its own, which the emulator plays.

In strict mode: policies are enforced, and only what `workshop stacks up` made is there. And with a
failure after every cell that makes something: what is then left, and billed.
"""

import as_aws
import nbformat
import pytest
from aws_calls import read
from course_text import lessons
from lesson_runs import SEAT, SMALL, recorded
from test_lessons_calls import ALL_OF_A_SEAT, GOES_ON_WITHOUT

from workshop.account import cleanup, prices, stacks
from workshop.course import run as course_run
from workshop.course.lessons import chosen

pytestmark = [pytest.mark.soak, pytest.mark.timeout(5400)]
MAKES = (  # what can be billed by the hour, or is a stack
    *("CreateTrainingJob", "CreateTransformJob", "CreateEndpoint", "CreateStack"),
    *("CreateModel", "CreateEndpointConfig"),
)
NUMBERS = sorted(set(lessons()) - {ALL_OF_A_SEAT})


def run(lesson, folder, **parameters):
    """`workshop run LESSON --target aws`. Returns whether it ran to its end."""
    return course_run.run([lesson], folder, "aws", {"seat": SEAT} | parameters)


def small(number):
    """The lesson's small parameters."""
    return SMALL.get(number, {})


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """All lessons, one after the other, in one account. number -> (ended well, its calls)."""
    folder, rows = tmp_path_factory.mktemp("strict"), {}
    with as_aws.empty_account(folder) as patch:
        opened = as_aws.owner()
        refused = as_aws.enforce(patch, opened, folder)
        for number in NUMBERS:
            (lesson,) = chosen((number,))
            calls = folder / f"{number}.calls"
            with recorded(calls):
                good = run(lesson, folder / "out", **small(number))
            rows[number] = good, read(calls), calls
            print(f"lesson {number}: {'ok' if good else 'FAILED'}, {len(rows[number][1])} calls")
        patch.delenv("STRICT_POLICIES")  # whoever deletes a whole seat is its owner
        (lesson,) = chosen((ALL_OF_A_SEAT,))
        calls = folder / "99.calls"
        with recorded(calls):
            rows[ALL_OF_A_SEAT] = run(lesson, folder / "out"), read(calls), calls
        denied = refused.read_text().splitlines() if refused.exists() else []
        left = cleanup.find(opened)
    return rows, denied, left


def test_all_lessons_finish_in_order_from_an_empty_account_with_policies_enforced(strict):
    rows, denied, left = strict
    assert {number: good for number, (good, *_) in rows.items()} == dict.fromkeys(rows, True)
    assert all(calls for number, (_, calls, _) in rows.items() if number not in ("01", "02"))
    fine = {f"{service} {operation}" for service, operation in GOES_ON_WITHOUT}
    assert {line.split(":")[0] for line in denied} <= fine, denied
    assert left.by_the_hour == []


def creating_cells(calls):
    """The numbers of the cells that made something, and what."""
    rows = {}
    for call in calls:
        if call.operation in MAKES and call.cell is not None:
            rows.setdefault(call.cell, []).append(call.operation.removeprefix("Create"))
    return rows


def broken_off(executed, after, to):
    """The lesson up to the cell with this number, and then a failure."""
    notebook = nbformat.read(executed, as_version=4)
    of_run = [
        row for row in notebook.cells if "injected-parameters" not in row.metadata.get("tags", [])
    ]
    last = next(n for n, row in enumerate(of_run) if row.get("execution_count") == after)
    notebook.cells = [
        *of_run[: last + 1],
        nbformat.v4.new_code_cell("raise RuntimeError('injected')"),
    ]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, to)
    return to


def look(opened):
    """What is billed by the hour, with its price."""
    rows = [(row.kind, row.name, row.usd_per_hour) for row in cleanup.find(opened).by_the_hour]
    status = stacks.status(opened, ("network", "notebook"))
    hourly = [(row.stack, prices.hourly_cost(opened, row).usd) for row in status]
    return rows + [("stacks", name, usd) for name, usd in hourly if usd]


def table(executed, cells, folder, parameters, capsys):
    """Break a lesson off after each creating cell.

    Rows: the cell's number, what it makes, what is left, what was said.
    """
    rows = []
    for cell, made in cells.items():
        place = folder / f"cell-{cell}"
        place.mkdir()
        with as_aws.empty_account(place):
            opened = as_aws.owner()
            lesson = broken_off(executed, cell, place / executed.name)
            capsys.readouterr()
            good = run(lesson, place / "out", **parameters)
            lines = capsys.readouterr().out
            assert not good and "injected" in lines, lines
            rows.append((cell, made, look(opened), lines))
    return rows


def check(rows):
    """Nothing is billed by the hour, or it is named with its price and the command against it."""
    for cell, made, left, lines in rows:
        for kind, name, usd in left:
            line = next((row for row in lines.splitlines() if name in row and "BILLED" in row), "")
            assert f"{usd:.3f} USD an hour" in line, f"[{cell}] {made}: {kind} {name} is not named"
            assert "workshop clean --seat" in lines
        assert not [name for kind, name, _ in left if kind != "stacks"], (cell, made, left)


@pytest.mark.parametrize("number", sorted(lessons()))
def test_a_failure_after_any_creating_cell_leaves_nothing_billed(number, strict, tmp_path, capsys):
    _, calls, path = strict[0][number]
    executed = next((path.parent / "out").glob(f"{number}_*.ipynb"))
    rows = table(executed, creating_cells(calls), tmp_path, small(number), capsys)
    with capsys.disabled():
        for cell, made, left, _ in rows:
            print(f"{number} [{cell}] {' '.join(made)}: left by the hour: {left or 'nothing'}")
    check(rows)
    assert rows or number in ("01", "02"), "nothing was made"
