"""`workshop run --target aws` in an account of its own, which the emulator plays.

Only what `workshop stacks up` made is there. Every call is held against the policies afterwards.
And a failure is put after every cell that makes something: what is then left, and billed.
botocore takes the emulator's address from the profile in AWS_CONFIG_FILE; `workshop` looks only
whether a variable of the shell leads elsewhere. So the code under test is that of target="aws".
"""

import contextlib
import os

import nbformat
import pytest
from aws_calls import World, read, requests_in_vpc, requests_of_job
from course_text import lessons
from deployed_policies import NAMES, seat_of
from lesson_runs import SEAT, SMALL, recorded
from test_lessons_calls import ALL_OF_A_SEAT, GOES_ON_WITHOUT

from local_sagemaker.pytest_plugin import emulator
from workshop.account import cleanup, resources, stacks
from workshop.course import run as course_run
from workshop.course.lessons import chosen
from workshop.jobs import local_server
from workshop.jobs.session import session

pytestmark = [pytest.mark.soak, pytest.mark.timeout(5400)]
MAKES = (  # what can be billed by the hour, or is a stack
    *("CreateTrainingJob", "CreateTransformJob", "CreateEndpoint", "CreateStack"),
    *("CreateModel", "CreateEndpointConfig"),
)
NUMBERS = [*sorted(set(lessons()) - {ALL_OF_A_SEAT}), ALL_OF_A_SEAT]


@contextlib.contextmanager
def account(folder):
    """An account with the seat's stacks, as the lessons see it: the seat's session."""
    with emulator(folder / "state") as running, pytest.MonkeyPatch.context() as patch:
        env = running.env
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", env["SAGEMAKER_USER_CONFIG_OVERRIDE"])
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        (folder / "config").write_text(
            f"[default]\nregion = {env['AWS_DEFAULT_REGION']}\n"
            f"endpoint_url = {env['AWS_ENDPOINT_URL']}\n"
            f"aws_access_key_id = {env['AWS_ACCESS_KEY_ID']}\n"
            f"aws_secret_access_key = {env['AWS_SECRET_ACCESS_KEY']}\n"
        )
        patch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "none"))
        owner = session("aws", SEAT)
        stacks.deploy(owner, NAMES, log=lambda _: None)
        yield owner
        local_server.point_back()


def run(lesson, folder, **parameters):
    """`workshop run LESSON --target aws`. Returns whether it ran to its end."""
    return course_run.run([lesson], folder, "aws", {"seat": SEAT} | parameters)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """All lessons, one after the other, in one account: the seat; number -> (ended well, calls)."""
    folder, ended = tmp_path_factory.mktemp("as-on-aws"), {}
    with account(folder) as owner:
        seat = seat_of(owner, NAMES)
        for number in NUMBERS:
            (lesson,) = chosen((number,))
            with recorded(folder / f"{number}.calls"):
                ended[number] = run(lesson, folder / "out", **SMALL.get(number, {}))
        left = cleanup.find(owner)
    calls = {number: read(folder / f"{number}.calls") for number in NUMBERS}
    return seat, folder / "out", ended, calls, left


def test_all_lessons_finish_in_order_and_their_roles_allow_every_call(runs):
    seat, _, ended, calls, left = runs
    assert ended == dict.fromkeys(NUMBERS, True)
    world, refused = World(), []
    for number in NUMBERS[:-1]:  # whoever deletes a whole seat is its owner
        assert calls[number] or number in ("01", "02")
        for call in calls[number]:
            requests = seat.refused("NotebookRole", world.permissions_for(call))
            if (call.service, call.operation) not in GOES_ON_WITHOUT:
                refused += [(number, request) for request in requests]
            if call.operation == "CreateTrainingJob":
                job = requests_of_job(call.request)
                job += requests_in_vpc(seat.outputs) if "VpcConfig" in call.request else []
                refused += [(number, request) for request in seat.refused("TrainingRole", job)]
    assert refused == []
    assert by_the_hour(left) == []


def creating_cells(calls):
    """The numbers of the cells that made something, and what."""
    by_cell = {}
    for call in calls:
        if call.operation in MAKES and call.cell is not None:
            by_cell.setdefault(call.cell, []).append(call.operation.removeprefix("Create"))
    return by_cell


def broken_off(executed, after, to):
    """The lesson up to the cell with this number, and then a failure."""
    notebook = nbformat.read(executed, as_version=4)
    cells = [
        cell
        for cell in notebook.cells
        if "injected-parameters" not in cell.metadata.get("tags", [])
    ]
    last = next(n for n, cell in enumerate(cells) if cell.get("execution_count") == after)
    notebook.cells = [
        *cells[: last + 1],
        nbformat.v4.new_code_cell("raise RuntimeError('injected')"),
    ]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, to)
    return to


def by_the_hour(inventory):
    """What is billed by the hour, used or not, beside stacks: (kind, name)."""
    kinds = {each.kind for each in resources.WHAT_RUNS}
    return [(row.kind, row.name) for row in inventory.owned if row.kind in kinds]


def table(executed, cells, folder, parameters, capsys):
    """Break a lesson off after each creating cell.

    Rows: the cell's number, what it makes, what is left, what was said.
    """
    rows = []
    for cell, made in cells.items():
        place = folder / f"cell-{cell}"
        place.mkdir()
        with account(place) as opened:
            lesson = broken_off(executed, cell, place / executed.name)
            capsys.readouterr()
            good = run(lesson, place / "out", **parameters)
            printed = capsys.readouterr().out
            assert not good and "injected" in printed, printed
            rows.append((cell, made, by_the_hour(cleanup.find(opened)), printed))
    return rows


def check(rows):
    """Nothing is billed by the hour; and the command that shows what else is left is named."""
    for cell, made, left, printed in rows:
        assert "workshop clean --dry-run --seat" in printed
        assert not left, (cell, made)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_failure_after_any_creating_cell_leaves_nothing_billed(number, runs, tmp_path, capsys):
    _, folder, _, calls, _ = runs
    executed = next(folder.glob(f"{number}_*.ipynb"))
    cells = creating_cells(calls[number])
    rows = table(executed, cells, tmp_path, SMALL.get(number, {}), capsys)
    with capsys.disabled():
        for cell, made, left, _ in rows:
            print(f"{number} [{cell}] {' '.join(made)}: left by the hour: {left or 'nothing'}")
    check(rows)
    assert rows or number in ("01", "02"), "nothing was made"
