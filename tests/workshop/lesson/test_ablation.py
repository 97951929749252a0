"""Scripts in steps: each can be shown and left out, and only adds lines."""

import ast

import pytest

from workshop.lesson import ablation

SCRIPTS = ("train_tf_horovod_steps.py", "train_torch_steps.py")
script = pytest.mark.parametrize("script", SCRIPTS)


@script
def test_each_of_nine_steps_only_adds_lines(script):
    assert ablation.numbers(script) == list(range(1, 10))
    for step in range(1, 10):
        text = ablation.diff(script, step)
        assert {line[:1] for line in text.splitlines()} & {"+", "-"} == {"+"}
        assert "STEP" not in text


@script
def test_the_lines_of_several_steps_are_numbered(script):
    added = [line for line in ablation.diff(script, 1, 2).splitlines() if line.startswith("+")]
    assert {line[line.rindex("#") :] for line in added} == {"# (1)", "# (2)"}


@script
def test_without_any_step_it_knows_of_no_other_process(script):
    tree = ast.parse(ablation.text_without(script, range(1, 10)))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"hvd", "dist", "init_distributed", "cleanup", "all_reduce_mean"}


@script
def test_the_copy_lacks_the_step_and_nothing_else(script):
    with ablation.without(script, 4) as copy:
        text, whole = copy.read_text(), (ablation.DEMOS / script).read_text()
        assert (copy.parent / "common" / "report.py").is_file()
        assert copy.name == script.replace(".py", "_without_4.py")
    assert not copy.exists()
    gone = [line for line in whole.splitlines() if line not in text.splitlines()]
    assert gone and all(line.endswith("# STEP 4") for line in gone)
    assert len(whole.splitlines()) - len(text.splitlines()) == len(gone)


def test_what_is_not_there():
    with pytest.raises(ValueError, match=r"no step \[10\]; it has \[1, 2"):
        ablation.text_without(SCRIPTS[0], [10])
    with pytest.raises(ValueError, match="no line that ends in # STEP"):
        ablation.numbers("look_at_channels.py")
    with pytest.raises(ValueError, match=r"There is no scripts/demos/none\.py"):
        ablation.numbers("none.py")
