# SPDX-License-Identifier: Apache-2.0
"""Every error that discreet raises on purpose, as one tree.

    DiscreetError
    ├── BadParameter          DP1xx  an argument is of the wrong type or out of range (also a ValueError)
    ├── UnsupportedGuarantee  DP2xx  no theorem covers this combination, so it is refused
    │   └── UnitMismatch      DP20x  guarantees that protect different units were combined
    ├── CannotCertify         DP3xx  the numerics cannot prove a useful bound; carries the best bracket found
    ├── BadDescription        DP4xx  a stored description cannot be read
    ├── MissingExtra          DP5xx  an optional dependency is not installed (also an ImportError)
    ├── LedgerError           DP6xx  the ledger refuses: nothing was drawn
    │   ├── OverBudget        DP601  the limit would be exceeded
    │   └── LedgerDamaged     DP602  what is stored is not what was written
    ├── RefusedQuestion       DP7xx  the question cannot be proved private
    ├── EngineFailed          DP80x  the data could not be read or counted; the text never quotes the engine
    ├── ServerError           DP85x  a server refuses a request, or cannot be reached
    └── RefusedTraining       DP9xx  a training loop cannot be proved private

Each error has a code, says what happened, why it matters, how to fix it (a line to paste) and what
was spent. No error ever contains a value that was read from private data: parameters are public,
records are not. `CODES` lists every code with its title; each has a page in the documentation.

An error is a value: pickled, copied, or raised in another process, it is the same error with the
same fields.
"""

from __future__ import annotations

#: How a program is told to stop: not an error of what it does, and never in the place of one.
STOPPED = (KeyboardInterrupt, SystemExit, GeneratorExit)

CODES = {
    "DP101": "a parameter is not a finite number",
    "DP102": "a parameter is out of range",
    "DP103": "a parameter is not a whole number",
    "DP104": "a parameter has the wrong type",
    "DP105": "a word is not one of the allowed choices",
    "DP106": "two distributions do not describe the same outcomes",
    "DP107": "parameters contradict each other, or too few were given",
    "DP108": "an exact result cannot be represented",
    "DP201": "guarantees protect different units",
    "DP202": "no theorem covers this sampling scheme",
    "DP203": "no theorem covers this combination",
    "DP204": "the guarantee does not have this view",
    "DP205": "a mechanism breaks a rule",
    "DP206": "a secret was about to be shown",
    "DP301": "no bound could be certified",
    "DP302": "no parameter reaches the target",
    "DP401": "a stored description cannot be read",
    "DP402": "a stored description is from a newer version",
    "DP403": "a description of a data set is wrong",
    "DP501": "an optional dependency is not installed",
    "DP601": "the limit would be exceeded",
    "DP602": "the ledger is damaged",
    "DP603": "the ledger belongs to something else",
    "DP604": "an idempotency key was used for another question",
    "DP605": "the noise was repeatable",
    "DP606": "the ledger cannot be reached",
    "DP607": "a handle was about to be copied",
    "DP608": "the ledger was charged for another description",
    "DP609": "an address could mean several ledgers",
    "DP610": "a stream cannot go on",
    "DP611": "a period of a stream is not over",
    "DP701": "there is no such column or table",
    "DP702": "this part of SQL is not answered",
    "DP703": "a join cannot be proved private",
    "DP704": "a grouping has no public keys and no way to find them",
    "DP705": "an expression has no provable bounds or types",
    "DP706": "an aggregate is not answered in this form",
    "DP707": "an error would cost more than is allowed",
    "DP708": "a question cannot be asked as a stream",
    "DP801": "the data could not be counted",
    "DP802": "the data could not be opened",
    "DP803": "the data set has to be opened again",
    "DP804": "an answer was not ready in time",
    "DP805": "there are no random bits",
    "DP851": "a request is malformed",
    "DP852": "nobody is signed in",
    "DP853": "a request is not permitted",
    "DP854": "a request is too large or of the wrong type",
    "DP855": "a server is busy",
    "DP856": "a question is not asked over a server",
    "DP857": "a server cannot be reached",
    "DP858": "a server refuses to start",
    "DP859": "a server failed",
    "DP911": "a step has no private gradient",
    "DP912": "the loss is not one number for each record",
    "DP913": "batches are not of a kind that can be accounted for",
    "DP914": "a checkpoint does not fit its run",
    "DP915": "the weights do not move",
    "DP916": "an optimizer does not fit its run",
    "DP917": "training runs in several processes or copies",
    "DP918": "a generator was seeded within a batch",
    "DP919": "a version of PyTorch lacks what training needs",
    "DP921": "a gradient cannot be clipped record by record",
    "DP922": "a model mixes its records",
}


#: Which extra installs a library; each is an entry of `optional-dependencies`.
EXTRAS = {
    "duckdb": "tables",
    "polars": "tables",
    "pyarrow": "tables",
    "sqlglot": "tables",
    "pandas": "pandas",
    "pyspark": "spark",
    "psycopg": "postgres",
    "sklearn": "learn",
    "torch": "torch",
    "fastapi": "server",
    "starlette": "server",
    "uvicorn": "server",
    "jinja2": "server",
    "python_multipart": "server",
    "httpx": "client",
    "matplotlib": "plot",
    "openpyxl": "excel",
}
_CALLED = {"sklearn": "scikit-learn", "torch": "PyTorch"}


class DiscreetError(Exception):
    """The root of every error that discreet raises on purpose: `code`, `what`, `why`, `fix` and
    `spent`.

    >>> import discreet as dp
    >>> try:
    ...     dp.privacy.pure(-1)
    ... except dp.errors.DiscreetError as error:
    ...     print(error.code, error.spent)
    DP102 nothing
    """

    def __init__(self, code: str, what: str, *, why: str, fix: str, spent: str = "nothing") -> None:
        self.code, self.what, self.why, self.fix, self.spent = code, what, why, fix, spent
        super().__init__(code, what)

    def __str__(self) -> str:
        return f"{self.code}  {self.what}\nWhy    {self.why}\nFix    {self.fix}\nSpent  {self.spent}."

    def __reduce__(self) -> tuple[object, ...]:
        # An exception is rebuilt by calling its class with `args`; ours needs more than these. The
        # fields are its state.
        return _blank, (type(self), self.args), self.__dict__


def _blank(kind: type[DiscreetError], args: tuple[object, ...]) -> DiscreetError:
    """An error without its fields, which are set when it is unpickled or copied."""
    return kind.__new__(kind, *args)


class BadParameter(DiscreetError, ValueError):
    """An argument is of the wrong type or out of range; nothing was computed."""


class UnsupportedGuarantee(DiscreetError):
    """No theorem covers this combination; discreet refuses, and never guesses."""


class UnitMismatch(UnsupportedGuarantee):
    """Guarantees about different units, or different neighbouring relations, were combined."""


class CannotCertify(DiscreetError):
    """The numerics cannot prove a useful bound; `bracket` holds the best (lower, upper) found."""

    def __init__(
        self, code: str, what: str, *, why: str, fix: str, bracket: tuple[float, float] | None = None
    ) -> None:
        self.bracket = bracket
        super().__init__(code, what, why=why, fix=fix)


class BadDescription(DiscreetError, ValueError):
    """A stored description is damaged, unknown or from the future."""


class MissingExtra(DiscreetError, ImportError):
    """An optional dependency is needed; the fix is the exact line that installs it."""

    @classmethod
    def of(cls, library: str, what: str = "this", *, why: str = "", instead: str = "") -> MissingExtra:
        """The error for a library that is not installed, by the name that it is imported by.

        >>> MissingExtra.of("psycopg").fix
        "pip install 'discreet[postgres]'"
        """
        package = library.partition(".")[0].removeprefix("_")
        return cls(
            "DP501",
            f"{what} needs {_CALLED.get(package, package)}, which is not installed.",
            why=why or "engines, file formats and figures are optional, so that the core stays small.",
            fix=f"pip install 'discreet[{EXTRAS.get(package, 'all')}]'"
            + (f"   or  {instead}" if instead else ""),
        )


class LedgerError(DiscreetError):
    """The ledger refuses; nothing was drawn."""


class OverBudget(LedgerError):
    """The budget is too small. The refusal depends on earlier charges, never on the data.

    `delta_part` and `loss_part` are the fractions of the stated δ and loss that would fit, where
    they do not fit. `fits` is the greatest cost, to two digits, at which a session admits the same
    question now, in the words in which it was asked: `{"epsilon": 0.1}`. It is empty if nothing
    smaller fits, or if something else than one question was refused.
    """

    delta_part: float | None = None
    loss_part: float | None = None
    # Replaced where something fits, and never changed.
    fits: dict[str, float] = {}  # noqa: RUF012


class LedgerDamaged(LedgerError):
    """What is stored is not what was written: a row was changed, removed, or put back."""


class RefusedQuestion(DiscreetError, ValueError):
    """The question cannot be proved private; nothing was read and nothing was spent."""


class EngineFailed(DiscreetError):
    """The data could not be opened or counted. The message of the engine is never shown: it may
    quote the data.
    """


class ServerError(DiscreetError):
    """A server refuses a request, or cannot be reached; nothing was charged, unless `spent` says
    so.
    """


class RefusedTraining(DiscreetError):
    """A training loop cannot be proved private. The text describes the loop, never a record."""
