"""The training jobs of each lesson: the one list of them.

    for job in lesson_jobs("05"):
        print(job.name, job.instance_count, job.instance_type, job.max_run)

They are the jobs that one seat starts on AWS when every cell of a lesson runs once with
target="aws". Cost tables, the teaching guide, `workshop preflight` and `workshop request` read this
list. The lessons describe their jobs in their own cells, for people to read: a test compares the
requests that an executed lesson sends with this list (tests/lessons/test_jobs_as_declared.py).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from workshop.jobs.session import MAX_RUN_SECONDS
from workshop.paths import DEMOS, NOTEBOOKS, TRAIN

# What is planned for a job, in billed seconds. Nobody has measured it on AWS for this kit.
PLANNED_SECONDS = 300

TENSORFLOW = {"framework": "tensorflow", "framework_version": "2.12.0", "py_version": "py310"}
PYTORCH = {"framework": "pytorch", "framework_version": "2.2.0", "py_version": "py310"}
DIGITS = {"training": {"folder": "digits/training"}, "test": {"folder": "digits/test"}}
# What the Horovod lessons give to mpirun: a rank that waits gives its core to others.
YIELD = "-x OMPI_MCA_mpi_yield_when_idle=1"
UNASKED = "-x OMPI_MCA_btl_tcp_eager_limit=4000000"  # large messages go without asking first
KINDS = {str: "a text", bool: "true or false", list: "a list", dict: "a mapping"}
OWN = ("label", "framework", "channels", "spot", "in_vpc", "names_image")  # fields of a LessonJob
PARAMETERS_CELL = re.compile(r'^# %% tags=\["parameters"\]\n(.*?)(?=^# %%|\Z)', re.M | re.S)


class UnknownLesson(ValueError):
    """No such lesson, parameter or kind of value; the message names what there is."""


@dataclass(frozen=True)
class LessonJob:
    """A job of a lesson.

    name: for display. label: what the lesson gives to session.job_settings, with `spot`.
    framework: "tensorflow" or "pytorch". arguments: the estimator's, by their names in the SDK;
    session.job_settings adds the rest. channels: name -> folder below data/ in the seat's bucket,
    and what TrainingInput takes. in_vpc: the estimator gets subnets and security_group_ids, too.
    names_image: it gets the image_uri of its framework_version in place of the version.
    """

    name: str
    label: str
    framework: str
    arguments: dict[str, Any]
    channels: dict[str, dict[str, str]]
    spot: bool = False
    in_vpc: bool = False
    names_image: bool = False

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

    Each has the lesson's own max_run, if it has that parameter.

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
        if expected := wanted(value, parameters[name]):
            raise UnknownLesson(f"Lesson {lesson}: {name} is {value!r}; expected {expected}.")
    parameters |= given or {}
    jobs = list(JOBS[lesson](SimpleNamespace(**parameters))) if lesson in JOBS else []
    if "max_run" in parameters:
        for job in jobs:
            job.arguments["max_run"] = parameters["max_run"]
    return jobs


def wanted(value: object, own: object) -> str | None:
    """What a parameter must be, with the lesson's `own` value as example; None if it is that."""
    if isinstance(own, int | float) and not isinstance(own, bool):
        kinds = (int,) if isinstance(own, int) else (int, float)
        fits = type(value) in kinds and 0 <= value < math.inf
        kind = "a whole number" if isinstance(own, int) else "a number"
        return None if fits else f"{kind} that is not below 0, such as {own}"
    if own is None or type(value) is type(own):
        return None
    return f"{KINDS.get(type(own), type(own).__name__)}, such as {own!r}"


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


def _job(name: str, script: str, instances: str, **more) -> LessonJob:
    """A job. instances: such as "2 x ml.c5.xlarge". more: LessonJob's fields, or arguments.

    script: of scripts/train; "demos/NAME.py" for one of scripts/demos.
    """
    folder, _, script = script.rpartition("/")
    count, _, instance_type = instances.partition(" x ")
    fields = {"label": name, "channels": {}} | more
    own = {key: fields.pop(key) for key in OWN if key in fields}
    fields |= {"source_dir": str(DEMOS)} if folder else {}
    fields |= {
        "entry_point": script,
        "instance_type": instance_type,
        "instance_count": int(count),
    }
    return LessonJob(name, arguments=fields, **own)


def _mpi(processes: int, **options) -> dict:
    return {"mpi": {"enabled": True, "processes_per_host": processes} | options}


def _lesson_00(lesson) -> Iterator[LessonJob]:
    settings = {"hyperparameters": {"epochs": lesson.epochs}, "channels": DIGITS}
    yield _job("first", "train_tf.py", "1 x ml.c5.xlarge", **settings, **TENSORFLOW)


def _lesson_01(lesson) -> Iterator[LessonJob]:
    yield _job(
        "ddp",
        "train_torch_ddp.py",
        "2 x ml.c5.xlarge",
        distribution={"torch_distributed": {"enabled": True}},
        hyperparameters={"epochs": 3, "threads-per-rank": 1},
        channels=DIGITS,
        names_image=True,
        **PYTORCH,
    )


def _lesson_03(lesson) -> Iterator[LessonJob]:
    common = TENSORFLOW | {
        "framework_version": "2.14.1",
        "distribution": {"parameter_server": {"enabled": True}},
        "hyperparameters": {
            "epochs": lesson.epochs,
            "global-batch-size": lesson.global_batch_size,
            "shard-by": "class",
            "log-every": 0,
        },
        "channels": DIGITS,
    }
    yield _job("servers", "train_tf_ps.py", f"{lesson.instance_count} x ml.c5.xlarge", **common)
    yield _job("broken", "demos/train_tf_ps_broken.py", "2 x ml.c5.xlarge", **common)


def _lesson_04(lesson) -> Iterator[LessonJob]:
    instances, mpi = f"{lesson.instance_count} x ml.c5.xlarge", _mpi(lesson.processes_per_host)
    yield _job("places", "demos/show_places.py", instances, distribution=mpi, **TENSORFLOW)


def _lesson_05(lesson) -> Iterator[LessonJob]:
    common = TENSORFLOW | {
        "label": "horovod",
        "hyperparameters": {
            "epochs": lesson.epochs,
            "global-batch-size": lesson.global_batch_size,
            "learning-rate": lesson.learning_rate,
            "threads-per-rank": 1,
        },
        "channels": DIGITS,
    }

    def horovod(name: str, count: int, processes: int, **more) -> LessonJob:
        instances = f"{count} x {lesson.instance_type}"
        mpi = _mpi(processes, custom_mpi_options=YIELD)
        return _job(name, "train_tf_horovod.py", instances, distribution=mpi, **common, **more)

    n, m = lesson.instance_count, lesson.processes_per_host
    own_way = {"distribution": {"multi_worker_mirrored_strategy": {"enabled": True}}}
    instances = f"{n} x {lesson.instance_type}"
    yield horovod("horovod", n, m)
    for number in range(1, lesson.repeats + 1):
        run = "" if number == 1 else f", run {number}"
        yield horovod(f"1 x 1{run}", 1, 1)
        yield horovod(f"1 x {m}{run}", 1, m)
        yield horovod(f"{n} x 1{run}", n, 1)
        if number > 1:
            yield horovod(f"{n} x {m}{run}", n, m)
        yield horovod(f"{n} x 1 in a VPC{run}", n, 1, in_vpc=True)
        name = f"{n} x 1 MultiWorker{run}"
        yield _job(name, "train_tf_mirrored.py", instances, **own_way, **common)


def _lesson_06(lesson) -> Iterator[LessonJob]:
    """On AWS links stay as they are."""
    common = {"label": "links", "in_vpc": True}
    training = common | {
        "distribution": _mpi(1, custom_mpi_options=f"{YIELD} {UNASKED}"),
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
    for name, count in {"one": 1, "two, wide": 2}.items():
        instances = f"{count} x {lesson.instance_type}"
        yield _job(f"DDP, {name}", "train_torch_ddp.py", instances, **training, **PYTORCH)
        yield _job(f"Horovod, {name}", "train_tf_horovod.py", instances, **training, **TENSORFLOW)
    for count in lesson.layout_instances:
        processes = lesson.layout_ranks // count
        yield _job(
            f"{count} x {processes}",
            "demos/measure_all_reduce.py",
            f"{count} x {lesson.layout_instance_type}",
            distribution=_mpi(processes),
            environment={"LOCAL_SAGEMAKER_LINKS": lesson.layout_link},
            hyperparameters={
                "algorithms": "gloo,two_tier",
                "bytes": lesson.layout_megabytes * 1_000_000,
                "blocks": 3,
            },
            **common,
            **PYTORCH,
        )


def _lesson_07(lesson) -> Iterator[LessonJob]:
    """Without the jobs under SMDDP's name, which need p4d on AWS and are not started there."""
    instances = f"2 x {lesson.instance_type}"
    common = {"label": "two-tier"}
    yield _job(
        "all-reduces",
        "demos/measure_all_reduce.py",
        instances,
        distribution=_mpi(lesson.ranks_each),
        environment={"LOCAL_SAGEMAKER_LINKS": lesson.between},
        hyperparameters={
            "algorithms": "gloo,ring,blind_ring,two_tier,herring",
            "bytes": lesson.megabytes * 1_000_000,
            "blocks": lesson.blocks,
        },
        **common,
        **PYTORCH,
    )
    training = common | {
        "distribution": _mpi(2),
        "environment": {"LOCAL_SAGEMAKER_LINKS": lesson.training_between},
        "channels": DIGITS,
    }
    shared = {
        "hidden-units": lesson.hidden_units,
        "global-batch-size": lesson.global_batch_size,
        "epochs": lesson.epochs,
        "threads-per-rank": 1,
    }
    yield _job(
        "buckets",
        "demos/show_overlap.py",
        instances,
        dependencies=[str(TRAIN / "train_torch_fsdp.py")],
        distribution=_mpi(1),
        environment={"LOCAL_SAGEMAKER_LINKS": lesson.overlap_between},
        hyperparameters={"blocks": lesson.blocks},
        **common,
        **PYTORCH,
    )
    for name in ("default", "two_tier", "fp16", "powersgd"):
        how = shared | {"all-reduce": name}
        script = "demos/train_torch_links.py"
        yield _job(name, script, instances, hyperparameters=how, **training, **PYTORCH)
    yield _job(
        "horovod",
        "train_tf_fit.py",
        instances,
        distribution=_mpi(1),
        hyperparameters={
            "library": "horovod",
            "learning-rate": 0.1,
            "epochs": lesson.epochs,
            "warmup-steps": 20,
        },
        channels=DIGITS,
        **common,
        **TENSORFLOW,
    )


def _lesson_08(lesson) -> Iterator[LessonJob]:
    settings = {"hyperparameters": {"epochs": lesson.epochs}}
    instances = f"1 x {lesson.instance_type}"
    yield _job("serving", "train_tf.py", instances, channels=DIGITS, **settings, **TENSORFLOW)


def _lesson_09(lesson) -> Iterator[LessonJob]:
    instances = f"2 x {lesson.instance_type}"
    channels = {
        "training": DIGITS["training"] | {"distribution": "ShardedByS3Key"},
        "test": DIGITS["test"] | {"distribution": "FullyReplicated"},
    }
    script = "demos/look_at_channels.py"
    yield _job("channels", script, instances, channels=channels, **PYTORCH)
    pictures = "cifar10" if lesson.cifar10 else "cifar10-sample"
    folders = {"training": f"{pictures}/train", "test": f"{pictures}/test"}
    yield _job(
        "pictures",
        "train_tf_fit.py",
        instances,
        distribution=_mpi(1),
        hyperparameters={
            "library": "horovod",
            "epochs": lesson.epochs,
            "learning-rate": lesson.learning_rate,
            "warmup-steps": 20,
            "threads-per-rank": 1,
        },
        channels={
            name: {"folder": folder, "input_mode": "FastFile"} for name, folder in folders.items()
        },
        **TENSORFLOW,
    )


def _lesson_10(lesson) -> Iterator[LessonJob]:
    instances = f"1 x {lesson.instance_type}"
    common = PYTORCH | {"channels": DIGITS}
    common["hyperparameters"] = {
        "epochs": lesson.epochs,
        "checkpoint-every": lesson.checkpoint_every,
        "threads-per-rank": 1,
    }
    yield _job("undisturbed", "train_torch.py", instances, label="alone", **common)
    yield _job("interrupted", "train_torch.py", instances, label="spot", spot=True, **common)


def _lesson_99(lesson) -> Iterator[LessonJob]:
    settings = {"hyperparameters": {"epochs": 1}, "channels": DIGITS}
    yield _job("last", "train_torch.py", "1 x ml.c5.xlarge", **settings, **PYTORCH)


JOBS = {  # lesson -> its jobs, from its parameters; lesson 02 runs beside the notebook
    "00": _lesson_00,
    "01": _lesson_01,
    "03": _lesson_03,
    "04": _lesson_04,
    "05": _lesson_05,
    "06": _lesson_06,
    "07": _lesson_07,
    "08": _lesson_08,
    "09": _lesson_09,
    "10": _lesson_10,
    "99": _lesson_99,
}
