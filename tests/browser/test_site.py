"""The site, built from lessons and looked at in a real browser: nothing from outside, nothing cut.

`make test` builds it in English from the lessons as they are committed, and opens a few pages.
`make soak` builds it in every language, and opens every page of the site that `make site` built.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from babel.messages import pofile
from filelock import FileLock

from lab_harness import CHROMIUM, DRIVER, MISSING, chromium
from tools import site, translations
from tools.site_links import broken
from workshop.course.lessons import chosen
from workshop.paths import NOTEBOOKS, ROOT, TEACHING

AXE = "axe-core@4.14.1"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
RUN = {"date": "-", "commit": "-", "machine": "-", "target": "local", "versions": "-"}
WIDER_THAN_THE_PAGE = """
const scrolls = e => { for (let a = e.parentElement; a && a !== document.body; a = a.parentElement)
  if (getComputedStyle(a).overflowX !== "visible") return true; return false };
return document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter(
    e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e)).map(e => e.outerHTML)"""
HITS = "return document.querySelectorAll('#search-results li').length"
BROKEN_IMAGES = "return [...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
NO_TEXT = "return [...document.querySelectorAll('main img:not([alt])')].map(i => i.src)"
AXE_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {preload: false, runOnly: arguments[0]}).then(r => done(
  r.violations.map(v => v.id + ": " + v.nodes.map(n => n.target).slice(0, 3))));"""


def build(folder: Path, languages) -> Path:
    """Build the site of lessons without outputs in a folder."""
    executed = folder / "executed"
    executed.mkdir()
    for lesson in chosen(()):
        shutil.copy(lesson, executed)
    run = RUN | {"lessons": [{"name": one.stem, "seconds": 1} for one in chosen(())]}
    (executed / "run.json").write_text(json.dumps(run))
    return site.build(executed, folder / "source", folder / "site", languages).parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site of lessons without outputs, in English."""
    return build(tmp_path_factory.mktemp("site"), ["en"])


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """The same in every language."""
    return build(tmp_path_factory.mktemp("translated"), translations.LANGUAGES)


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory):
    """A Chromium that notes what pages ask for, and axe-core's program."""
    if not (CHROMIUM and DRIVER):
        pytest.skip(MISSING)
    with chromium(tmp_path_factory.mktemp("chromium"), log_requests=True) as driver:
        yield driver


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
    found = [one.split(": ")[1] for one in broken(tmp_path)]
    assert found == ["c.html", "b.html#gone", "x.png", "folder/", "../outside.html"]


@pytest.mark.slow
def test_every_lesson_has_its_page_with_its_notebook_its_source_and_its_scripts(built):
    for lesson in chosen(()):
        text = (built / "notebooks" / f"{lesson.stem}.html").read_text()
        files = text[text.index("Files of this page") :]
        assert f"_sources/notebooks/{lesson.stem}.ipynb" in files
        assert f"{lesson.stem}.py" in files
    shown = (built / "notebooks" / f"{chosen(('02',))[0].stem}.html").read_text()
    assert 'href="../scripts/demos/collectives/ring.html"' in shown
    contents = (built / "index.html").read_text()
    for page in ("notebooks/reference", "field_guide", "notebooks/glossary", "measured"):
        assert f'href="{page}.html"' in contents, page
    pages = [*TEACHING.glob("*.md"), *NOTEBOOKS.glob("exercises/*.ipynb"), *chosen(())]
    for page in (*pages, ROOT / "local-sagemaker" / "README.md"):
        assert f'href="{page.relative_to(ROOT).with_suffix(".html")}"' in contents, page
    places = [contents.index(f'href="notebooks/{lesson.stem}.html"') for lesson in chosen(())]
    assert places == sorted(places), "in the order in which they are read"


@pytest.mark.soak
@pytest.mark.parametrize("language", translations.CATALOGS)
def test_a_translated_page_leads_to_the_english_one_and_back(translated, looked_at, language):
    set_screen(looked_at, 1280, "light")
    for page in translations.pages():
        looked_at.get((translated / f"{page}.html").as_uri())
        english = looked_at.find_element("css selector", "article h1").text
        looked_at.find_element("css selector", f".languages a[lang|={language[:2]}]").click()
        there = translated / language / f"{page}.html"
        assert looked_at.current_url == there.as_uri()
        assert looked_at.find_element("css selector", "article h1").text != english
        assert untranslated(page, language, there) == []
        looked_at.find_element("css selector", ".languages a[lang=en]").click()
        assert looked_at.find_element("css selector", "article h1").text == english


def untranslated(page: str, language: str, built: Path) -> list[str]:
    """English texts without markup that have a translation and are on the page all the same."""
    path = translations.LOCALE / language / "LC_MESSAGES" / f"{page}.po"
    with path.open("rb") as file:
        known = [one.id for one in pofile.read_po(file, locale=language) if one.string]
    plain = [one for one in known if one and not set(one) & set("*`[]<>&'\"")]
    _, article = built.read_text().split("<article", 1)  # the site's own title is English
    text = " ".join(article.split())
    return [one for one in plain if len(one) > 40 and one in text]


@pytest.mark.soak
def test_what_is_not_translated_is_english(translated):
    page = f"notebooks/{chosen(('99',))[0].stem}"
    assert page not in translations.pages()
    text = (translated / "ko" / f"{page}.html").read_text()
    assert "Clean up" in text[text.index("<h1") :][:200]


@pytest.mark.slow
def test_search_finds_the_fields_words_in_an_opened_folder(built, looked_at):
    from selenium.webdriver.support.ui import WebDriverWait

    for word in ("all-reduce", "TF_CONFIG", "spot"):
        looked_at.get(f"{(built / 'search.html').as_uri()}?q={word}")
        WebDriverWait(looked_at, 20).until(lambda driver: driver.execute_script(HITS))


@pytest.mark.soak
def test_every_page_of_the_built_site(looked_at, common_folder):
    if not site.SITE.exists():
        pytest.skip("build/site is missing: `make run`, then `make site`")
    assert list(broken(site.SITE)) == []
    others = set(translations.CATALOGS)
    pages = [
        page
        for page in sorted(site.SITE.rglob("*.html"))
        if not {"_static", *others} & set(page.relative_to(site.SITE).parts)
    ]
    pages += [site.SITE / one / f"{page}.html" for one in others for page in translations.pages()]
    look(pages, looked_at, axe(common_folder))


def look(pages, driver, axe_program) -> None:
    """Open pages at two widths, light and dark; fail with all that is wrong."""
    wrong = []
    for page in pages:
        for width in (1280, 360):
            for mode in ("light", "dark"):
                set_screen(driver, width, mode)
                driver.get(page.as_uri())
                found = {
                    "console": errors(driver),
                    "asks another host for": outside(driver),
                    "wider than the page": driver.execute_script(WIDER_THAN_THE_PAGE),
                    "broken image": driver.execute_script(BROKEN_IMAGES),
                    "image without a text": driver.execute_script(NO_TEXT),
                }
                driver.execute_script(axe_program)
                found["axe"] = driver.execute_async_script(AXE_RUN, RULES)
                wrong += [
                    f"{page.name} {width} {mode}: {what}: {str(one)[:300]}"
                    for what, some in found.items()
                    for one in some
                ]
    assert not wrong, "\n".join(wrong)


def set_screen(driver, width: int, mode: str) -> None:
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    wishes = {"prefers-color-scheme": mode, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def errors(driver) -> list[str]:
    return [one["message"] for one in driver.get_log("browser") if one["level"] == "SEVERE"]


def outside(driver) -> list[str]:
    """Addresses that the page asked for and that are not files of the site."""
    messages = [json.loads(one["message"])["message"] for one in driver.get_log("performance")]
    asked = [
        one["params"]["request"]["url"]
        for one in messages
        if one["method"] == "Network.requestWillBeSent"
    ]
    return [one for one in asked if not one.startswith(("file:", "data:", "blob:", "chrome:"))]
