"""What coverage.md calls a result is one: the executed lesson recorded it in the section named.

The places, and what coverage.md calls code, are looked up by tests/lint/instructor_rules.py.
"""

import importlib.util
import inspect
import json

import nbformat
import pytest
from course_text import COVERAGE, read, table

from workshop.lesson.results import MIME

ROWS = [row.cells for header in ("| row |", "| also |") for row in table(read(COVERAGE), header)]
RESULTS = [row[-3:] for row in ROWS if row[-1].startswith("result ")]


def recorded(notebook: nbformat.NotebookNode) -> dict[str, dict]:
    """Second-level heading -> the results that its cells recorded."""
    by_section, heading = {}, ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            titles = [line[3:] for line in cell.source.splitlines() if line.startswith("## ")]
            heading = (titles or [heading])[-1]
        for output in cell.get("outputs", []):
            by_section.setdefault(heading, {}).update(output.get("data", {}).get(MIME, {}))
    return by_section


@pytest.mark.reads_lessons
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("number", sorted({row[0] for row in RESULTS}))
def test_what_shows_a_claim_was_recorded_there(lesson_run, number):
    by_section, missing = recorded(lesson_run(number).notebook), []
    for _, section, shown in (row for row in RESULTS if row[0] == number):
        name = shown.removeprefix("result ").strip("`")
        if by_section.get(section, {}).get(name) in (None, [], {}, ""):
            missing.append(
                f"{section}: {name}; recorded there: {json.dumps(by_section.get(section))}"
            )
    assert missing == []


def test_names_that_the_documents_use_are_not_there():
    """Rows 5, 11, 60, 69, 72 and 74: what lessons 03 to 09 say of them in a sentence."""
    import keras
    import sagemaker.session
    import sagemaker.tensorflow
    import tensorflow as tf

    with pytest.raises(SyntaxError):
        compile("{'parameter_server': {enabled = True}}", "000", "eval")
    assert hasattr(sagemaker.tensorflow, "TensorFlow")
    assert not hasattr(sagemaker.tensorflow, "Tensorflow")
    assert not hasattr(tf.train, "AdamOptimizer")
    assert sagemaker.session.TrainingInput.__module__ == "sagemaker.inputs", "by chance"
    assert importlib.util.find_spec("keras.engine") is None
    assert not callable(keras.optimizers.SGD().variables)


def test_a_loader_takes_no_sampler_and_shuffle():
    """What lesson 02 says of `shuffle=True` beside a DistributedSampler."""
    from torch.utils.data import DataLoader, SequentialSampler

    with pytest.raises(ValueError, match="mutually exclusive"):
        DataLoader([1, 2], sampler=SequentialSampler([1, 2]), shuffle=True)


def test_a_bare_address_becomes_the_channel_training():
    """What lesson 09 says of `fit("s3://bucket/folder")`."""
    from sagemaker.job import _Job

    (channel,) = _Job._format_inputs_to_input_config("s3://bucket/folder")
    assert channel["ChannelName"] == "training"


@pytest.mark.parametrize("old", ["distributions", "train_instance_count"])
def test_the_sdk_takes_old_names_and_warns(old):
    """Row 27, and what lesson 05 says of `train_instance_count`."""
    from sagemaker.deprecations import renamed_kwargs
    from sagemaker.estimator import EstimatorBase
    from sagemaker.tensorflow import TensorFlow

    takes = TensorFlow if old == "distributions" else EstimatorBase
    assert f'"{old}"' in inspect.getsource(takes.__init__)
    with pytest.warns(DeprecationWarning, match=f"{old} has been renamed"):
        assert renamed_kwargs(old, "new", None, {old: 2}) == 2
