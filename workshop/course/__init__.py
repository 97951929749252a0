"""Run the lessons, and write their pages and a class's report."""

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, folder: Path = TEMPLATES, **values) -> str:
    """A page of a template in `folder`; the values are escaped."""
    import jinja2  # slow, and not needed by everybody who asks for the lessons

    loader = jinja2.FileSystemLoader(folder)
    return jinja2.Environment(loader=loader, autoescape=True).get_template(template).render(values)
