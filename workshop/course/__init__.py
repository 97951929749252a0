"""For makers of the course: sync, execute, pages, site, slides, tables, class reports."""

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **values) -> str:
    """A page of a template in templates/; the values are escaped."""
    import jinja2  # slow, and not needed by everybody who asks for the lessons

    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, autoescape=True).get_template(template).render(values)
