# SPDX-License-Identifier: Apache-2.0
"""A session asks questions of private data: it charges the ledger, then draws the answer.

    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1, delta=1e-6), ledger="visits.ledger")
    session.preview("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.2)     # spends nothing
    session.sql("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.2)
    wards = ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", {"epsilon": 0.2})
    session.release_batch({"wards": wards})
    session.budget().remaining_fraction

session.py    Session: what can be asked                                        ◄ read this first
answering.py  one answer, at a cost or by its error
account.py    who asks, and the ledger that is charged; drawn answers are stored
compiler.py   questions to mechanisms; at_most="auto" is chosen once
batch.py      many questions, all or none
synthesis.py  a synthetic copy; synthesis_methods.py with it
validate.py   questions, costs and keys, validated
fitting.py    the Fix of a refusal for lack of budget: a cost that is admitted
stream.py     a question that is answered again every period; open_stream.py, stream_methods.py and stream_file.py with it
response.py   questions that all return at the same time after they were asked

**Guarantee.** Every answer was charged to the ledger, and the charge was on disk, before anything
was drawn. A charge is never given back: not for an error, a time-out or a refusal. All answers that
the ledger admits together keep the guarantee of its limit, for a reader of all of them, and however
the questions were chosen (`discreet.ledger.limit` names the theorem).

What would break it: a second session on the same people with another ledger; a description of the
data set that is not true (a "public" table made from private data); sharing anything else that was
computed from the rows.
"""

from __future__ import annotations

from discreet.session.session import Session
from discreet.session.stream import Stream, StreamPreview
from discreet.session.validate import QuestionCost, limit_of

__all__ = ["QuestionCost", "Session", "Stream", "StreamPreview", "limit_of"]
