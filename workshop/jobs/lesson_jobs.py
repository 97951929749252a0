"""The training jobs of each lesson: the one list of them.

    for job in lesson_jobs("05"):
        print(job.name, job.instance_count, job.instance_type, job.max_run)

They are the jobs that one seat starts on AWS when every cell of a lesson runs once with
target="aws". Cost tables, the teaching guide, `workshop preflight` and `workshop request` read this
list. The lessons describe their jobs in their own cells, for people to read: a test compares the
requests that an executed lesson sends with this list (tests/notebooks/conftest.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from workshop.jobs.session import MAX_RUN_SECONDS
from workshop.paths import NOTEBOOKS

# What is planned for a job, in billed seconds. Nobody has measured it on AWS for this kit.
PLANNED_SECONDS = 300

TENSORFLOW = {"framework": "tensorflow", "framework_version": "2.12.0", "py_version": "py310"}
PYTORCH = {"framework": "pytorch", "framework_version": "2.2.0", "py_version": "py310"}
DIGITS = {"training": {"folder": "digits/training"}, "test": {"folder": "digits/test"}}
YIELD = "-x OMPI_MCA_mpi_yield_when_idle=1"  # workshop's Horovod lessons pass it to mpirun
KINDS = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    list: "a list",
}
PARAMETERS_CELL = re.compile(r'^# %% tags=\["parameters"\]\n(.*?)(?=^# %%|\Z)', re.M | re.S)


class UnknownLesson(ValueError):
    """No such lesson, parameter or kind of value; the message names what there is."""


@dataclass(frozen=True)
class LessonJob:
    """A job of a lesson.

    name: for people. label: what the lesson gives to session.job_settings, with `spot`.
    framework: "tensorflow" or "pytorch". arguments: the estimator's, by their names in the SDK;
    session.job_settings adds the rest. channels: name -> folder below data/ in the seat's bucket,
    and what TrainingInput takes. in_vpc: the estimator gets subnets and security_group_ids, too.
    """

    name: str
    label: str
    framework: str
    arguments: dict[str, Any]
    channels: dict[str, dict[str, str]]
    spot: bool = False
    in_vpc: bool = False

    @property
    def instance_type(self) -> str:
        """Of every instance, such as "ml.c5.xlarge"."""
        return self.arguments["instance_type"]

    @property
    def instance_count(self) -> int:
        """How many instances."""
        return self.arguments["instance_count"]

    @property
    def max_run(self) -> int:
        """Seconds after which SageMaker ends it."""
        return self.arguments.get("max_run", MAX_RUN_SECONDS)


def lesson_jobs(lesson: str, given: Mapping[str, Any] | None = None) -> list[LessonJob]:
    """The jobs of a lesson in the order in which it starts them; empty if it starts none.

    lesson: its number, "5" or "05". given: parameters that override the lesson's own.
    Raises UnknownLesson for a lesson or a parameter that is not there, and a value of another type.
    """
    lesson = lesson.zfill(2)
    parameters = lesson_parameters(lesson)
    if unknown := sorted(set(given or {}) - set(parameters)):
        raise UnknownLesson(
            f"Lesson {lesson} has no parameter {', '.join(unknown)}. It has: "
            f"{', '.join(sorted(parameters))}."
        )
    for name, value in (given or {}).items():
        own = parameters[name]
        if type(value) is not type(own) and (type(value), type(own)) != (int, float):
            expected = f"{KINDS[type(own)]}, such as {own!r}"
            raise UnknownLesson(f"Lesson {lesson}: {name} is {value!r}; expected {expected}.")
    parameters |= given or {}
    return list(JOBS[lesson](SimpleNamespace(**parameters))) if lesson in JOBS else []


def lesson_parameters(lesson: str) -> dict[str, Any]:
    """The parameters of a lesson and their values, as its parameters cell has them."""
    source = next(NOTEBOOKS.glob(f"{Path(lesson).name}_*.py"), None)
    if source is None:
        known = sorted(path.name[:2] for path in NOTEBOOKS.glob("[0-9][0-9]_*.py"))
        raise UnknownLesson(f"No lesson {lesson}. There are: {', '.join(known)}.")
    cell = PARAMETERS_CELL.search(source.read_text(encoding="utf-8"))
    return {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(cell[1] if cell else "").body
        if isinstance(statement, ast.Assign)
    }


def _job(name: str, label: str, **arguments) -> LessonJob:
    own = {key: arguments.pop(key) for key in ("spot", "in_vpc") if key in arguments}
    framework, channels = arguments.pop("framework"), arguments.pop("channels", {})
    return LessonJob(name, label, framework, arguments, channels, **own)


def _mpi(processes: int, **options) -> dict:
    return {"mpi": {"enabled": True, "processes_per_host": processes} | options}


def _lesson_00(lesson) -> Iterator[LessonJob]:
    yield _job(
        "first",
        "first",
        entry_point="train_tf.py",
        instance_type="ml.c5.xlarge",
        instance_count=1,
        hyperparameters={"epochs": lesson.epochs},
        channels=DIGITS,
        **TENSORFLOW,
    )


def _lesson_01(lesson) -> Iterator[LessonJob]:
    yield _job(
        "channels",
        "channels",
        entry_point="look_at_channels.py",
        instance_type="ml.c5.xlarge",
        instance_count=2,
        channels={
            "training": DIGITS["training"] | {"distribution": "ShardedByS3Key"},
            "test": DIGITS["test"] | {"distribution": "FullyReplicated"},
        },
        **PYTORCH,
    )


def _lesson_03(lesson) -> Iterator[LessonJob]:
    common = TENSORFLOW | {
        "framework_version": "2.14.1",
        "instance_type": "ml.c5.xlarge",
        "distribution": {"parameter_server": {"enabled": True}},
        "hyperparameters": {
            "epochs": lesson.epochs,
            "global-batch-size": lesson.global_batch_size,
            "shard-by": "class",
            "log-every": 0,
        },
        "channels": DIGITS,
    }
    count = lesson.instance_count
    yield _job("servers", "servers", entry_point="train_tf_ps.py", instance_count=count, **common)
    yield _job("broken", "broken", entry_point="train_tf_ps_broken.py", instance_count=2, **common)


def _lesson_04(lesson) -> Iterator[LessonJob]:
    yield _job(
        "places",
        "places",
        entry_point="show_places.py",
        instance_type="ml.c5.xlarge",
        instance_count=lesson.instance_count,
        distribution=_mpi(lesson.processes_per_host),
        **TENSORFLOW,
    )


def _lesson_05(lesson) -> Iterator[LessonJob]:
    common = TENSORFLOW | {
        "instance_type": lesson.instance_type,
        "max_run": lesson.max_run,
        "hyperparameters": {
            "epochs": lesson.epochs,
            "global-batch-size": lesson.global_batch_size,
            "learning-rate": lesson.learning_rate,
            "threads-per-rank": 1,
        },
        "channels": DIGITS,
    }

    def horovod(name: str, instances: int, processes: int, **more) -> LessonJob:
        return _job(
            name,
            "horovod",
            entry_point="train_tf_horovod.py",
            instance_count=instances,
            distribution=_mpi(processes, custom_mpi_options=YIELD),
            **common,
            **more,
        )

    n, m = lesson.instance_count, lesson.processes_per_host
    yield horovod("horovod", n, m)
    yield horovod("1 x 1", 1, 1)
    yield horovod(f"1 x {m}", 1, m)
    yield horovod(f"{n} x 1", n, 1)
    yield horovod(f"{n} x {m} in a VPC", n, m, in_vpc=True)
    yield _job(
        f"{n} x 1 MultiWorker",
        "horovod",
        entry_point="train_tf_multiworker.py",
        instance_count=n,
        distribution={"multi_worker_mirrored_strategy": {"enabled": True}},
        **common,
    )


def _lesson_06(lesson) -> Iterator[LessonJob]:
    """On AWS links stay as they are; and the largest layout is left out (see the lesson)."""
    training = {
        "max_run": lesson.max_run,
        "instance_type": lesson.instance_type,
        "distribution": _mpi(1, custom_mpi_options=YIELD),
        "environment": {"LOCAL_SAGEMAKER_LINKS": "wide"},
        "hyperparameters": {
            "global-batch-size": lesson.global_batch_size,
            "hidden-units": lesson.hidden_units,
            "epochs": lesson.epochs,
            "threads-per-rank": 1,
            "log-every": 0,
        },
        "channels": DIGITS,
    }
    ddp = PYTORCH | {"entry_point": "train_torch_ddp.py"} | training
    horovod = TENSORFLOW | {"entry_point": "train_tf_horovod.py"} | training
    yield _job("DDP, one", "links", instance_count=1, **ddp)
    yield _job("Horovod, one", "links", instance_count=1, **horovod)
    yield _job("DDP, two, wide", "links", instance_count=2, **ddp)
    yield _job("Horovod, two, wide", "links", instance_count=2, **horovod)
    for instances in lesson.layout_instances:
        processes = lesson.layout_ranks // instances
        if instances <= 4:
            yield _job(
                f"{instances} x {processes}",
                "links",
                entry_point="measure_all_reduce.py",
                instance_type=lesson.layout_instance_type,
                instance_count=instances,
                max_run=lesson.max_run,
                distribution=_mpi(processes),
                environment={"LOCAL_SAGEMAKER_LINKS": lesson.layout_link},
                hyperparameters={
                    "algorithms": "gloo,two_tier",
                    "bytes": lesson.layout_megabytes * 1_000_000,
                },
                **PYTORCH,
            )


def _lesson_07(lesson) -> Iterator[LessonJob]:
    """Without the jobs under SMDDP's name, which need p4d on AWS and are not started there."""
    common = {
        "instance_type": lesson.instance_type,
        "instance_count": 2,
        "max_run": lesson.max_run,
    }
    yield _job(
        "all-reduces",
        "two-tier",
        entry_point="measure_all_reduce.py",
        distribution=_mpi(lesson.ranks_each),
        environment={"LOCAL_SAGEMAKER_LINKS": lesson.between},
        hyperparameters={
            "algorithms": "gloo,ring,blind_ring,two_tier,herring",
            "bytes": lesson.megabytes * 1_000_000,
            "blocks": lesson.blocks,
        },
        **PYTORCH,
        **common,
    )
    ways = {name: (name, 25) for name in ("default", "two_tier", "fp16", "powersgd")}
    ways["default, small buckets"] = ("default", 0.1)
    for name, (all_reduce, bucket_megabytes) in ways.items():
        yield _job(
            name,
            "two-tier",
            entry_point="train_torch_links.py",
            distribution=_mpi(2),
            environment={"LOCAL_SAGEMAKER_LINKS": lesson.training_between},
            hyperparameters={
                "hidden-units": lesson.hidden_units,
                "global-batch-size": lesson.global_batch_size,
                "epochs": lesson.epochs,
                "threads-per-rank": 1,
                "all-reduce": all_reduce,
                "bucket-megabytes": bucket_megabytes,
            },
            channels=DIGITS,
            **PYTORCH,
            **common,
        )
    records = {"input_mode": "FastFile"}
    yield _job(
        "horovod",
        "two-tier",
        entry_point="train_tf_fit.py",
        distribution=_mpi(1),
        hyperparameters={
            "library": "horovod",
            "learning-rate": 0.1,
            "epochs": lesson.epochs,
            "warmup-steps": 20,
        },
        channels={
            name: {"folder": f"digits-tfrecord/{name}"} | records for name in ("training", "test")
        },
        **TENSORFLOW | {"framework_version": "2.11.0", "py_version": "py39"},
        **common,
    )


def _lesson_08(lesson) -> Iterator[LessonJob]:
    common = {
        "instance_type": lesson.instance_type,
        "instance_count": 1,
        "max_run": lesson.max_run,
        "channels": DIGITS,
    }
    yield _job(
        "serving",
        "serving",
        entry_point="train_tf.py",
        hyperparameters={"epochs": lesson.epochs},
        **TENSORFLOW,
        **common,
    )
    checkpoints = PYTORCH | {
        "entry_point": "train_torch.py",
        "hyperparameters": {
            "epochs": lesson.spot_epochs,
            "checkpoint-every": 100,
            "threads-per-rank": 1,
        },
    }
    yield _job("left alone", "alone", environment={}, **checkpoints, **common)
    interrupt = {"LOCAL_SAGEMAKER_INTERRUPT": f"after {lesson.interrupt_after}s"}
    yield _job("interrupted", "spot", spot=True, environment=interrupt, **checkpoints, **common)


def _lesson_99(lesson) -> Iterator[LessonJob]:
    yield _job(
        "last",
        "last",
        entry_point="train_torch.py",
        instance_type="ml.c5.xlarge",
        instance_count=1,
        max_run=lesson.max_run,
        hyperparameters={"epochs": 1},
        channels=DIGITS,
        **PYTORCH,
    )


JOBS = {  # lesson -> its jobs, from its parameters; lesson 02 runs beside the notebook
    "00": _lesson_00,
    "01": _lesson_01,
    "03": _lesson_03,
    "04": _lesson_04,
    "05": _lesson_05,
    "06": _lesson_06,
    "07": _lesson_07,
    "08": _lesson_08,
    "99": _lesson_99,
}
