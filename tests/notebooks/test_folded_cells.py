"""What is saved and asserted for the tests is out of the reader's sight: in folded cells."""

import ast

import nbformat
import pytest

from workshop.course.lessons import lessons

lesson = pytest.mark.parametrize("path", lessons(), ids=lambda path: path.stem)


def code(path, folded):
    """The code cells of a lesson that are folded, or those that are not."""
    cells = nbformat.read(path, as_version=4).cells
    tagged = [("results" in cell.metadata.get("tags", []), cell) for cell in cells]
    return [cell for tag, cell in tagged if cell.cell_type == "code" and tag is folded]


def calls(cells, name):
    """How often these cells call a function. name: as it is written there, or its last part."""
    nodes = (node for cell in cells for node in ast.walk(ast.parse(cell.source)))
    functions = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    return sum(one == name or one.endswith(f".{name}") for one in functions)


@lesson
def test_results_are_saved_and_asserted_in_folded_cells_only(path):
    folded, read = code(path, True), code(path, False)
    assert len(folded) >= 5
    assert all(cell.metadata["jupyter"] == {"source_hidden": True} for cell in folded)
    assert calls(folded, "workshop.save_results") >= 5
    assert calls(read, "workshop.save_results") == 0
    for cell in read:
        asserts = [
            node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Assert)
        ]
        assert not asserts, f"put it into a cell tagged `results`: {cell.source}"


@lesson
def test_every_guess_is_compared_where_the_reader_sees_it(path):
    """A guess may be compared in parts. tests/lessons/test_guesses.py counts what was shown."""
    assert calls(code(path, False), "compare") >= calls(code(path, False), "workshop.guess") > 0
    assert calls(code(path, True), "compare") == 0, "the answer is in a folded cell"
