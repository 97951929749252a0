"""Notebooks, exercises and pages are what `python -m workshop.course.sync` makes."""

from workshop.course.lessons import lessons
from workshop.course.sync import as_notebook, everything, out_of_step
from workshop.paths import NOTEBOOKS

NUMBERS = {"00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "99"}


def test_all_lessons_are_there():
    assert {path.stem[:2] for path in lessons()} >= NUMBERS
    assert all(path.with_suffix(".py").is_file() for path in lessons())


def test_what_has_a_source_is_in_step_with_it():
    stale = [str(path.relative_to(NOTEBOOKS)) for path in out_of_step(everything())]
    assert not stale, f"{stale}: run `python -m workshop.course.sync`"


def test_what_has_no_source_any_more_is_gone():
    assert set(NOTEBOOKS.rglob("*.ipynb")) == {
        path for path in everything() if path.suffix == ".ipynb"
    }


def test_an_edit_of_either_form_is_noticed(tmp_path):
    source, pair = tmp_path / "00_x.py", tmp_path / "00_x.ipynb"
    source.write_text("# %% [markdown]\n# # Title\n\n# %%\nx = 1\n")
    pair.write_text(as_notebook(source))
    assert not out_of_step(everything(("00",), tmp_path))
    source.write_text(source.read_text().replace("x = 1", "x = 2"))
    assert out_of_step(everything(("00",), tmp_path)) == [pair]
    pair.unlink()
    assert out_of_step(everything(("00",), tmp_path)) == [pair]
