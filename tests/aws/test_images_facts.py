"""What preflight and the lessons say of AWS's images, against the images' own Dockerfiles."""

import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

from workshop.account.preflight.facts import facts
from workshop.account.preflight.job import JobConfiguration
from workshop.jobs.lesson_jobs import JOBS, lesson_jobs

RECORDED = tomllib.loads(Path(__file__).with_name("images.toml").read_text())
IMAGES = RECORDED["image"]
FACTS = facts()


def job(image):
    """A job in an image, as preflight sees it. Its Python is the one that the SDK's list has."""
    python = "py" + "".join(image["python"].split(".")[:2])
    return JobConfiguration(
        framework=image["framework"],
        framework_version=image["framework_version"],
        py_version=python,
        instance_type="ml.p4d.24xlarge" if image["file"].endswith("gpu") else "ml.c5.xlarge",
    )


@pytest.mark.parametrize("image", IMAGES, ids=lambda one: one["file"])
def test_preflight_knows_the_images_python(image):
    found = job(image)
    assert found.py_version in found.pythons
    assert found.python == Version(".".join(image["python"].split(".")[:2]))


def last_with(what, framework):
    """The newest recorded version that has it."""
    having = [one for one in IMAGES if one[what] and one["framework"] == framework]
    return max((Version(one["framework_version"]) for one in having), default=None)


def same(known, recorded):
    """2.11.0 and the 2.11 of a file that names no patch are the same."""
    return known.release[:2] == recorded.release[:2]


@pytest.mark.parametrize("framework", ["tensorflow", "pytorch"])
def test_the_last_image_with_horovod(framework):
    assert same(Version(FACTS["horovod"][framework]), last_with("horovod", framework))


def test_the_last_images_with_smddp():
    assert same(Version(FACTS["smddp"]["last_tensorflow"]), last_with("smddp", "tensorflow"))
    assert same(Version(FACTS["smddp"]["last_pytorch_image"]), last_with("smddp", "pytorch"))


def test_an_image_after_the_last_is_recorded_too():
    """Or "the last with it" would only say how far somebody looked."""
    for what, framework in (
        ("horovod", "tensorflow"),
        ("horovod", "pytorch"),
        ("smddp", "pytorch"),
    ):
        newest = max(
            Version(one["framework_version"]) for one in IMAGES if one["framework"] == framework
        )
        assert newest > last_with(what, framework)


def test_every_image_that_a_lesson_takes_is_recorded():
    recorded = {(one["framework"], one["framework_version"]) for one in IMAGES}
    named = {
        (one.framework, one.arguments["framework_version"])
        for lesson in JOBS
        for one in lesson_jobs(lesson)
        if "framework_version" in one.arguments
    }
    assert named and named <= recorded


def test_horovod_for_pytorch_is_in_the_gpu_image_alone():
    """Preflight says so of 1.13.1 on CPUs ("Horovod on CPUs")."""
    found = {
        one["file"][-3:]: one["horovod"] for one in IMAGES if one["framework_version"] == "1.13.1"
    }
    assert found == {"cpu": "", "gpu": "0.26.1"}
