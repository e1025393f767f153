# SPDX-License-Identifier: Apache-2.0
"""The pages of a server without scripts: who sees what, forms, escaping, headers, questions and answers."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import pytest

from tests.chance import no_chance
from tests.pages.conftest import EVIL, EVIL_WARD, words_of

pytestmark = no_chance("the server draws in a process of its own, and no number is compared")

D = "/d/visits"
#: The pages of a data set, and the roles that may see them.
PAGES = {
    "": {"analyst", "curator", "auditor"},
    "/made-up": {"analyst", "curator", "auditor"},
    "/ask": {"analyst", "curator", "auditor"},
    "/answers": {"analyst", "curator"},
    "/curate": {"curator"},
    "/curate/seats": {"curator"},
    "/ledger": {"curator", "auditor"},
    "/ledger/export": {"curator", "auditor"},
    "/statement": {"curator", "auditor"},
    "/statement.json": {"curator", "auditor"},
    "/log": {"auditor"},
}
WHO = {"ana": {"analyst"}, "cy": {"curator"}, "au": {"auditor"}}
FORMS = ["/leave", f"{D}/plan", f"{D}/ask", f"{D}/answers", f"{D}/curate/seats", f"{D}/ledger"]
COUNT = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"


def ask(browser, sql=COUNT, **fields):
    return browser.submit(
        f"{D}/ask", f"{D}/ask", **{"sql": sql, "how": "epsilon", "epsilon": "0.01", **fields}
    )


# --- who sees what ------------------------------------------------------------------------------------


@pytest.mark.parametrize("person", WHO)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_for_its_roles(site, page, person):
    response = sign_in_once(site, person).get(f"{D}{page}")
    assert (response.status_code == 200) == bool(PAGES[page] & WHO[person])
    assert response.status_code in {200, 403}


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_shared_looks_like_what_does_not_exist(site, page):
    browser = sign_in_once(site, "no")
    hidden, absent = browser.get(f"{D}{page}"), browser.get(f"/d/nothing{page}")
    assert hidden.status_code == absent.status_code == 404
    assert re.sub("(?s)<main.*?</main>", "", hidden.text) != ""
    assert words_of(hidden) == words_of(absent)


@pytest.mark.parametrize("page", PAGES)
def test_who_has_not_signed_in_is_sent_to_sign_in(site, page):
    response = site.browser().get(f"{D}{page}?text=1")
    assert response.status_code == 303
    assert response.headers["location"].startswith("/enter?next=%2Fd%2Fvisits")


def test_the_first_page_lists_what_is_shared(site):
    assert "visits" in words_of(site.browser("ana").get("/"))
    alone = words_of(site.browser("no").get("/"))
    assert "No data set is shared with you yet." in alone
    assert site.people["no"] in alone
    assert "Sign in to see the data sets" in words_of(site.browser().get("/"))


def test_the_navigation_has_only_what_one_may_see(site):
    titles = re.findall(r'<a href="/d/visits([^"]*)"', sign_in_once(site, "au").get(f"{D}/ledger").text)
    assert {"/ledger", "/statement", "/log"} <= set(titles)
    assert not {"/answers", "/curate", "/curate/seats"} & set(titles)


# --- signing in ---------------------------------------------------------------------------------------


def test_a_token_lets_in_with_a_cookie_that_scripts_cannot_read(site):
    browser = site.browser()
    sent = browser.submit("/enter?next=/d/visits/ask", "/enter", token=site.tokens["ana"], next=f"{D}/ask")
    assert sent.headers["location"] == f"{D}/ask"
    cookies = [each for each in sent.headers.get_list("set-cookie") if each.startswith("discreet=")]
    assert any("HttpOnly" in each and "SameSite=lax" in each and "Path=/" in each for each in cookies)
    assert "Ask visits" in words_of(browser.get(f"{D}/ask"))


@pytest.mark.parametrize("token", ["", "dscr_secret", "dscr_" + "A" * 49, EVIL, "\0"])
def test_what_is_no_token_gets_one_text(site, token):
    browser = site.browser()
    sent = browser.submit("/enter", "/enter", token=token, next="/")
    if sent.status_code == 429:
        assert "Retry-After" in sent.headers
        return
    assert sent.status_code == 403
    assert "This does not let you in. Ask for a new link or token." in words_of(sent)
    assert EVIL not in sent.text


@pytest.mark.parametrize(
    "goal", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:1"]
)
def test_nobody_is_sent_elsewhere_after_signing_in(site, goal):
    sent = site.browser().submit("/enter", "/enter", token=site.tokens["ana"], next=goal)
    assert sent.headers["location"] == "/"


def test_a_link_lets_in_once_and_not_by_being_looked_at(site):
    link = site.services.people.make_link(site.people["ana"])
    browser = site.browser()
    for _ in range(2):
        assert "This link works once" in words_of(browser.get(f"/enter?once={link}"))
    first = browser.submit(f"/enter?once={link}", "/enter/once", once=link)
    assert first.status_code == 303
    again = site.browser().submit(f"/enter?once={link}", "/enter/once", once=link)
    assert again.status_code == 403


def test_a_session_is_new_at_each_sign_in_and_ends_at_sign_out(site):
    browser = site.browser("ana")
    first = browser.cookies["discreet"]
    browser.submit("/", "/enter", token=site.tokens["ana"], next="/")
    second = browser.cookies["discreet"]
    assert first != second
    browser.submit("/", "/leave")
    assert "discreet" not in browser.cookies
    for session in (first, second):
        browser.cookies.set("discreet", session)
        assert browser.get(f"{D}/ask").status_code == 303
        browser.cookies.clear()


# --- forms of others ------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["/enter", "/enter/once", *FORMS])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_form_of_another_page_is_refused(site, action, headers):
    person = "cy" if "curate" in action or "ledger" in action else "ana"
    browser = sign_in_once(site, person)
    response = browser.submit("/enter", action, headers=headers)
    assert response.status_code == 403, response.text
    assert "DP853" in response.text


@pytest.mark.parametrize("action", ["/enter", *FORMS])
def test_a_form_without_its_token_is_refused(site, action):
    person = "cy" if "curate" in action or "ledger" in action else "ana"
    browser = sign_in_once(site, person)
    own = {"Origin": site.address, "Sec-Fetch-Site": "same-origin"}
    other = sign_in_once(site, "bo").get("/enter").text
    stolen = re.search(r'name="csrf" value="([^"]*)"', other)[1]
    for fields in ({}, {"csrf": ""}, {"csrf": stolen}):
        assert browser.post(action, data=fields, headers=own).status_code == 403


_SIGNED_IN: dict = {}


def sign_in_once(site, person):
    """One session for each person, because the server lets an address try only so often."""
    if person not in _SIGNED_IN:
        _SIGNED_IN[person] = site.browser(person)
    return _SIGNED_IN[person]


# --- headers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/enter", f"{D}/ask", f"{D}/statement", "/d/nothing", "/static/x/y.js"]
)
def test_nothing_of_others_and_nothing_inline_is_let_in(site, path):
    headers = sign_in_once(site, "cy").get(path).headers
    rules = {
        name: values
        for name, *values in (part.split() for part in headers["content-security-policy"].split("; "))
    }
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == ["'self'"]
    assert rules["frame-ancestors"] == ["'none'"]
    assert rules["form-action"] == ["'self'"]
    assert not re.search(r"unsafe|\*|https?:", str(rules))
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    # With "no-referrer" a browser would not say which page a form comes from.
    assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("page", ["/ask", "/statement", "/curate", "/ledger"])
def test_a_page_has_no_inline_style_and_no_inline_script(site, page):
    text = sign_in_once(site, "cy").get(f"{D}{page}").text
    assert not re.search(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son\w+=|javascript:", text)
    assert all(urlsplit(path).netloc == "" for path in re.findall(r'(?:src|href)="([^"]*)"', text))


def test_static_files_are_kept_and_nothing_else_is_there(site):
    browser = sign_in_once(site, "ana")
    paths = re.findall(r'(?:src|href|data-editor)="(/static/[^"]*)"', browser.get(f"{D}/ask").text)
    assert len(paths) == 4
    for path in paths:
        response = browser.get(path)
        assert response.status_code == 200
        assert "immutable" in response.headers["cache-control"]
    folder = paths[0].rpartition("/")[0]
    for path in ("vendored.toml", "..%2Fapp.py", "..%2f..%2ferrors.py", "%2e%2e/app.py"):
        assert browser.get(f"{folder}/{path}").status_code == 404


# --- escaping -----------------------------------------------------------------------------------------


def test_labels_names_and_questions_are_shown_as_text(site):
    curator, analyst = sign_in_once(site, "cy"), sign_in_once(site, "ana")
    asked = ask(
        analyst, f"SELECT ward, COUNT(*) FROM visits WHERE ward = '{EVIL_WARD}' GROUP BY ward", purpose=EVIL
    )
    assert asked.status_code == 303
    answer = analyst.get(asked.headers["location"])
    assert EVIL_WARD in words_of(answer)
    pages = [
        *(analyst.get(f"{D}{page}") for page in ("", "/made-up", "/ask", "/answers")),
        *(curator.get(f"{D}{page}") for page in ("/curate", "/curate/seats", "/ledger", "/statement")),
        sign_in_once(site, "au").get(f"{D}/log"),
        answer,
        curator.get(f"{D}/ledger?text={EVIL}&seat={EVIL}"),
        analyst.get(f"{D}/answers?text={EVIL}"),
        analyst.get(f"{D}/ask?sql={EVIL}</textarea>"),
        analyst.get(f"/enter?next={EVIL}&once={EVIL}"),
        ask(analyst, f"SELECT COUNT({EVIL}) FROM visits"),
        analyst.submit(f"{D}/ask", f"{D}/plan", sql=EVIL, how=EVIL, error=EVIL, epsilon=EVIL, purpose=EVIL),
    ]
    for page in pages:
        assert EVIL not in page.text, page.url
        assert EVIL_WARD not in page.text, page.url
    assert any("&lt;script&gt;" in page.text for page in pages)


# --- questions and answers ------------------------------------------------------------------------------


def test_a_question_is_planned_asked_and_shown_again_for_nothing(site):
    browser = sign_in_once(site, "ana")
    plan = browser.submit(f"{D}/ask", f"{D}/plan", sql=COUNT, how="epsilon", epsilon="0.02")
    assert "3 public groups, all of them shown" in words_of(plan)
    assert "ε = 0.02" in words_of(plan)
    assert "more like this one fit" in words_of(plan)
    before = len(site.services.asking.datasets["visits"].ledger)
    asked = ask(browser, epsilon="0.02")
    page = browser.get(asked.headers["location"])
    words = words_of(page)
    assert "3 rows, with 95 % noise intervals" in words
    assert "Receipt #" in words
    assert "does not cover who was sampled into the data" in words
    after = len(site.services.asking.datasets["visits"].ledger)
    assert after == before + 2
    again = ask(browser, epsilon="0.02")
    assert again.headers["location"] == asked.headers["location"]
    assert browser.get(again.headers["location"]).text.count("<td") == page.text.count("<td")
    assert len(site.services.asking.datasets["visits"].ledger) == after


def test_a_new_answer_is_paid_again_but_a_form_sent_twice_is_paid_once(site):
    browser = sign_in_once(site, "ana")
    first = ask(browser, epsilon="0.03").headers["location"]
    again = re.search(r'name="again" id="again" value="([^"]*)"', browser.get(f"{D}/ask").text)[1]
    locations = {ask(browser, epsilon="0.03", fresh="yes", again=again).headers["location"] for _ in range(2)}
    assert len(locations) == 1
    assert first not in locations
    refused = ask(browser, epsilon="0.03", fresh="yes", again="")
    assert refused.status_code == 400


def test_files_have_the_numbers_of_the_page(site):
    browser = sign_in_once(site, "ana")
    place = ask(browser).headers["location"]
    rows = list(csv.reader(io.StringIO(browser.get(f"{place}/file.csv").text)))
    assert rows[0] == ["ward", "count", "count_lo", "count_hi"]
    assert [row[0] for row in rows[1:]] == [EVIL_WARD, "A", "B"]
    stored = json.loads(browser.get(f"{place}/file.json").text)
    assert [float(row[1]) for row in rows[1:]] == stored["columns"]["count"]["values"]
    assert browser.get(f"{place}/file.parquet").content[:4] == b"PAR1"
    assert len(browser.get(f"{place}/file.arrow").content) > 100
    chart = browser.get(f"{place}/file.svg")
    assert ET.fromstring(chart.text).tag.endswith("svg")
    for response in (chart, browser.get(f"{place}/file.csv")):
        assert response.headers["content-disposition"].startswith("attachment")
    assert browser.get(f"{place}/file.exe").status_code == 404


def test_several_answers_are_one_download(site):
    browser = sign_in_once(site, "ana")
    keys = [ask(browser, epsilon=each).headers["location"].rpartition("/")[2] for each in ("0.011", "0.012")]
    listed = words_of(browser.get(f"{D}/answers"))
    assert "SELECT ward, COUNT(*)" in listed
    sent = browser.submit(f"{D}/answers", f"{D}/answers", key=keys)
    with zipfile.ZipFile(io.BytesIO(sent.content)) as archive:
        assert archive.namelist() == ["answer-1.csv", "answer-2.csv", "about.json"]
        about = json.loads(archive.read("about.json"))
    assert [each["key"] for each in about["answers"]] == keys
    assert browser.submit(f"{D}/answers", f"{D}/answers").status_code == 303


def test_answers_are_ones_own(site):
    place = ask(sign_in_once(site, "ana")).headers["location"]
    other = sign_in_once(site, "bo")
    for path in (place, f"{place}/file.csv", f"{D}/answers/nothing"):
        assert other.get(path).status_code == 404
    assert words_of(other.get(place)) == words_of(other.get(f"{D}/answers/nothing"))
    assert other.submit(f"{D}/answers", f"{D}/answers", key=place.rpartition("/")[2]).status_code == 404


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"sql": "SELECT COUNT(nope) FROM visits"}, 422, "DP701"),
        ({"sql": "SELECT SUM(cost) FROM visits"}, 422, "bounds"),
        ({"epsilon": "much"}, 400, "ε is not a number"),
        ({"epsilon": "nan"}, 422, "DP101"),
        ({"epsilon": "-1"}, 422, "DP102"),
        ({"how": "error", "error": ""}, 400, "state a margin of error"),
        ({"sql": ""}, 400, "1 to 100,000 letters"),
        ({"epsilon": "1000"}, 409, "DP601"),
        ({"purpose": "a" * 201}, 400, "at most 200"),
    ],
    ids=str,
)
def test_a_refusal_says_what_to_do_and_spends_nothing(site, fields, status, says):
    browser = sign_in_once(site, "bo")
    before = len(site.services.asking.datasets["visits"].ledger)
    response = ask(browser, **fields)
    assert response.status_code == status
    words = words_of(response).casefold()
    assert says.casefold() in words
    assert "spent nothing" in words
    assert len(site.services.asking.datasets["visits"].ledger) == before


def test_what_does_not_fit_says_what_fits(site):
    text = ask(sign_in_once(site, "bo"), epsilon="1000").text
    amount = re.search(r'class="use" data-amount="([\d.]+)" data-how="epsilon"', text)
    assert amount is not None
    assert 0 < float(amount[1]) <= 15


def test_a_name_that_does_not_exist_is_pointed_at(site):
    text = ask(sign_in_once(site, "bo"), "SELECT COUNT(*)\nFROM visits WHERE nope > 1").text
    assert 'data-line="2" data-from="19" data-to="23"' in text


def test_by_error_a_question_is_answered_to_that_error(site):
    browser = sign_in_once(site, "ana")
    sent = ask(browser, "SELECT COUNT(*) FROM visits", how="error", error="40")
    words = words_of(browser.get(sent.headers["location"]))
    low, high = re.search(r"COUNT\(\*\) noise interval -?\d+ (-?\d+) to (-?\d+)", words).groups()
    assert 0 < int(high) - int(low) <= 82


def test_without_a_seat_one_may_plan_and_not_ask(site):
    browser = sign_in_once(site, "cy")
    page = browser.get(f"{D}/ask")
    assert "To ask, you need a seat" in words_of(page)
    assert 'id="ask"' not in page.text
    assert "3 public groups" in words_of(
        browser.submit(f"{D}/ask", f"{D}/plan", sql=COUNT, how="epsilon", epsilon="1")
    )
    assert ask(browser).status_code == 403


# --- curator and auditor ----------------------------------------------------------------------------------


def test_the_overview_says_what_could_be_learnt_and_what_was_spent(site):
    ask(sign_in_once(site, "ana"))
    words = words_of(sign_in_once(site, "cy").get(f"{D}/curate"))
    assert re.search(r"At most \d+ of 100 guesses are right", words)
    assert re.search(r"of the budget remains after \d+ charges?\.", words)
    assert "seat 1 Ana" in words
    assert "Write down the anchor" in words
    assert "enforced by the software" in words


def test_a_curator_lets_somebody_in_who_then_asks(site):
    curator = sign_in_once(site, "cy")
    sent = curator.submit(
        f"{D}/curate/seats", f"{D}/curate/seats", do="add", name="Eve", role="analyst", seat="seat 3"
    )
    link = re.search(r"/enter\?once=(dscr_[\w-]+)", sent.text)[1]
    assert "A link for Eve" in words_of(sent)
    assert link not in curator.get(f"{D}/curate/seats").text
    new = site.browser()
    assert new.submit(f"/enter?once={link}", "/enter/once", once=link).status_code == 303
    assert ask(new).status_code == 303
    person = re.search(
        r'name="person" value="(p_\w+)">\s*<button name="do" value="link">New link for Eve',
        curator.get(f"{D}/curate/seats").text,
    )[1]
    curator.submit(f"{D}/curate/seats", f"{D}/curate/seats", do="empty", seat="seat 3")
    assert ask(new).status_code == 403
    curator.submit(f"{D}/curate/seats", f"{D}/curate/seats", do="seat", seat="seat 3", person=person)
    assert ask(new).status_code == 303
    curator.submit(f"{D}/curate/seats", f"{D}/curate/seats", do="remove", person=person)
    assert new.get(f"{D}/ask").status_code == 303


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"do": "steal"}, 400),
        ({"do": "add", "name": ""}, 400),
        ({"do": "add", "name": "E\tF", "role": "analyst"}, 400),
        ({"do": "add", "name": "E", "role": "operator"}, 400),
        ({"do": "seat", "seat": "seat 1", "person": "p_000000000000"}, 404),
        ({"do": "remove", "person": ""}, 404),
        ({"do": "empty", "seat": "seat 99"}, 404),
    ],
    ids=str,
)
def test_a_wrong_change_of_seats_changes_nothing(site, fields, status):
    curator = sign_in_once(site, "cy")
    before = (site.services.store.people(), site.services.store.seats("visits"))
    assert curator.submit(f"{D}/curate/seats", f"{D}/curate/seats", **fields).status_code == status
    assert (site.services.store.people(), site.services.store.seats("visits")) == before


def test_the_ledger_is_listed_filtered_verified_and_exported_without_answers(site):
    ask(sign_in_once(site, "ana"), "SELECT COUNT(*) FROM visits WHERE age > 77", purpose="winter report")
    auditor = sign_in_once(site, "au")
    page = auditor.get(f"{D}/ledger?text=winter")
    assert page.text.count("<tr id=") == 2
    assert "age > 77" in words_of(page)
    assert "No entry fits" in words_of(auditor.get(f"{D}/ledger?seat=seat 2&text=winter"))
    assert "No entry fits" in words_of(auditor.get(f"{D}/ledger?to=2001-01-01"))
    verified = words_of(auditor.submit(f"{D}/ledger", f"{D}/ledger"))
    assert re.search(r"\d+ entries: intact", verified)
    lines = [json.loads(line) for line in auditor.get(f"{D}/ledger/export").text.splitlines()]
    assert len(lines) == len(site.services.asking.datasets["visits"].ledger)
    assert "discreet.answer" not in str(lines)


def test_the_statement_is_a_page_and_three_files(site):
    auditor = sign_in_once(site, "au")
    words = words_of(auditor.get(f"{D}/statement"))
    assert "ε = 60" in words
    assert "What is not protected" in words
    assert json.loads(auditor.get(f"{D}/statement.json").text)["dataset"] == "visits"
    assert auditor.get(f"{D}/statement.md").text.startswith("# ")
    alone = auditor.get(f"{D}/statement.html")
    assert "default-src 'none'" in alone.headers["content-security-policy"]
    assert "script-src" not in alone.headers["content-security-policy"]
    assert auditor.get(f"{D}/statement.exe").status_code == 404


def test_the_log_says_who_signed_in_and_not_what_was_refused(site):
    ask(sign_in_once(site, "ana"), "SELECT COUNT(secret_typed_by_mistake) FROM visits")
    words = words_of(sign_in_once(site, "au").get(f"{D}/log"))
    assert "The chain of hashes is intact." in words
    assert "Ana visits" in words or "Ana – signed in" in words
    assert "secret_typed_by_mistake" not in words
