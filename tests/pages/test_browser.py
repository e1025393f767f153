# SPDX-License-Identifier: Apache-2.0
"""The pages in Chromium: asking with scripts, without scripts and with the keyboard alone; accessibility; no outside request.

Skipped where Playwright or Chromium is missing: `scripts/chromium.sh` installs the browser.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.chance import no_chance
from tests.house.project import DOCS
from tests.pages.conftest import EVIL_WARD, PICTURES, Site

playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright: pip install 'discreet[dev]'"
)
PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    no_chance("the server draws in a process of its own, and no number is compared"),
    pytest.mark.skipif(PROGRAM is None, reason="needs Chromium: scripts/chromium.sh"),
]

D = "/d/visits"
AXE = (Path(__file__).parent / "vendored" / "axe.js").read_text(encoding="utf-8")
#: What Chromium would otherwise do by itself.
QUIET = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
]
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
GROUPS = "SELECT ward, AVG(age), COUNT(*) FROM visits GROUP BY ward"
Open = Callable[..., "playwright.Page"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=PROGRAM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def open_page(site: Site, chromium: playwright.Browser) -> Iterator[Open]:
    """Open a page as somebody; what the console says, and requests that leave the server, fail the test."""
    contexts, complaints = [], []

    def note(page: playwright.Page) -> None:
        page.on("console", lambda said: said.type in {"error", "warning"} and complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda made: _leaves(made.url) and complaints.append(made.url))

    def _leaves(address: str) -> bool:
        return not address.startswith((site.address, "data:"))

    def open_as(person: str | None, path: str, **options: object) -> playwright.Page:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        if person is not None:
            found = site.services.store.person(site.people[person])
            session = site.services.sign_in.begin(found)
            context.add_cookies([{"name": "discreet", "value": session, "url": site.address}])
        page = context.new_page()
        note(page)
        page.goto(f"{site.address}{path}")
        return page

    yield open_as
    for context in contexts:
        context.close()
    # A refusal has a status of its own, which the console repeats.
    assert [text for text in complaints if "the server responded with a status of 4" not in text] == []


def write(page: playwright.Page, sql: str) -> None:
    """Type a question into the editor, over what is there."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(sql)
    page.keyboard.press("Escape")


def cost(page: playwright.Page, epsilon: str) -> None:
    page.get_by_label("By cost ε").check()
    page.get_by_label("ε =", exact=True).fill(epsilon)


#: The contrast of the text of a drawing, which axe never decides, with the paper below it.
CONTRAST = """node => {
  const channels = text => text.match(/[\\d.]+/g).map(Number);
  const paint = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const luminance = colour => {
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map(each => each / 255)
      .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let below = node.closest('svg').parentElement;
  while (below.parentElement && channels(getComputedStyle(below).backgroundColor)[3] === 0) below = below.parentElement;
  const [a, b] = [getComputedStyle(node).fill, getComputedStyle(below).backgroundColor].map(luminance).sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""


def faults(page: playwright.Page, rules: Sequence[str] = WCAG) -> list[str]:
    """What axe finds, and what it cannot decide, but for the text of drawings, which is decided here."""
    page.evaluate(AXE)
    found = page.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations', 'incomplete']})", rules
    )
    return [
        f"{kind} {rule['id']}: {node['html'][:120]}"
        for kind in ("violations", "incomplete")
        for rule in found[kind]
        for node in rule["nodes"]
        if not (
            kind == "incomplete"
            and rule["id"] == "color-contrast"
            and _is_legible_drawing(page, node["target"][0])
        )
    ]


def _is_legible_drawing(page: playwright.Page, target: str) -> bool:
    """Whether this is text in a drawing that stands out enough; nothing is drawn over text there."""
    node = page.locator(target)
    in_drawing = node.evaluate("node => node.closest('svg') !== null && node.closest('text') !== null")
    return in_drawing and node.evaluate(CONTRAST) >= 4.5


def overflow(page: playwright.Page) -> int:
    """Pixels by which a page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def picture(page: playwright.Page, name: str, **options: object) -> None:
    """A picture for the documentation, if they are made anew."""
    if PICTURES:
        place = DOCS / "assets" / "server" / f"{name}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        image = pytest.importorskip("PIL.Image").open(io.BytesIO(page.screenshot(**options)))
        image.convert("RGB").quantize(48).save(place, optimize=True)


# --- asking -------------------------------------------------------------------------------------------


def test_the_plan_follows_what_is_typed_and_the_answer_gets_the_focus(site, open_page):
    page = open_page("ana", f"{D}/ask")
    page.locator(".cm-editor").wait_for()
    cost(page, "0.2")
    write(page, GROUPS)
    page.locator("#plan dl").wait_for()
    assert "ε = 0.2" in page.locator("#plan").inner_text()
    before = page.locator("#budget").inner_text()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#answer table").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Answer"
    assert EVIL_WARD in page.locator("#answer table").inner_text()
    assert page.locator("#evil").count() == 0
    assert page.locator("#answer svg.chart").count() == 2
    assert page.locator("#budget").inner_text() != before
    assert page.url.endswith("/ask")


def test_typing_over_a_selection_is_silent_and_the_culprit_is_underlined(open_page):
    page = open_page("ana", f"{D}/ask?sql=SELECT+COUNT(*)+FROM+visits")
    page.locator(".cm-editor").wait_for()
    cost(page, "0.1")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT COUNT(nope) FROM visits ", delay=5)
    page.locator(".cm-lintRange-error").wait_for()
    assert page.locator(".cm-lintRange-error").inner_text() == "nope"
    assert "has no column 'nope'" in page.locator("#plan").inner_text()
    page.keyboard.press("Control+a")
    page.keyboard.type("(")
    assert page.locator(".cm-line").first.inner_text().startswith("(SELECT")


def test_what_does_not_fit_offers_an_amount_that_does(open_page):
    page = open_page("bo", f"{D}/ask?sql=SELECT+COUNT(*)+FROM+visits")
    page.locator(".cm-editor").wait_for()
    cost(page, "1000")
    page.keyboard.press("Control+Enter")
    page.locator("#answer .problem").wait_for()
    assert "DP601" in page.locator("#answer").inner_text()
    assert "does not fit" in page.evaluate("document.activeElement.textContent")
    page.locator("#answer .use").click()
    assert float(page.get_by_label("ε =", exact=True).input_value()) < 20
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#answer table").wait_for()
    assert "0 more answers like the last one fit" in page.locator("#budget").inner_text()


def test_the_keyboard_alone_is_enough(site, open_page):
    page = open_page(None, "/enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_label("Token").focus()
    page.keyboard.type(site.tokens["ana"])
    site.services.sign_in._rate._buckets.clear()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.address}/")
    page.goto(f"{site.address}{D}/ask")
    page.locator(".cm-editor").wait_for()
    page.locator("#main").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.classList.contains('cm-content')")
    page.keyboard.type("SELECT COUNT(*) FROM visits WHERE age < 30 ")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "how"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    names = [page.evaluate("document.activeElement.name")]
    for _ in range(2):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.name"))
    assert "epsilon" in names
    page.get_by_label("ε =", exact=True).focus()
    page.keyboard.type("0.15")
    page.keyboard.press("Control+Enter")
    page.locator("#answer table").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Answer"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != ""


def test_without_scripts_every_form_works(site, open_page):
    page = open_page("ana", f"{D}/ask", java_script_enabled=False)
    page.locator("#sql").fill("SELECT COUNT(*) FROM visits WHERE age > 50")
    cost(page, "0.25")
    page.get_by_role("button", name="Show the cost").click()
    assert "ε = 0.25" in page.locator("#plan").inner_text()
    assert page.locator("#sql").input_value() == "SELECT COUNT(*) FROM visits WHERE age > 50"
    page.get_by_role("button", name="Ask", exact=True).click()
    assert "/answers/" in page.url
    assert page.locator("#answer table").is_visible()
    page.goto(f"{site.address}{D}/answers")
    page.get_by_label("Text").fill("age > 50")
    page.get_by_role("button", name="Filter").click()
    assert page.locator("tbody tr").count() == 1
    page.get_by_role("button", name="Sign out").click()
    assert page.url.endswith("/enter")


def test_a_telephone_shows_everything_in_one_column(open_page):
    page = open_page("ana", f"{D}/ask", viewport={"width": 390, "height": 844})
    page.locator(".cm-editor").wait_for()
    cost(page, "0.2")
    write(page, GROUPS)
    page.locator("#plan dl").wait_for()
    button = page.get_by_role("button", name="Ask", exact=True)
    box = button.bounding_box()
    page.evaluate("window.scrollTo(0, 0)")
    box = button.bounding_box()
    assert box["y"] + box["height"] <= 844
    tops = [page.locator(each).bounding_box()["y"] for each in ("#question", "#plan", "#answer", ".columns")]
    assert tops == sorted(tops)
    button.click()
    page.locator("#answer table").wait_for()
    assert overflow(page) <= 0
    widest = page.evaluate(
        "Math.max(...[...document.querySelectorAll('svg.chart *')].map(e => e.getBoundingClientRect().right))"
    )
    assert widest <= 390
    page.evaluate("window.scrollTo(0, document.querySelector('#answer').offsetTop)")
    picture(page, "telephone")


# --- every page ---------------------------------------------------------------------------------------


PAGES = [
    (None, "/enter"),
    (None, "/enter?once=dscr_x"),
    (None, "/"),
    ("no", "/"),
    ("ana", "/"),
    ("ana", D),
    ("ana", f"{D}/made-up"),
    ("ana", f"{D}/ask"),
    ("ana", f"{D}/answers"),
    ("no", f"{D}/ask"),
    ("cy", f"{D}/ask"),
    ("cy", f"{D}/curate"),
    ("cy", f"{D}/curate/seats"),
    ("au", f"{D}/ledger"),
    ("au", f"{D}/statement"),
    ("au", f"{D}/log"),
]


def test_every_page_is_accessible_in_both_themes_and_fits_a_narrow_window(site, open_page):
    pages, found = {}, {}
    for person, path in PAGES:
        page = pages.get(person) or open_page(person, path, bypass_csp=True)
        pages[person] = page
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{site.address}{path}")
        if path.endswith("/ask") and person != "no":
            page.locator(".cm-editor").wait_for()
        faulty = faults(page)
        # Only colours differ.
        page.emulate_media(color_scheme="dark")
        faulty += faults(page, ["color-contrast"])
        page.set_viewport_size({"width": 320, "height": 800})
        if overflow(page) > 0:
            faulty.append(f"{overflow(page)} pixels too wide")
        if faulty:
            found[path, person] = faulty
    assert found == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_plan_an_answer_and_a_refusal_are_accessible(open_page, theme):
    page = open_page("ana", f"{D}/ask", color_scheme=theme, bypass_csp=True)
    page.locator(".cm-editor").wait_for()
    cost(page, "0.2")
    write(page, f"{GROUPS} -- a comment")
    page.locator("#plan dl").wait_for()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#answer table").wait_for()
    for summary in page.locator("details").all():
        summary.evaluate("details => details.open = true")
    assert faults(page) == []
    if theme == "light":
        page.evaluate(
            "document.querySelectorAll('details').forEach(each => each.open = false); scrollTo(0, 0)"
        )
        picture(page, "answer", full_page=True)
    write(page, "SELECT COUNT(nope) FROM visits")
    page.locator(".cm-lintRange-error").wait_for()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#answer .problem").wait_for()
    assert faults(page) == []


def test_the_pages_of_the_documentation_look_as_they_do_there(open_page):
    """Makes the other pictures; the pages have to be complete."""
    for person, path, name in [("cy", "/curate", "overview"), ("au", "/ledger", "ledger")]:
        page = open_page(person, f"{D}{path}")
        assert page.locator("h1").count() == 1
        picture(page, name)


def test_a_fault_is_found(open_page):
    page = open_page("ana", f"{D}/answers", bypass_csp=True)
    page.evaluate(
        "document.querySelector('h1').outerHTML = '<h1><img src=\"data:,\"></h1><p style=\"color: #aaa\">pale</p>'"
    )
    assert {re.match(r"\w+ ([\w-]+)", fault)[1] for fault in faults(page)} >= {"image-alt", "color-contrast"}
    page.evaluate(
        "document.querySelector('main').style.width = '2000px'; document.querySelector('main').style.maxWidth = 'none'"
    )
    assert overflow(page) > 0
    assert urlsplit(page.url).path == f"{D}/answers"
