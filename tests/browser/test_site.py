"""The site, built from lessons and looked at in a real browser: nothing from outside, nothing cut.

It is built in English from the lessons as they are committed; a few of its pages are opened.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from filelock import FileLock

from tools import site
from tools.site_links import broken
from workshop.course.lessons import chosen
from workshop.paths import NOTEBOOKS, ROOT, TEACHING

HERE = Path(__file__).parent
AXE = "axe-core@4.14.1"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
RUN = {"date": "-", "commit": "-", "machine": "-", "target": "local", "versions": "-"}
WIDER_THAN_THE_PAGE = (HERE / "wider_than_the_page.js").read_text()
HITS = "return document.querySelectorAll('#search-results li').length"
BROKEN_IMAGES = "return [...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
NO_TEXT = "return [...document.querySelectorAll('main img:not([alt])')].map(i => i.src)"
AXE_RUN = (HERE / "axe_run.js").read_text()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site of lessons without outputs, in English."""
    folder = tmp_path_factory.mktemp("site")
    executed = folder / "executed"
    executed.mkdir()
    for lesson in chosen(()):
        shutil.copy(lesson, executed)
    run = RUN | {"lessons": [{"name": lesson.stem, "seconds": 1} for lesson in chosen(())]}
    (executed / "run.json").write_text(json.dumps(run))
    return site.build(executed, folder / "source", folder / "site", ["en"]).parent


def axe(folder: Path) -> str:
    """axe-core from npm, fetched once."""
    if not shutil.which("npm"):
        pytest.skip("npm is missing, which brings axe-core: apt-get install npm")
    with FileLock(folder / "axe.lock"):
        if not (folder / "package").exists():
            command = ["npm", "pack", AXE, "--silent"]
            packed = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if packed.returncode:
                pytest.skip(f"npm has no {AXE} here: {packed.stderr[-200:]}")
            shutil.unpack_archive(folder / packed.stdout.split()[-1], folder)
    return (folder / "package" / "axe.min.js").read_text()


def test_without_a_run_it_says_what_to_do(tmp_path):
    with pytest.raises(site.NoRun, match="run `make run` first"):
        site.build(tmp_path, tmp_path / "source", tmp_path / "site")


@pytest.mark.slow
def test_the_site_is_whole_without_a_network(built, looked_at, common_folder):
    first, *_ = chosen(())
    pages = ["index", f"notebooks/{first.stem}", "search"]
    look([built / f"{page}.html" for page in pages], looked_at, axe(common_folder))


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.html").write_text(
        '<h1 id="here"></h1><a href="b.html#there">1</a><a href="#here">2</a><a href="c.html">3</a>'
        '<a href="b.html#gone">4</a><img src="x.png"><a href="folder/">5</a>'
        '<a href="https://example.com/none">6</a><a href="../outside.html">7</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    (tmp_path.parent / "outside.html").touch()
    links = [line.split(": ")[1] for line in broken(tmp_path)]
    assert links == ["c.html", "b.html#gone", "x.png", "folder/", "../outside.html"]


@pytest.mark.slow
def test_every_lesson_has_its_page_with_its_notebook_and_its_source(built):
    for lesson in chosen(()):
        text = (built / "notebooks" / f"{lesson.stem}.html").read_text()
        files = text[text.index("Files of this page") :]
        assert f"_sources/notebooks/{lesson.stem}.ipynb" in files
        assert f"{lesson.stem}.py" in files
    contents = (built / "index.html").read_text()
    for page in ("notebooks/reference", "field_guide", "notebooks/glossary", "measured"):
        assert f'href="{page}.html"' in contents, page
    pages = [*TEACHING.glob("*.md"), *NOTEBOOKS.glob("exercises/*.ipynb"), *chosen(())]
    for page in (*pages, ROOT / "local-sagemaker" / "README.md"):
        assert f'href="{page.relative_to(ROOT).with_suffix(".html")}"' in contents, page
    places = [contents.index(f'href="notebooks/{lesson.stem}.html"') for lesson in chosen(())]
    assert places == sorted(places), "in the order in which they are read"


@pytest.mark.slow
def test_search_finds_the_fields_words_in_an_opened_folder(built, looked_at):
    from selenium.webdriver.support.ui import WebDriverWait

    for word in ("all-reduce", "TF_CONFIG", "spot"):
        looked_at.get(f"{(built / 'search.html').as_uri()}?q={word}")
        WebDriverWait(looked_at, 20).until(lambda driver: driver.execute_script(HITS))


def look(pages, driver, axe_program) -> None:
    """Open pages at two widths, light and dark; fail with all that is wrong."""
    wrong = []
    for page in pages:
        for width in (1280, 360):
            for mode in ("light", "dark"):
                set_screen(driver, width, mode)
                driver.get(page.as_uri())
                problems = {
                    "console": errors(driver),
                    "asks another host for": outside(driver),
                    "wider than the page": driver.execute_script(WIDER_THAN_THE_PAGE),
                    "broken image": driver.execute_script(BROKEN_IMAGES),
                    "image without a text": driver.execute_script(NO_TEXT),
                }
                driver.execute_script(axe_program)
                problems["axe"] = driver.execute_async_script(AXE_RUN, RULES)
                wrong += [
                    f"{page.name} {width} {mode}: {kind}: {str(problem)[:300]}"
                    for kind, some in problems.items()
                    for problem in some
                ]
    assert not wrong, "\n".join(wrong)


def set_screen(driver, width: int, mode: str) -> None:
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    wishes = {"prefers-color-scheme": mode, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def errors(driver) -> list[str]:
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def outside(driver) -> list[str]:
    """Addresses that the page urls for and that are not files of the site."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [
        entry["params"]["request"]["url"]
        for entry in messages
        if entry["method"] == "Network.requestWillBeSent"
    ]
    return [entry for entry in urls if not entry.startswith(("file:", "data:", "blob:", "chrome:"))]
