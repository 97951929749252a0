"""Wrong words after `workshop` and `python -m data_prep`: refused at the door, in plain words."""

from pathlib import Path

import pytest
from bad_inputs_helpers import Row, a_file, check

from workshop.cli import main


def an_empty_folder(here: Path) -> None:
    (here / "empty").mkdir()


ROWS = [
    *(
        Row(f"a folder that cannot be: {command}", f"{command} --out /proc/x", ("/proc/x",), code=1)
        for command in ("run 00", "class hand-in Ada")
    ),
    Row("no such lesson", "preflight 77 --offline", ("No lesson 77", "05")),
    Row("no lesson at all", "preflight --offline", ("Missing argument 'LESSON'",)),
    Row(
        "a parameter without a value",
        "preflight 05 --offline -p epochs",
        ("-p epochs", "expected NAME=VALUE"),
    ),
    Row(
        "a value that is not YAML",
        "preflight 05 --offline -p epochs=[1",
        ("-p epochs=[1", "not YAML", "Quote"),
    ),
    Row(
        "no such parameter",
        "preflight 05 --offline -p epoch=3",
        ("no parameter epoch", "It has:", "epochs"),
    ),
    Row(
        "a parameter of another type",
        "preflight 05 --offline -p instance_count=many",
        ("instance_count is 'many'", "expected int that is not below 0, such as 2"),
    ),
    Row(
        "a seat with a space",
        "preflight 05 --offline --seat A~B",
        ("seat is 'A B'", "small letters"),
    ),
    Row("clean, and nobody to ask", "clean", ("--yes", "--dry-run", "nothing was deleted")),
    Row("clean, and no region", "clean --target aws --yes", ("No AWS region is set",)),
    Row("a seat that climbs", "clean --yes --seat ../x", ("seat is '../x'", "letters")),
    Row("a stack's parameter", "stacks status --seat Me!", ("seat is 'Me!'", "letters")),
    Row("no such failure", "break no-such", ("There are: rank-dies,",)),
    Row("a failure without a name", "break --fixed", ("goes with a NAME",)),
    Row("no such lesson to run", "run 42", ("42", "05"), code=1),
    Row(
        "a folder without lessons",
        "run --notebooks {here}/empty",
        ("{here}/empty", "no lesson"),
        code=1,
        make=an_empty_folder,
    ),
    Row("a name that is none", "run 00 -p 1x=3", ("-p 1x=3", "-p epochs=3")),
    Row("the target as a parameter", "run 00 -p target=aws", ("use --target",)),
    Row(
        "pages into a file",
        "run 00 --out {here}/file",
        ("--out {here}/file is a file", "expected a folder"),
        make=a_file,
    ),
    *(
        Row(f"JupyterLab for everybody: {option}", f"lab {option} 0.0.0.0", (option, "SSH tunnel"))
        for option in ("--ip", "--ServerApp.ip", "--LabApp.ip")
    ),
    *(
        Row(f"JupyterLab without a key: {option}", f"lab {option}", ("is empty", "holds a token"))
        for option in (
            "--ServerApp.token=",
            "--IdentityProvider.token=",
            "--LabApp.token ",
            "--ServerApp.token=''",
            "--ServerApp.password=",
            "--PasswordIdentityProvider.hashed_password=",
        )
    ),
    Row("a stack that is none", "stacks up vpc", ("'vpc' is not one of 'storage', 'roles',",)),
    Row("a stack's value", "stacks up network -p Nat", ("is not KEY=VALUE",)),
    *(
        Row(f"no region: {command}", f"stacks {command}", ("AWS_DEFAULT_REGION",))
        for command in ("up --target aws", "status --target aws", "down --target aws --yes")
    ),
    Row("a target that is none", "stacks up --target mars", ("'mars' is not one of",)),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_a_command_line_that_is_refused(row, tmp_path):
    check(row, main, tmp_path)
