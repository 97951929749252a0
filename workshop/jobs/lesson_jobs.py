"""The training jobs of each lesson: the one list of them.

    for job in lesson_jobs("05"):
        print(job.name, job.instance_count, job.instance_type, job.max_run)

They are the jobs that one seat starts on AWS when every cell of a lesson runs once with
target="aws". Cost tables, the teaching guide and `workshop preflight` read this list. The lessons
describe their jobs in their own cells, for people to read: a test compares the requests that an
executed lesson sends with this list (tests/notebooks/lessons/test_jobs_as_declared.py).
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from workshop.jobs.session import MAX_RUN_SECONDS
from workshop.launch.horovod import YIELD
from workshop.paths import NOTEBOOKS, TRAIN

# What is planned for a job, in billed seconds. Nobody has measured it on AWS for this kit.
PLANNED_SECONDS = 300

Settings = dict[str, Any]  # fields of a LessonJob
TENSORFLOW: Settings = {"framework": "tensorflow", "version": "2.12.0"}
PYTORCH: Settings = {"framework": "pytorch", "version": "2.2.0"}
UNASKED = "-x OMPI_MCA_btl_tcp_eager_limit=4000000"  # large messages go without asking first


def _channels(dataset: str) -> dict[str, dict[str, str]]:
    return {name: {"folder": f"{dataset}/{name}"} for name in ("training", "test")}


DIGITS = _channels("digits")


class UnknownLesson(ValueError):
    """There is no such lesson; the message names what there is."""


class WrongParameter(UnknownLesson):
    """No such parameter, or no such kind of value; the message names what is expected."""


@dataclass
class LessonJob:
    """A job of a lesson.

    name: for display. script: of scripts/train, or "demos/NAME.py". framework: "tensorflow" or
    "pytorch", of this version, for this py_version. max_run: seconds after which SageMaker ends it.
    label: what the lesson gives to session.job_settings, with `spot`; the name if empty. channels:
    name -> folder below data/ in the seat's bucket, and what TrainingInput takes. in_vpc: the
    estimator gets subnets and security_group_ids, too. names_image: it gets the image_uri of the
    version in place of the version. The others are the estimator's arguments of these names.
    """

    name: str
    script: str
    instance_count: int
    instance_type: str = "ml.c5.xlarge"
    framework: str = ""
    version: str = ""
    label: str = ""
    distribution: dict[str, Any] = field(default_factory=dict)
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    dependencies: list[str] = field(default_factory=list)
    channels: dict[str, dict[str, str]] = field(default_factory=dict)
    max_run: int = MAX_RUN_SECONDS
    spot: bool = False
    in_vpc: bool = False
    names_image: bool = False
    py_version: str = "py310"


def lesson_jobs(lesson: str, values: Mapping[str, Any] | None = None) -> list[LessonJob]:
    """The jobs of a lesson, in starting order; empty if it starts none.

    Each has the lesson's own max_run, if it has that parameter.

    lesson: its number, "5" or "05". values: of parameters, in place of the lesson's own.
    Raises UnknownLesson; WrongParameter as `check_parameters` does.
    """
    lesson, values = lesson.zfill(2), values or {}
    parameters = lesson_parameters(lesson)
    check_parameters(f"Lesson {lesson}", values, parameters)
    parameters |= values
    jobs = list(JOBS[lesson](SimpleNamespace(**parameters))) if lesson in JOBS else []
    for job in jobs:
        job.max_run = parameters.get("max_run", MAX_RUN_SECONDS)
    return jobs


def check_parameters(where: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Check names and values against those of a notebook's parameters cell.

    Raises WrongParameter for a name that it does not set, a value of another type than the cell's
    own, and a number that is below 0 or none. where: begins the message.
    """
    if unknown := sorted(set(values) - set(known)):
        raise WrongParameter(
            f"{where} has no parameter {', '.join(unknown)}. It has: "
            f"{', '.join(sorted(known)) or 'none'}."
        )
    for name, value in values.items():
        if expected := expected_kind(value, known[name]):
            raise WrongParameter(f"{where}: {name} is {value!r}; expected {expected}.")


def expected_kind(value: object, default: object) -> str | None:
    """What a parameter must be, with its default as an example; None if the value fits."""
    is_number = type(default) in (int, float)
    kinds = (int, float) if type(default) is float else (type(default),)
    fits = type(value) in kinds and (not is_number or 0 <= value < math.inf)  # type: ignore[operator]
    if fits or default is None:
        return None
    limit = " that is not below 0" if is_number else ""
    return f"{type(default).__name__}{limit}, such as {default!r}"


def lesson_parameters(lesson: str) -> dict[str, Any]:
    """The parameters of a lesson and their values. Raises UnknownLesson."""
    notebook = next(NOTEBOOKS.glob(f"{Path(lesson).name}_*.ipynb"), None)
    if notebook is None:
        known = sorted(path.name[:2] for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
        raise UnknownLesson(f"No lesson {lesson}. There are: {', '.join(known)}.")
    return parameters_of(notebook)


def parameters_of(notebook: Path) -> dict[str, Any]:
    """What a notebook's parameters cell sets; None where that is an expression."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    parameters: dict[str, Any] = {}
    for statement in ast.parse("".join(tagged[0]["source"]) if tagged else "").body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            parameters[name] = None
            with contextlib.suppress(ValueError):
                parameters[name] = ast.literal_eval(statement.value)
    return parameters


def _mpi(processes: int, **options) -> Settings:
    return {"distribution": {"mpi": {"enabled": True, "processes_per_host": processes} | options}}


def _links(rate: str) -> Settings:
    return {"environment": {"LOCAL_SAGEMAKER_BANDWIDTH": rate}}


def _lesson_00(lesson) -> Iterator[LessonJob]:
    settings: Settings = {"hyperparameters": {"epochs": lesson.epochs}, "channels": DIGITS}
    yield LessonJob("first", "train_tf.py", 1, **settings, **TENSORFLOW)


def _lesson_01(lesson) -> Iterator[LessonJob]:
    yield LessonJob(
        "ddp",
        "train_torch_ddp.py",
        2,
        distribution={"torch_distributed": {"enabled": True}},
        hyperparameters={"epochs": 3, "threads-per-rank": 1},
        channels=DIGITS,
        names_image=True,
        **PYTORCH,
    )


def _lesson_02(lesson) -> Iterator[LessonJob]:
    def numbers(values) -> str:
        return ",".join(map(str, values))

    yield LessonJob(
        "ring",
        "demos/measure_all_reduce.py",
        lesson.world_size,
        lesson.instance_type,
        hyperparameters={
            "algorithms": "naive,tree,ring,ring again,gloo",
            "bytes": numbers(lesson.tensor_bytes),
            "link-bytes": numbers(lesson.message_bytes),
            "card-bytes": 1_000_000,
            "blocks": lesson.rounds,
        },
        **_mpi(1),
        **_links(lesson.link),
        **PYTORCH,
    )


def _lesson_03(lesson) -> Iterator[LessonJob]:
    yield LessonJob(
        "server",
        "demos/measure_server.py",
        lesson.workers + 1,
        hyperparameters={
            "workers": ",".join(map(str, sorted({1, 2, lesson.workers}))),
            "bytes": lesson.server_bytes,
            "rounds": lesson.rounds,
            "steps": 1,
        },
        **_mpi(1),
        **_links(lesson.link),
        **PYTORCH,
    )
    common: Settings = {
        "framework": "tensorflow",
        "version": "2.14.1",
        "distribution": {"parameter_server": {"enabled": True}},
        "hyperparameters": {
            "epochs": lesson.epochs,
            "global-batch-size": lesson.global_batch_size,
            "shard-by": "class",
            "log-every": 0,
        },
        "channels": DIGITS,
    }
    yield LessonJob("servers", "train_tf_ps.py", lesson.instance_count, **common)
    yield LessonJob("broken", "demos/train_tf_ps_broken.py", 2, **common)


def _lesson_04(lesson) -> Iterator[LessonJob]:
    settings = TENSORFLOW | _mpi(lesson.processes_per_host)
    yield LessonJob("placement", "demos/show_placement.py", lesson.instance_count, **settings)


def _lesson_05(lesson) -> Iterator[LessonJob]:
    """The lesson starts the first five, which measure, in random order."""
    common = TENSORFLOW | {"instance_type": lesson.instance_type, "label": "horovod"}
    large = "digits-28" if lesson.dataset == "digits" else lesson.dataset
    measured: Settings = common | {
        "hyperparameters": {
            "global-batch-size": lesson.measured_batch,
            "steps": lesson.steps,
            "rounds": lesson.rounds,
            "library": "tensorflow",
        },
        "channels": _channels(large),
    }
    training: Settings = common | {
        "hyperparameters": {
            "epochs": lesson.epochs,
            "global-batch-size": lesson.global_batch_size,
            "learning-rate": lesson.learning_rate,
            "threads-per-rank": 1,
        },
        "channels": _channels(lesson.dataset),
    }

    def horovod(name: str, script: str, count: int, processes: int, **settings) -> LessonJob:
        settings |= _mpi(processes, custom_mpi_options=YIELD)
        return LessonJob(name, script, count, **settings)

    n, m = lesson.instance_count, lesson.processes_per_host
    script, demo = "train_tf_horovod.py", "demos/measure_scaling.py"
    yield horovod(f"measure 1 x {n}", demo, 1, n, **measured)
    yield horovod(f"measure {n} x 1", demo, n, 1, **measured)
    yield horovod(f"measure {n} x 1 again", demo, n, 1, **measured)
    yield horovod(f"measure {n} x {m}", demo, n, m, **measured)
    yield horovod(f"measure {n} x {m} in a VPC", demo, n, m, in_vpc=True, **measured)
    yield horovod(f"{n} x {m}", script, n, m, **training)
    multi_worker = {"multi_worker_mirrored_strategy": {"enabled": True}}
    name = f"{n} x 1 MultiWorker"
    yield LessonJob(name, "train_tf_mirrored.py", n, distribution=multi_worker, **training)


def _lesson_06(lesson) -> Iterator[LessonJob]:
    """On AWS links stay as they are."""
    common: Settings = {"label": "links", "in_vpc": True, **PYTORCH}
    for number in range(lesson.jobs_each):
        yield LessonJob(
            f"wide, job {number}",
            "demos/measure_scaling.py",
            2,
            lesson.instance_type,
            hyperparameters={
                "library": "torch",
                "global-batch-size": lesson.global_batch_size,
                "hidden-units": lesson.hidden_units,
                "steps": 2,
                "rounds": lesson.rounds,
            },
            channels=_channels("digits-28"),
            **common,
            **_mpi(1),
            **_links("wide"),
        )
    for count in lesson.layout_instances:
        processes = lesson.layout_ranks // count
        yield LessonJob(
            f"{count} x {processes}",
            "demos/measure_all_reduce.py",
            count,
            lesson.layout_instance_type,
            hyperparameters={
                "algorithms": "gloo,hierarchical" if count > 1 else "gloo",
                "bytes": lesson.layout_megabytes * 1_000_000,
                "blocks": 5,
            },
            **common,
            **_mpi(processes),
            **_links(lesson.layout_link),
        )


def _lesson_07(lesson) -> Iterator[LessonJob]:
    """Without the job under SMDDP's name, which needs p4d on AWS and is not started there."""
    common: Settings = {"instance_type": lesson.instance_type, "label": "hierarchical"}
    yield LessonJob(
        "all-reduces",
        "demos/measure_all_reduce.py",
        2,
        hyperparameters={
            "algorithms": "gloo,gloo again,ring,interleaved_ring,hierarchical,mini_herring",
            "bytes": f"{lesson.megabytes * 1_000_000},1000000",
            "smallest-only": "interleaved_ring",
            "blocks": lesson.blocks,
        },
        **common,
        **_mpi(lesson.ranks_each),
        **_links(lesson.between),
        **PYTORCH,
    )
    yield LessonJob(
        "buckets",
        "demos/show_overlap.py",
        2,
        dependencies=[str(TRAIN / "train_torch_fsdp.py")],
        hyperparameters={"blocks": lesson.blocks},
        **common,
        **_mpi(1),
        **_links(lesson.overlap_between),
        **PYTORCH,
    )
    yield LessonJob(
        "hooks",
        "demos/measure_steps.py",
        2,
        hyperparameters={
            "all-reduce": "default,default again,hierarchical,fp16,powersgd",
            "hidden-units": lesson.hidden_units,
            "blocks": lesson.blocks,
            "steps": 2,
        },
        **common,
        **_mpi(2),
        **_links(lesson.training_between),
        **PYTORCH,
    )


def _lesson_08(lesson) -> Iterator[LessonJob]:
    settings: Settings = {"hyperparameters": {"epochs": lesson.epochs}, "channels": DIGITS}
    yield LessonJob("serving", "train_tf.py", 1, lesson.instance_type, **settings, **TENSORFLOW)


def _lesson_09(lesson) -> Iterator[LessonJob]:
    channels = {
        "training": DIGITS["training"] | {"distribution": "ShardedByS3Key"},
        "test": DIGITS["test"] | {"distribution": "FullyReplicated"},
    }
    settings = PYTORCH | {"instance_type": lesson.instance_type, "channels": channels}
    yield LessonJob("channels", "demos/look_at_channels.py", 2, **settings)
    pictures = "cifar10" if lesson.cifar10 else "cifar10-sample"
    folders = {"training": f"{pictures}/train", "test": f"{pictures}/test"}
    yield LessonJob(
        "pictures",
        "train_tf_fit.py",
        2,
        lesson.instance_type,
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
        **_mpi(1),
        **TENSORFLOW,
    )


def _lesson_10(lesson) -> Iterator[LessonJob]:
    common = PYTORCH | {
        "instance_type": lesson.instance_type,
        "hyperparameters": {
            "epochs": lesson.epochs,
            "checkpoint-every": lesson.checkpoint_every,
            "log-every": 1,
            "threads-per-rank": 1,
        },
        "channels": DIGITS,
    }
    yield LessonJob("undisturbed", "train_torch.py", 1, label="alone", **common)
    yield LessonJob("interrupted", "train_torch.py", 1, label="spot", spot=True, **common)
    elastic: Settings = {
        "dependencies": [str(TRAIN / "train_torch_ddp.py")],
        "hyperparameters": {
            "ranks": ",".join(map(str, lesson.elastic_ranks)),
            "steps": lesson.elastic_steps,
        },
    }
    yield LessonJob("elastic", "demos/change_world_size.py", 1, **common | elastic)


def _lesson_11(lesson) -> Iterator[LessonJob]:
    settings = PYTORCH | {"version": "2.6.0", "py_version": "py312"}  # the first with fully_shard
    yield LessonJob(
        "sharding",
        "demos/measure_sharding.py",
        2,
        lesson.instance_type,
        hyperparameters={
            "ways": "ddp,zero1,zero2,zero3,hsdp",
            "width": lesson.width,
            "rounds": lesson.rounds,
        },
        **_mpi(lesson.processes_per_host),
        **_links(lesson.link),
        **settings,
    )


def _lesson_12(lesson) -> Iterator[LessonJob]:
    """On AWS links stay as they are: one job measures."""
    ways = "DDP,fp16,PowerSGD,top-k,accumulation,local SGD,DiLoCo"
    two: Settings = PYTORCH | {"instance_type": lesson.instance_type}
    yield LessonJob(
        "less-often",
        "demos/measure_less_often.py",
        2,
        hyperparameters={
            "train": f"{ways},top-k without memory,local SGD 64,DiLoCo 0.5,alone",
            "seeds": ",".join(map(str, lesson.seeds)),
            "steps": lesson.steps,
            "time": f"{ways},alone,DDP again,alone again",
            "rounds": lesson.rounds,
        },
        **_mpi(1),
        **_links("wide"),
        **two,
    )
    yield LessonJob(
        "local-sgd",
        "train_torch_local_sgd.py",
        2,
        hyperparameters={"epochs": 4, "sync-every": 8},
        channels=DIGITS,
        **_mpi(1),
        **two,
    )


def _lesson_99(lesson) -> Iterator[LessonJob]:
    settings: Settings = {"hyperparameters": {"epochs": 1}, "channels": DIGITS}
    yield LessonJob("last", "train_torch.py", 1, **settings, **PYTORCH)


JOBS = {  # lesson -> its jobs, from its parameters
    "00": _lesson_00,
    "01": _lesson_01,
    "02": _lesson_02,
    "03": _lesson_03,
    "04": _lesson_04,
    "05": _lesson_05,
    "06": _lesson_06,
    "07": _lesson_07,
    "08": _lesson_08,
    "09": _lesson_09,
    "10": _lesson_10,
    "11": _lesson_11,
    "12": _lesson_12,
    "99": _lesson_99,
}
