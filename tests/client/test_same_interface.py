# SPDX-License-Identifier: Apache-2.0
"""A session on the data and a session with a server: the same calls give the same types and the same errors."""

from __future__ import annotations

import copy

import pytest

import discreet as dp
from discreet.client.requests import ServerRequests
from discreet.ledger import Budget
from discreet.tables.answer.answer import Answer
from discreet.tables.plan.preview import Preview
from tests.chance import no_chance
from tests.server.running import COUNT, config_for, serving, write_visits

pytestmark = no_chance("answers are drawn in the process of an engine, and any will do")

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture(scope="module", params=["local", "remote"])
def session(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    description = write_visits(folder)
    if request.param == "local":
        yield dp.Session(dp.open(description))
        return
    with serving(config_for(folder, description, seats=1)) as running:
        remote = dp.connect(f"{running.url}/d/visits", token=running.tokens["ana"])
        remote.running = running
        yield remote
        remote.close()


def test_an_answer_is_an_answer(session):
    answer = session.sql(BY_WARD, epsilon=0.1, key="k")
    assert isinstance(answer, Answer)
    assert answer.header == ["ward", "n", "n_lo", "n_hi"]
    assert answer.guarantee.epsilon(delta=0) == 0.1
    assert answer.receipt.cost is not None
    again = session.sql(BY_WARD, epsilon=0.1, key="k")
    assert again.rows() == answer.rows()
    assert again.receipt.cost is None


def test_an_expression_is_a_question(session):
    query = session.data.where(dp.col("days") >= 10).group_by("ward").count()
    assert len(session.release(query, epsilon=0.1)) == 2
    assert session.preview(query, epsilon=0.1).cost.epsilon(delta=0) == 0.1


def test_a_preview_costs_nothing(session):
    before = session.budget().spent_fraction
    preview = session.preview(COUNT, error="±50")
    assert isinstance(preview, Preview)
    assert preview.columns[0].error == session.preview(COUNT, error="±50").columns[0].error
    assert session.budget().spent_fraction == before


def test_a_batch_is_paid_as_a_whole(session):
    questions = {"m": (COUNT, {"epsilon": 0.1}), "n": (BY_WARD, {"epsilon": 0.1})}
    answers = session.release_batch(questions)
    assert list(answers) == ["m", "n"]
    assert session.release_batch(questions)["m"].value == answers["m"].value


def test_a_budget_counts(session):
    session.sql(COUNT, epsilon=0.1)
    budget = session.budget()
    assert isinstance(budget, Budget)
    assert 0 < budget.spent_fraction < 1
    assert budget.like(budget.last) > 10
    assert budget.remaining["epsilon"] > 1


def test_an_error_by_its_margin_and_parameters(session):
    assert session.sql(COUNT, error="±100").interval is not None
    assert (
        session.sql("SELECT COUNT(*) FROM visits WHERE ward = ?", epsilon=0.1, parameters=["A"]).value
        is not None
    )


@pytest.mark.parametrize(
    ("ask", "kind", "code"),
    [
        (lambda s: s.sql("SELECT nope FROM visits", epsilon=0.1), dp.errors.RefusedQuestion, "DP701"),
        (lambda s: s.sql(COUNT, epsilon=1e5), dp.errors.OverBudget, "DP601"),
        (lambda s: s.sql(COUNT), dp.errors.BadParameter, "DP107"),
        (lambda s: s.sql(COUNT, epsilon=-1), dp.errors.BadParameter, "DP102"),
        (lambda s: s.release_batch({"x": (COUNT, {"epsilon": 1e5})}), dp.errors.OverBudget, "DP601"),
        (lambda s: [s.sql(COUNT, epsilon=e, key="two") for e in (0.1, 0.2)], dp.errors.LedgerError, "DP604"),
    ],
)
def test_the_same_mistake_is_the_same_error(session, ask, kind, code):
    with pytest.raises(kind) as refused:
        ask(session)
    assert (refused.value.code, refused.value.spent) == (code, "nothing")
    assert refused.value.fix
    if code == "DP601" and isinstance(getattr(refused.value, "fits", None), dict) and refused.value.fits:
        assert 0 < refused.value.fits["epsilon"] < 100


def test_what_overlaps_is_combined_for_free(session):
    once, more = (session.sql(BY_WARD, epsilon=0.1) for _ in range(2))
    assert len(session.combine(once, more)) == 2


def test_it_describes_itself_and_is_not_copied(session):
    assert "patient" in session.describe()
    with pytest.raises(dp.errors.DiscreetError):
        copy.copy(session)
    if not isinstance(session, dp.Session):
        with pytest.raises(dp.errors.ServerError) as refused:
            session.release(dp.Laplace(epsilon=1, sensitivity=1), epsilon=0.1)
        assert refused.value.code == "DP856"


class Flaky:
    """A transport that loses the first responses after they were made."""

    def __init__(self, inner, lost):
        self.inner, self.lost = inner, lost

    def handle_request(self, request):
        import httpx

        response = self.inner.handle_request(request)
        response.read()
        if request.url.path.endswith("/questions") and self.lost:
            self.lost -= 1
            raise httpx.ReadError("lost")
        return response

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.inner.close()


def test_a_lost_response_is_fetched_again_and_paid_for_once(session):
    if isinstance(session, dp.Session):
        pytest.skip("nothing is lost on one machine")
    import httpx

    from discreet.client.remote import RemoteSession

    running, slept = session.running, []
    for lost, works in ((3, True), (5, False)):
        transport = Flaky(httpx.HTTPTransport(), lost)
        requests = ServerRequests(running.url, running.tokens["ana"], transport=transport, sleep=slept.append)
        remote, before = RemoteSession(requests, "visits"), running.charges
        if works:
            assert remote.sql(COUNT, epsilon=0.1).value is not None
        else:
            with pytest.raises(dp.errors.ServerError) as unknown:
                remote.sql(COUNT, epsilon=0.1, key="lost")
            assert (unknown.value.code, unknown.value.spent) == ("DP857", "unknown")
            assert "key='lost'" in unknown.value.fix
            assert session.sql(COUNT, epsilon=0.1, key="lost").receipt.cost is None
        assert running.charges == before + 1
        remote.close()
    assert len(slept) == 7
    assert max(slept) <= 3
