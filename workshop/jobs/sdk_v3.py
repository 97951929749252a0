"""The jobs of the lessons and of the reference, as version 3 of the SDK starts them.

    print(block("01", "ddp"))

The code is made from lesson_jobs.py and from WAYS here, and uses the names that
notebooks/sdk_v3/recipes.py defines. `python -m tools.sync` puts it where a lesson has the line
`<!-- SDK v3: NAME -->`; `make sdk-v3` executes it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import jinja2

from workshop.jobs.lesson_jobs import DIGITS, PYTORCH, TENSORFLOW, LessonJob, lesson_jobs
from workshop.jobs.session import MAX_RUN_SECONDS, WAIT_FACTOR
from workshop.paths import NOTEBOOKS, SDK_V3

MARK = re.compile(r"<!-- SDK v3: (.+?) -->")
LINE_LENGTH = 100
SUMMARY = "<details><summary>With version 3 of the SDK</summary>"
SET_UP = "The code for version 3 in all lessons uses what [recipes.py](sdk_v3/recipes.py) defines"

TORCH_2_8 = PYTORCH | {"version": "2.8.0", "py_version": "py312"}
TF_2_14 = TENSORFLOW | {"version": "2.14.1"}
GPUS: dict[str, Any] = {"instance_type": "ml.g5.12xlarge"}
TORCHRUN = {"distribution": {"torch_distributed": {"enabled": True}}}
MPIRUN = {"distribution": {"mpi": {"enabled": True, "processes_per_host": 1}}}
WORKERS = {"distribution": {"multi_worker_mirrored_strategy": {"enabled": True}}}
SERVERS = {"distribution": {"parameter_server": {"enabled": True}}}
LARGE = {"channels": 256, "blocks": 12, "learning-rate": 0.01}
WAYS = {  # notebooks/reference.py: way -> script, instances, what else differs
    "one_process": ("train_torch.py", 1, PYTORCH),
    "ddp": ("train_torch_ddp.py", 2, PYTORCH | TORCHRUN | {"names_image": True}),
    "fsdp": ("train_torch_fsdp.py", 2, TORCH_2_8 | TORCHRUN | GPUS),
    "local_sgd": ("train_torch_local_sgd.py", 2, PYTORCH | TORCHRUN | {"names_image": True}),
    "horovod": ("train_tf_horovod.py", 2, TENSORFLOW | MPIRUN),
    "multiworker": ("train_tf_mirrored.py", 2, TF_2_14 | WORKERS),
    "parameter_server": ("train_tf_ps.py", 3, TF_2_14 | SERVERS),
    "mirrored": ("train_tf_mirrored.py", 1, TF_2_14 | GPUS),
    "fit": ("train_tf_fit.py", 2, TENSORFLOW | MPIRUN),
}
# Hyperparameters beside the epochs.
OPTIONS: dict[str, dict[str, Any]] = {
    "fsdp": LARGE,
    "local_sgd": {"sync-every": 8},
    "fit": {"library": "horovod"},
}
COMMANDS = {  # what version 3 has no key for -> the command in its place, of notebooks/sdk_v3/
    "multi_worker_mirrored_strategy": "workers.sh",
    "parameter_server": "servers.sh",
}
NOTES = tomllib.loads((SDK_V3 / "notes.toml").read_text())
SERVING = ("deploy", "transform", "handlers")  # lesson 08: files of notebooks/sdk_v3/


def way(name: str) -> LessonJob:
    """A way to train of the reference."""
    script, count, settings = WAYS[name]
    return LessonJob(
        name,
        script,
        count,
        label=name.replace("_", "-"),
        hyperparameters={"epochs": 2} | OPTIONS.get(name, {}),
        channels=DIGITS,
        **settings,
    )


def jobs(lesson: str) -> dict[str, LessonJob]:
    """The jobs of a lesson, or of "reference", by their names."""
    if lesson == "reference":
        return {name: way(name) for name in WAYS}
    return {job.name: job for job in lesson_jobs(lesson)}


def shown() -> dict[str, str]:
    """All code that the notebooks show, unformatted: "LESSON NAME" -> code, in their order."""
    code_of = {}
    for source in sorted(NOTEBOOKS.glob("*.py")):
        lesson = source.stem[:2] if source.stem[0].isdecimal() else source.stem
        names = [name for mark in MARK.findall(source.read_text()) for name in mark.split("; ")]
        for name in names:
            if name in SERVING:
                code_of[f"{lesson} {name}"] = _text(f"{name}.py")
            elif name not in NOTES["instead"] and name != "recipes":
                code_of[f"{lesson} {name}"] = code(lesson, name)
    return code_of


def block(lesson: str, names: str) -> str:
    """What a notebook shows in the place of a mark; folded in a lesson.

    names: separated by "; ": of jobs of this lesson, of SERVING or of notes.toml; or "recipes", the
    file that all code needs.
    Raises KeyError for a job that the lesson does not have.
    """
    parts = [part for name in names.split("; ") for part in _parts(lesson, name)]
    text = "\n\n".join(dict.fromkeys(parts))  # a note that two jobs need stands once
    return text if lesson == "reference" else f"{SUMMARY}\n\n{text}\n\n</details>"


def _parts(lesson: str, name: str) -> Iterator[str]:
    """What is to say about a job, and its code."""
    if name == "recipes":
        yield f"{SET_UP}:"
        yield fenced(_text("recipes.py"))
    elif name in NOTES["instead"]:
        yield NOTES["instead"][name]
    elif name in SERVING:
        yield fenced(_text(f"{name}.py"))
    else:
        yield from ["Version 3:"] if lesson == "reference" else notes(jobs(lesson)[name])
        yield fenced(formatted(code(lesson, name)))


def notes(job: LessonJob) -> Iterator[str]:
    """What version 3 has no key for, or counts otherwise."""
    if job.distribution.keys() & COMMANDS.keys():
        yield NOTES["above"]["no_key"]
    if "mpi" in job.distribution and job.instance_count > 1:
        yield NOTES["above"]["all_ranks"]
    if job.dependencies:
        yield NOTES["above"]["one_folder"]


def code(lesson: str, name: str) -> str:
    """The code that starts a job with version 3, not yet formatted."""
    job = jobs(lesson)[name]
    folder, _, script = f"train/{job.script}".removeprefix("train/demos/").rpartition("/")
    source, environment = f"../scripts/{folder or 'demos'}", dict(job.environment)
    if job.dependencies:
        source, script = "../scripts", f"{folder or 'demos'}/{script}"
        environment["PYTHONPATH"] = "/opt/ml/input/data/code/train"
    flags = " ".join(f"--{name} {value}" for name, value in job.hyperparameters.items())
    command = "".join(_text(COMMANDS[key]) for key in COMMANDS.keys() & job.distribution.keys())
    return jinja2.Template(_text("job.py.j2")).render(
        lesson=lesson,
        job=job,
        source=source,
        script=script,
        environment=environment,
        command=command.strip().replace("SCRIPT", f"{script} {flags}"),
        max_wait=WAIT_FACTOR * MAX_RUN_SECONDS,
    )


def _text(name: str) -> str:
    return (SDK_V3 / name).read_text()


@cache
def formatted(text: str) -> str:
    """Code as ruff writes it."""
    ruff = [sys.executable, "-m", "ruff", "format", f"--line-length={LINE_LENGTH}", "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


def fenced(text: str) -> str:
    """Code in Markdown."""
    return f"```python\n{text.strip()}\n```"


def comparable(request: dict[str, Any]) -> dict[str, Any]:
    """A request without what is the learner's own or another in each run."""
    text = json.dumps(request)
    replaced = {
        "NAME": request["TrainingJobName"],
        "IMAGE": request["AlgorithmSpecification"]["TrainingImage"],
        "ROLE": request["RoleArn"],
        "BUCKET": request["OutputDataConfig"]["S3OutputPath"].split("/")[2],
    }
    for name, value in replaced.items():
        text = text.replace(value, name)
    return json.loads(re.sub(r'((?<="subnet-)|(?<="sg-)|(?<=/checkpoints/))[^"]+', "", text))
