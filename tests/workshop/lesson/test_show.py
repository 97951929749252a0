"""The lessons show the scripts that run."""

import pytest

from workshop.lesson import show
from workshop.lesson.show import diff, function_source, show_diff, show_function
from workshop.paths import NOTEBOOKS


def test_a_function_is_shown_whole():
    text, _ = function_source("train/train_tf.py", "train_step")  # inside main
    assert text.startswith("@tf.function\ndef train_step(")
    assert text.endswith("\n    return loss")


def test_a_diff_leaves_docstrings_out_and_shows_what_is_new():
    text = diff("train/train_tf.py", "train/train_tf_horovod.py")
    assert "+    hvd.init()" in text
    assert "mpirun -np" not in text  # that stands in the docstring


def test_a_diff_is_counted_and_its_essential_lines_come_first():
    pair = ("train/train_torch.py", "train/train_torch_ddp.py")
    lines = diff(*pair).splitlines()[2:]
    counted = f"{sum(line[:1] == '+' for line in lines)} lines added, "
    counted += f"{sum(line[:1] == '-' for line in lines)} removed"
    assert counted in show_diff(*pair).data and "<details>" not in show_diff(*pair).data
    first, folded = show_diff(*pair, ["DistributedDataParallel(model)"]).data.split("<details>")
    assert "+parallel_model = DistributedDataParallel(model)" in first
    assert counted in first and diff(*pair) in folded
    with pytest.raises(ValueError, match="is in 0 added lines"):
        show_diff(*pair, ["DataParallel(none)"])


@pytest.mark.parametrize("script, name", [("none.py", "main"), ("train/train_tf.py", "nothing")])
def test_what_is_not_there_is_an_error(script, name):
    with pytest.raises(ValueError, match="scripts/"):
        function_source(script, name)


def test_a_name_that_several_classes_have_must_be_qualified(tmp_path, monkeypatch):
    monkeypatch.setattr(show, "SCRIPTS", tmp_path)
    (tmp_path / "two.py").write_text(
        "class A:\n    def f(self):\n        return 1\n\n\n"
        "class B:\n    def f(self):\n        return 2\n"
    )
    with pytest.raises(ValueError, match=r"several 'f': name one of A\.f, B\.f"):
        function_source("two.py", "f")
    assert function_source("two.py", "B.f") == ("def f(self):\n    return 2", 7)


def test_a_view_links_to_file_and_line(monkeypatch):
    monkeypatch.chdir(NOTEBOOKS)  # a notebook's process runs in its folder
    _, line = function_source("train/train_tf.py", "train_step")
    view = show_function("train/train_tf.py", "train_step").data
    assert view.startswith(
        f"[scripts/train/train_tf.py, line {line}](../scripts/train/train_tf.py#L{line})"
    )
    text = (NOTEBOOKS / "../scripts/train/train_tf.py").read_text().splitlines()[line - 1]
    assert text.lstrip().startswith(("def train_step", "@"))
    both = show_diff("train/train_tf.py", "train/train_tf_horovod.py").data
    assert (
        "(../scripts/train/train_tf.py)" in both
        and "(../scripts/train/train_tf_horovod.py)" in both
        and "(reference.ipynb)" in both
    )
