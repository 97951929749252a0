"""What the lessons' tests share: read an executed notebook."""

# What a lesson is run with in the tests, so that it takes less time.
SMALLER = {"target": "local", "seat": "tests"}


def text_of(notebook):
    """All text that the cells printed."""
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    return "".join(one.get("text", "") for one in outputs)


def errors_and_warnings(notebook):
    """What the cells wrote to stderr, and their errors."""
    return [
        one.get("text")
        for cell in notebook.cells
        for one in cell.get("outputs", [])
        if one.get("name") == "stderr" or one.output_type == "error"
    ]
