"""The checks of lesson 00's exercises."""

from __future__ import annotations

import contextlib
import io
import json
import re

from workshop.lesson.check import Wrong, exercise

LOSSES = ("0.2153", "2", "4.1e-05", "1.7E+3", "-0.5", "12.0")


@exercise("00.1")
def train_loss_regex(answer) -> str:
    """A regular expression with one group that is exactly the number of train_loss."""
    pattern = answer()
    if not isinstance(pattern, str):
        raise Wrong(f"It returned {pattern!r}. Return the regular expression, a string.")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise Wrong(f"{pattern!r} is not a regular expression: {error}.") from None
    if compiled.groups != 1:
        raise Wrong(
            f"It has {compiled.groups} groups. SageMaker takes what one group matches: put the "
            "brackets ( ) around the number, and no others."
        )
    for loss in LOSSES:
        _finds(compiled, _line(loss), loss)
        _finds(compiled, _line(loss, best="0.11"), loss)
        _finds(compiled, f'{{"event": "epoch", "train_loss": {loss}}}', loss)
    for line in ('{"event": "epoch", "best_train_loss": 0.11}', "no train_loss yet: 0.5"):
        match = compiled.search(line)
        if match:
            raise Wrong(
                f"It finds {match[1]!r} in the line `{line}`, which has no train_loss. The name "
                "is between quotation marks: match them too."
            )
    return f"It finds the number in each of {3 * len(LOSSES)} lines, and none where there is none."


def _line(loss: str, best: str | None = None) -> str:
    before = f'"best_train_loss": {best}, ' if best else ""
    return f'{{"event": "epoch", {before}"train_loss": {loss}, "test_accuracy": 0.9306}}'


def _finds(pattern: re.Pattern, line: str, loss: str) -> None:
    match = pattern.search(line)
    if match is None:
        raise Wrong(f"It finds nothing in the line `{line}`.")
    if match[1] != loss:
        raise Wrong(
            f"It finds {match[1]!r} in the line `{line}`. The loss there is {loss}: the group "
            "must take the whole number and nothing else."
        )


@exercise("00.2")
def settings(answer) -> str:
    """Arguments and environment of an instance, of a laptop, and with a typing mistake."""
    cases = [
        (["--epochs", "5"], {"SM_CHANNEL_TRAINING": "/data/a", "SM_MODEL_DIR": "/m"}, 5),
        (["--model_dir", "s3://b/k", "--epochs", "1"], {"SM_MODEL_DIR": "/opt/ml/model"}, 1),
        ([], {"SM_CHANNEL_TRAINING": "/opt/ml/input/data/training"}, 20),
        ([], {}, 20),
    ]
    for arguments, environment, epochs in cases:
        parsed = _called(answer, arguments, environment)
        expected = {
            "training": environment.get("SM_CHANNEL_TRAINING", "data/training"),
            "save_to": environment.get("SM_MODEL_DIR", "model"),
            "epochs": epochs,
        }
        for name, value in expected.items():
            _compare(parsed, name, value, f"With {arguments} and {json.dumps(environment)}")
    for mistyped in ("--epoch", "--epochss", "--learning_rat"):
        if not _ends(answer, [mistyped, "5"]):
            raise Wrong(
                f"It accepts {mistyped}, a typing mistake, and the job trains with the default. "
                "Use parse_args, and ArgumentParser(allow_abbrev=False)."
            )
    return "The same script runs on a laptop and on an instance, and typing mistakes end it."


def _ends(answer, arguments: list[str]) -> bool:
    """Whether the answer ends the script, as argparse does or with an error of its own."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            answer(arguments, {})
    except (SystemExit, Exception):
        return True
    return False


def _called(answer, arguments: list[str], environment: dict[str, str]):
    stderr = io.StringIO()
    try:
        with contextlib.redirect_stderr(stderr):
            return answer(list(arguments), dict(environment))
    except SystemExit:
        reason = stderr.getvalue().strip().splitlines()[-1:] or ["it ended"]
        raise Wrong(f"It ends the script with the arguments {arguments}: {reason[0]}") from None


def _compare(parsed, name: str, value, where: str) -> None:
    if not hasattr(parsed, name):
        raise Wrong(f"{where} the result {parsed!r} has no {name}. Return what parse_args returns.")
    got = getattr(parsed, name)
    if str(got) != str(value):
        raise Wrong(f"{where} {name} is {got!r}; it must be {value!r}.")
    if name == "epochs" and not isinstance(got, int):
        raise Wrong(
            f"{where} epochs is {got!r}, a string: arguments come as strings. Give type=int."
        )
