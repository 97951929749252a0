"""What the lessons show of version 3: below every job, the same job, as `make sdk-v3` recorded it.

The code is executed here with version 2's own `sagemaker.modules`: only the imports differ.
"""

import datetime
import json
import re
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from course_text import cells, lessons, read
from sagemaker_core.main.utils import SageMakerClient, SingletonMeta

from workshop.account import preflight
from workshop.jobs import sdk_v3
from workshop.jobs.job_preview import PreviewSession, preview, preview_session
from workshop.paths import NOTEBOOKS, SCRIPTS, SDK_V3

RECORDED = json.loads((SDK_V3 / "requests.json").read_text())
STARTS = re.compile(
    r"\.fit\((channels|from_s3|session|wait|\{)|\brun_jobs\(|estimator\.deploy\(|= transformed\("
)
MODULES = {  # of version 3 -> of version 2
    "sagemaker.core import image_uris": "sagemaker import image_uris",
    "sagemaker.core.helper.session_helper": "sagemaker_core.helper.session_helper",
    "sagemaker.core.shapes": "sagemaker_core.shapes",
    "sagemaker.core.training.configs": "sagemaker.modules.configs",
    "sagemaker.train": "sagemaker.modules.train",
    "sagemaker.modules.train.distributed": "sagemaker.modules.distributed",
}
# Where the requests of the two versions differ, for whatever job: path -> why.
EVERYWHERE = {
    r"HyperParameters\.(sagemaker_\w+|model_dir)": "version 2's toolkit reads them",
    r"AlgorithmSpecification\.EnableSageMakerMetricsTimeSeries": "a default that version 2 writes",
    r"ProfilerConfig\.DisableProfiler": "a service that version 2 asks for by itself",
    r"AlgorithmSpecification\.Container\w+": "the command of version 3's drivers",
    r"InputDataConfig\.(code|sm_drivers)\..+": "the scripts and version 3's drivers",
    r"InputDataConfig\.\w+\.InputMode": "version 3 writes the default, File",
    r"OutputDataConfig\.CompressionType": "version 3 writes the default, GZIP",
    r"VpcConfig\..+|.+\.S3Uri|CheckpointConfig\..+": "the learner's own",
}
IN_COMMAND = r"HyperParameters\..+"  # where version 3 has no key, they are in the command
# Debugger takes no new customers since 2026-07-30, and version 2 adds it by itself.
DEBUGGER = {"DebugHookConfig", "DebugRuleConfigurations", "ProfilerRuleConfigurations"}


class SentError(Exception):
    """A request was about to be sent; the argument is it."""


class AnsweringSession(PreviewSession):
    """Answers what comes before a job; the job itself is not sent."""

    def _keep(self, model, params, **_):
        if model.name == "CreateTrainingJob":
            raise SentError(json.loads(params["body"]))
        outputs = [{"OutputKey": k, "OutputValue": v} for k, v in self.outputs.items()]
        buckets = [{"Name": self.bucket, "CreationDate": datetime.datetime.now()}]
        answer = {"Stacks": [{"Outputs": outputs}], "Buckets": buckets}
        return AWSResponse("preview", 200, {}, None), answer


def differences(v2: dict[str, Any], v3: dict[str, Any]) -> dict[str, str]:
    """The paths of two comparable requests that differ -> "only 2", "only 3", "another value"."""
    first, second = _values(v2), _values(v3)
    only_2 = dict.fromkeys(first.keys() - second.keys(), "only 2")
    only_3 = dict.fromkeys(second.keys() - first.keys(), "only 3")
    common = first.keys() & second.keys()
    return only_2 | only_3 | {p: "another value" for p in common if first[p] != second[p]}


def _values(value: Any, path: str = "") -> dict[str, Any]:
    """Each value of a request by its path, without the quotes that version 2 puts around some."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        key = next(key for key in ("ChannelName", "Key", "Name") if key in value[0])
        value = {each[key]: each for each in value}
    if not isinstance(value, dict):
        return {path: value.strip('"') if isinstance(value, str) else value}
    flat = {}
    for name, part in value.items():
        flat |= _values(part, f"{path}.{name}".lstrip("."))
    return flat


def test_below_every_cell_that_starts_a_job_stands_the_same_for_version_3():
    for path in lessons().values():
        parsed = cells(read(path))
        for cell, below in zip(parsed, [*parsed[1:], None], strict=True):
            if cell.kind == "code" and STARTS.search(cell.text):
                assert below and sdk_v3.MARK.search(below.text), f"{path.name}:{cell.line}"


def test_every_way_of_the_reference_is_shown():
    shown = {name for name in sdk_v3.shown() if name.startswith("reference ")}
    assert shown == {f"reference {name}" for name in sdk_v3.WAYS}


def declared_job(name: str):
    """The job of version 2 that code for version 3 stands below."""
    lesson, _, short = name.partition(" ")
    return sdk_v3.jobs(lesson)[short]


@pytest.fixture(scope="module")
def built():
    """name -> (trainer, request) of all code for a training job, with version 2's modules."""
    session = AnsweringSession("local")
    recipes = (SDK_V3 / "recipes.py").read_text()
    for theirs, ours in MODULES.items():
        recipes = recipes.replace(theirs, ours)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(NOTEBOOKS)  # where the code runs
        patch.setattr(boto3, "Session", lambda: session.boto_session)
        patch.delitem(SingletonMeta._instances, SageMakerClient, raising=False)
        names: dict = {}
        exec(recipes, names)
        made = {}
        for name, code in sdk_v3.shown().items():
            if "ModelTrainer(" in code:
                try:
                    exec(code.replace(".train(", ".train.__wrapped__(trainer, "), names)
                except SentError as sent:
                    made[name] = names["trainer"], sdk_v3.comparable(sent.args[0])
        patch.delitem(SingletonMeta._instances, SageMakerClient, raising=False)
    return made


def test_version_2s_own_modules_make_the_recorded_requests(built):
    """Who adds a job or changes the code runs `make sdk-v3 ONLY=...`, which records it again.

    Not for another number: the values of hyperparameters are not compared.
    """
    assert list(built) == list(RECORDED["requests"])
    for name, (_, request) in built.items():
        differing = differences(request, RECORDED["requests"][name])
        numbers = {path for path in differing if path.startswith("HyperParameters.")}
        assert {differing.pop(path) for path in numbers} <= {"another value"}, name
        assert differing == {}, name


def test_the_recording_is_of_the_environments_version():
    pinned = (SDK_V3 / "requirements.txt").read_text()
    assert f"sagemaker=={RECORDED['sagemaker']}\n" in pinned
    assert f"sagemaker\n{RECORDED['sagemaker']} " in (SDK_V3 / "results.md").read_text()


def test_the_two_versions_send_the_same_but_for_what_is_listed(built, clean_aws):
    unused = set(EVERYWHERE)
    declared = [declared_job(name) for name in built]
    previewed = preview(declared, preview_session("local"))
    for (name, (_, request)), job, sent in zip(built.items(), declared, previewed, strict=True):
        allowed = set(EVERYWHERE)
        if job.distribution.keys() & sdk_v3.COMMANDS.keys():
            allowed.add(IN_COMMAND)
        if job.dependencies:
            allowed.add(r"Environment\.PYTHONPATH")
        if name.startswith("reference "):  # its cells for version 3 have no metrics
            allowed.add(r"MetricDefinitions.*|AlgorithmSpecification\.MetricDefinitions.*")
        for path in differences(sdk_v3.comparable(sent.request), request):
            matching = [pattern for pattern in allowed if re.fullmatch(pattern, path)]
            assert matching, f"{name}: {path}"
            unused -= set(matching)
        assert not (DEBUGGER | {"ProfilerConfig"}) & set(request), name
    assert not unused, f"no difference any more: {unused}"


def test_preflight_takes_a_trainer_as_it_takes_an_estimator(built, monkeypatch):
    monkeypatch.chdir(NOTEBOOKS)  # where the code runs
    for name, (trainer, _) in built.items():
        job = preflight.JobConfiguration.from_estimator(trainer)
        checks = preflight.check(job)
        assert preflight.all_ok(checks), (name, [each for each in checks if each.ok is False])
        declared = declared_job(name)
        assert (job.framework, job.framework_version) == (declared.framework, declared.version)
        assert job.processes == declared.distribution.get("mpi", {}).get("processes_per_host", 0)
        folder = SCRIPTS if "/" in declared.script else SCRIPTS / "train"
        assert not job.script or job.script == (folder / declared.script).read_text()


def test_preflight_objects_to_a_trainer_as_to_an_estimator(built):
    trainer, _ = built["10 interrupted"]
    trainer = trainer.model_copy(update={"checkpoint_config": None})
    checks = preflight.check(preflight.JobConfiguration.from_estimator(trainer))
    assert [each.topic for each in checks if each.ok is False] == ["limits"]
    trainer = trainer.model_copy(update={"training_image": "my-image"})
    with pytest.raises(preflight.BadConfiguration, match="AWS's images"):
        preflight.JobConfiguration.from_estimator(trainer)
