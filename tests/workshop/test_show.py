"""The lessons show the scripts that run."""

import pytest

from workshop.lesson.show import diff, function_source


def test_a_function_is_shown_whole():
    text = function_source("train_tf.py", "make_train_step")
    assert text.startswith("def make_train_step(") and text.rstrip().endswith("return train_step")


def test_a_diff_leaves_docstrings_out_and_shows_what_is_new():
    text = diff("train_tf.py", "train_tf_horovod.py")
    assert "+    hvd.init()" in text
    assert "mpirun -np" not in text  # that stands in the docstring


@pytest.mark.parametrize("script, name", [("none.py", "main"), ("train_tf.py", "nothing")])
def test_what_is_not_there_is_an_error(script, name):
    with pytest.raises(ValueError, match="scripts/"):
        function_source(script, name)
