"""What preflight and the lessons say of AWS's images, against the images' own Dockerfiles."""

import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

from workshop.account.preflight import JobConfiguration, all_ok, check
from workshop.account.preflight.facts import facts
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


@pytest.mark.parametrize("image", IMAGES, ids=lambda row: row["file"])
def test_preflight_knows_the_images(image):
    assert all_ok(check(job(image)))


@pytest.mark.parametrize(
    ("library", "framework", "known"),
    [
        ("horovod", "tensorflow", FACTS["horovod"]["tensorflow"]),
        ("horovod", "pytorch", FACTS["horovod"]["pytorch"]),
        ("smddp", "pytorch", FACTS["smddp"]["last"]["pytorch"]),
        ("smddp", "tensorflow", FACTS["smddp"]["last"]["tensorflow"]),
    ],
)
def test_the_last_image_with_it_is_known_and_a_later_one_is_recorded(library, framework, known):
    """Without a later one, "the last with it" would only say how far somebody looked."""
    of = [row for row in IMAGES if row["framework"] == framework]
    last = max(Version(row["framework_version"]) for row in of if row[library])
    # 2.11.0 and the 2.11 of a file that names no patch are the same.
    assert Version(known).release[:2] == last.release[:2]
    assert max(Version(row["framework_version"]) for row in of) > last


def test_every_image_that_a_lesson_takes_is_recorded():
    recorded = {(row["framework"], row["framework_version"]) for row in IMAGES}
    named = {(job.framework, job.version) for lesson in JOBS for job in lesson_jobs(lesson)}
    assert named and named <= recorded


def test_horovod_for_pytorch_is_in_the_gpu_image_alone():
    """Preflight says so of 1.13.1 on CPUs ("Horovod on CPUs")."""
    result = {
        row["file"][-3:]: row["horovod"] for row in IMAGES if row["framework_version"] == "1.13.1"
    }
    assert result == {"cpu": "", "gpu": "0.26.1"}
