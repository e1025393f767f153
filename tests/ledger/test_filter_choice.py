# SPDX-License-Identifier: Apache-2.0
"""Which row of a menu is paid, and whether any is: floats leave rows out, and never the one that fractions would choose."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.ledger import State
from discreet.ledger.costs import Amounts, CostRow, Menu, menu
from discreet.ledger.filters import Filter
from discreet.ledger.limit import pay_row
from discreet.ledger.pricing import Track

many_examples = settings(max_examples=800, deadline=None)
WHOLE = Fraction(1)
GREATEST = Fraction(1.7976931348623157e308)


def exact(limit, state, cost, share=WHOLE):
    """The state and the row by fractions alone, from what the docstring of `Filter._room` says."""
    for is_last in (False, True):
        best = None
        for row in cost.rows:
            if row.name.startswith("last") != is_last:
                continue
            paid = pay_row(state, row)
            account = _free(paid["delta"], share * limit.leak)
            tracks = [_free(paid[track.name], share * track.total) for track in limit.tracks]
            rooms = sorted((account * track for track in tracks if account >= 0 and track >= 0), reverse=True)
            if rooms and (best is None or rooms > best[0]):
                best = rooms, paid, row
        if best:
            return best[1:]
    return None


def _free(spent, total):
    if total == 0:
        return Fraction(1) if spent == 0 else -math.inf
    return -math.inf if spent == math.inf else 1 - spent / total


def made(leak, totals):
    """A filter with any totals, whether they prove something or not."""
    limit = object.__new__(Filter)
    tracks = tuple(
        Track("epsilon" if at == 0 else "renyi", total, 1.0 if at == 0 else 1.0 + at)
        for at, total in enumerate(totals)
    )
    vars(limit).update(sort="lanes", epsilon=WHOLE, delta=leak, leak=leak, tracks=tracks)
    return limit


magnitudes = st.one_of(
    st.just(0),
    st.integers(-9, 4),
    st.sampled_from(
        [
            -400,
            -324,
            -310,
            -291,
            -289,
            -39,
            -38,
            -37,
            -29,
            -26,
            -25,
            -24,
            -16,
            -9,
            289,
            290,
            291,
            307,
            308,
            309,
            400,
        ]
    ),
)
sizes = st.builds(lambda size, by: Fraction(by, 7) * Fraction(10) ** size, magnitudes, st.integers(1, 70))
totals = st.one_of(sizes, sizes, sizes, st.just(Fraction(0)), st.just(GREATEST), st.just(Fraction(5e-324)))
#: How far from an edge: at it, by less than a float sees, about as much as the margin, and clearly.
nudges = st.builds(
    lambda sign, size: sign * size,
    st.sampled_from([-1, 1]),
    st.sampled_from(
        [Fraction(0), *(Fraction(1, 10**k) for k in (40, 18, 16, 15, 9)), Fraction(3, 10**9), Fraction(1, 50)]
    ),
)
parts = st.one_of(
    st.sampled_from([Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(2)]),
    st.fractions(0, 2, max_denominator=50),
)


@st.composite
def situations(draw):
    """A filter, a state and a menu; many rows end on an edge of a total, or next to another row."""
    leak, sums = draw(totals), draw(st.lists(totals, min_size=1, max_size=3))
    share = draw(st.sampled_from([WHOLE, WHOLE, Fraction(1), Fraction(1, 3), Fraction(1, 10**9)]))
    limit = made(leak, sums)
    total = {"delta": share * leak} | {track.name: share * track.total for track in limit.tracks}
    state = {name: draw(_amount(total[name], Fraction(0))) for name in total}
    rows = []
    for at in range(draw(st.integers(1, 6))):
        amounts = {name: draw(_amount(total[name], state[name])) for name in total}
        rows.append(
            CostRow(draw(st.sampled_from(["plain", "truncated", "last point"])) + f" {at}", Amounts(amounts))
        )
        if draw(st.booleans()):  # its twin, or nearly so
            twin = {name: _moved(of, total[name] * draw(nudges)) for name, of in amounts.items()}
            rows.append(CostRow(f"twin {at}", Amounts(twin)))
    return limit, State(state), menu(draw(st.permutations(rows))), share


def _moved(amount, by):
    return amount if amount == math.inf else max(Fraction(0), amount + by)


def _amount(total, spent):
    if spent == math.inf:
        return st.just(Fraction(0))
    towards = st.builds(lambda part, by: max(Fraction(0), total * (part + by) - spent), parts, nudges)
    return st.one_of(towards, towards, towards, st.just(math.inf), sizes)


@many_examples
@given(situations())
def test_floats_choose_what_fractions_choose(situation):
    limit, state, cost, share = situation
    assert limit.pay_best(state, cost, share) == exact(limit, state, cost, share)


@many_examples
@given(situations())
def test_what_floats_leave_out_is_closed_or_beaten(situation):
    limit, state, cost, share = situation
    rows = list(cost.rows)
    kept = limit._contenders(state, Menu(rows, list(state)), share)
    rooms = {row: limit._room(pay_row(state, row), share) for row in rows}
    best = max(rooms.values())
    assert all(not rooms[row] or rooms[row] < best for row in rows if row not in kept)
    assert not best or any(rooms[row] == best for row in kept)


#: Costs of which many fit; some rows are nearly as good as others.
small = st.builds(
    lambda part, by: max(Fraction(0), Fraction(part, 1000) + by), st.integers(0, 60), nudges
) | st.just(math.inf)


@st.composite
def histories(draw):
    """A filter, and menus that are paid from it in turn."""
    leak, sums = draw(st.sampled_from([Fraction(0), WHOLE, Fraction(1, 10**6)])), [WHOLE, Fraction(3, 7)]
    limit = made(leak, sums[: draw(st.integers(1, 2))])
    total = {"delta": leak} | {track.name: track.total for track in limit.tracks}
    costs = []
    for _ in range(draw(st.integers(1, 3))):
        rows = [
            CostRow(
                f"row {at}",
                Amounts({name: total[name] * draw(small) if total[name] else Fraction(0) for name in total}),
            )
            for at in range(draw(st.integers(2, 4)))
        ]
        costs.append(menu(rows))
    return limit, draw(st.lists(st.sampled_from(costs), min_size=20, max_size=60))


@settings(max_examples=60, deadline=None)
@given(histories())
def test_a_row_that_leads_is_the_one_that_fractions_choose(history):
    limit, costs = history
    state = limit.start()
    for cost in costs:
        paid = limit.pay_best(state, cost)
        assert paid == exact(limit, state, cost)
        state = paid[0] if paid else state


def test_the_lead_of_a_row_is_used_and_ends():
    limit = made(Fraction(0), [WHOLE, WHOLE])
    cheap = {"delta": Fraction(0), "epsilon": Fraction(1, 100), "renyi 2.0": Fraction(0)}
    dear = {"delta": Fraction(0), "epsilon": Fraction(1, 2), "renyi 2.0": Fraction(1, 2)}
    cost = menu([CostRow("dear", Amounts(dear)), CostRow("cheap", Amounts(cheap))])
    state, leads = limit.start(), []
    for _ in range(40):
        state, row = limit.pay_best(state, cost)
        assert row.name == "cheap"
        leads += cost.menus[limit._names_in_order][0].leads.values()
        state = state.plus({"renyi 2.0": Fraction(1, 100)})
    assert 1 < len({id(lead) for lead in leads}) < 10
    assert all(lead.row.name == "cheap" for lead in leads)


def test_a_total_at_the_end_of_floats_is_told_by_fractions():
    # both halves are rounded up, their sum is no float any more, and still it is exactly the total
    half = GREATEST / 2
    limit = made(WHOLE, [GREATEST])
    state = State({"delta": Fraction(0), "epsilon": half + Fraction(2) ** 969})
    full = CostRow("full", Amounts({"delta": Fraction(0), "epsilon": half - Fraction(2) ** 969}))
    over = CostRow("over", Amounts({"delta": Fraction(0), "epsilon": half}))
    limit_beyond = made(WHOLE, [2 * GREATEST])
    assert limit.pay_best(state, menu([over, full])) == exact(limit, state, menu([over, full]))
    assert limit_beyond.pay_best(state, menu([over, full]))[1] is full


def test_one_part_in_a_billion_of_a_billion_is_told():
    limit = made(Fraction(0), [WHOLE])
    state = State({"delta": Fraction(0), "epsilon": Fraction(1, 3)})
    rows = [
        CostRow(name, Amounts({"delta": Fraction(0), "epsilon": Fraction(2, 3) + by}))
        for name, by in (("over", Fraction(1, 10**18)), ("just", Fraction(0)), ("less", Fraction(-1, 10**18)))
    ]
    assert limit.pay_best(state, menu(rows))[1].name == "less"
    assert limit.pay_best(state, menu(rows[:2]))[1].name == "just"
    assert limit.pay_best(state, menu(rows[:1])) is None


def test_products_that_floats_would_order_wrongly():
    leak, total, wrong = Fraction(3, 7), Fraction(10, 13), 0
    limit = made(leak, [total])
    nothing = State({"delta": Fraction(0), "epsilon": Fraction(0)})
    for one in range(1, 997, 41):
        for other in range(2, 1009, 47):
            free, track = Fraction(one, 997), Fraction(other, 1009)
            # the same product the other way round, and a little more of it
            rows = [
                CostRow(name, Amounts({"delta": leak * (1 - account), "epsilon": total * (1 - open_ - more)}))
                for name, account, open_, more in (
                    ("less", free, track, Fraction(0)),
                    ("more", track, free, Fraction(1, 10**20)),
                )
            ]
            assert limit.pay_best(nothing, menu(rows))[1].name == "more"
            about = [
                (1 - float(row.amounts["delta"]) / float(leak))
                * (1 - float(row.amounts["epsilon"]) / float(total))
                for row in rows
            ]
            wrong += about[0] > about[1]
    assert wrong > 50  # so this does ask something of the margin


def test_a_total_that_is_rounded_up_counts_as_rounded():
    # one third to the power of 400 is nothing, but as a total it is rounded up to 2⁻¹²⁸, a sixteenth of this limit
    limit, dust = made(WHOLE, [Fraction(5, 10**38)]), Fraction(1, 3**400)
    state = State({"delta": Fraction(0), "epsilon": dust})
    stays = CostRow("stays", Amounts({"delta": Fraction(0), "epsilon": Fraction(0)}))
    rounds = CostRow("rounds", Amounts({"delta": Fraction(0), "epsilon": Fraction(1, 10**39) - dust}))
    assert limit.pay_best(state, menu([stays, rounds])) == exact(limit, state, menu([stays, rounds]))
    assert limit.pay_best(state, menu([stays, rounds]))[1] is rounds


def _between(low, high, part):
    return low if math.inf in (low, high) else low + part * (high - low)


@settings(max_examples=200, deadline=None)
@given(
    histories(),
    st.lists(st.sampled_from([Fraction(0), Fraction(1, 2), WHOLE, WHOLE]), min_size=3, max_size=3),
)
def test_a_repetition_is_what_fractions_choose_again_and_again(history, places):
    limit, costs = history
    state = limit.start()
    for cost in costs:
        paid = limit.pay_best(state, cost)
        if paid is None:
            continue
        state = paid[0]
        for other in {id(other): other for other in costs}.values():
            repetition = limit.repetition(state, other)
            if repetition is not None:
                places_by_name = zip(state.items(), places, strict=False)
                later = State(
                    {
                        name: _between(of, repetition.until.get(name, of), part)
                        for (name, of), part in places_by_name
                    }
                )
                assert exact(limit, later, other)[0] == later.plus(repetition.added)


def test_a_repetition_ends_before_another_row_is_better():
    limit = made(Fraction(0), [WHOLE, WHOLE])
    rows = [
        CostRow(name, Amounts({"delta": Fraction(0), "epsilon": epsilon, "renyi 2.0": renyi}))
        for name, epsilon, renyi in [
            ("first", Fraction(1, 100), Fraction(2, 100)),
            ("second", Fraction(2, 100), Fraction(1, 100)),
        ]
    ]
    cost = menu(rows)
    state = State({"delta": Fraction(0), "epsilon": Fraction(0), "renyi 2.0": Fraction(1, 200)})
    assert limit.pay_best(state, cost)[1] is rows[0]
    repetition = limit.repetition(state, cost)
    assert repetition.added == rows[0].amounts
    assert Fraction(1, 1000) < repetition.until["epsilon"] < Fraction(1, 200)
    last = State({**state, "epsilon": repetition.until["epsilon"]})
    assert exact(limit, last, cost)[1] is rows[0]
    beyond = State({**state, "epsilon": Fraction(1, 100)})
    assert exact(limit, beyond, cost)[1] is rows[1]
    assert limit.repetition(beyond, cost) is None, "what led before does not lead here"
    assert limit.repetition(limit.start(), cost) is None, "nor is it known to lead where less was spent"
