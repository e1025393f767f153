# SPDX-License-Identifier: Apache-2.0
"""`discreet audit`: tests the claimed guarantee of a mechanism or function. Exits with status 5 if
it is refuted.
"""

from __future__ import annotations

import json as json_module
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet import check
from discreet.cli import options
from discreet.cli.numbers import number, whole
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows, progress_bar
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.audit.report import AuditReport
    from discreet.privacy.guarantee import Guarantee

#: The exit status for a refuted claim.
REFUTED = 5
_CLAIMS = {"eps": check.not_negative, "delta": check.delta, "rho": check.positive, "mu": check.positive}
_EXAMPLE = "--claim eps=1"

Subject = Annotated[
    str, typer.Argument(metavar="MODULE:NAME", help="A mechanism, or a function of the data.")
]
Claim = Annotated[
    list[str] | None,
    options.option("--claim", "CLAIM", "eps=1 · eps=1,delta=1e-6 · rho=0.5 · mu=1. May be repeated."),
]
Inputs = Annotated[
    str | None,
    options.option(
        "--inputs", "MODULE:NAME|JSON", "Two neighbouring inputs; by default the worst known pair."
    ),
]
Trials = Annotated[str, options.option("--trials", "N", "Runs on each input.")]
Confidence = Annotated[str, options.option("--confidence", "P", "The confidence of the whole report.")]
LookAt = Annotated[str, options.option("--look-at", "WHAT", "everything, values or bits.")]
Workers = Annotated[str | None, options.option("--workers", "N", "Processes.")]


def audit(
    subject: Subject,
    *,
    claim: Claim = None,
    inputs: Inputs = None,
    trials: Trials = "100000",
    confidence: Confidence = "0.999",
    look_at: LookAt = "everything",
    workers: Workers = None,
    json: options.Json = False,
) -> None:
    """Test the claimed guarantee of a mechanism on two neighbouring inputs.

    discreet audit mine.py:noisy_mean --inputs mine:pair --claim eps=1

    Runs the mechanism many times on both inputs and measures how well the outputs can be told
    apart. Exits with status 5 if a claim is refuted. Status 0 does not prove a claim.
    """
    from discreet.audit import audit as run_audit

    claims = [read_claim(text) for text in claim or []]
    mechanism = load(subject)
    with progress_bar("drawing", visible=not json) as progress:
        report = run_audit(
            mechanism,
            *_pair(mechanism, inputs),
            claim=claims[0] if claims else None,
            trials=whole("--trials", trials, check.whole, "--trials 100000"),
            confidence=number("--confidence", confidence, check.inner_probability, "--confidence 0.999"),
            look_at=look_at,
            workers=None if workers is None else whole("--workers", workers, check.whole, "--workers 2"),
            progress=progress,
        )
    claims = claims or ([report.claim] if report.claim is not None else [])
    refuted = [claimed for claimed in claims if report.refutes(claimed)]
    if json:
        print_json(_report_facts(report, claims))
    else:
        others = [
            row for claimed in claims[1:] for row in (("claim", f"{claimed!r}"), *report.verdict(claimed))
        ]
        print_rows([*report.rows(), *others])
    if refuted:
        raise typer.Exit(REFUTED)


def read_claim(text: str) -> Guarantee:
    """A claim in words: eps=1, eps=1,delta=1e-6, rho=0.5, mu=1."""
    from discreet.privacy import constructors

    parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
    amounts = {
        name: number(name, word, _CLAIMS[name], _EXAMPLE) for name, word in parts.items() if name in _CLAIMS
    }
    match sorted(amounts), len(amounts) == len(parts):
        case ["eps"], True:
            return constructors.pure(check.positive(eps=amounts["eps"]))
        case ["delta", "eps"], True:
            return constructors.approximate(amounts["eps"], amounts["delta"])
        case ["rho"], True:
            return constructors.concentrated(amounts["rho"])
        case ["mu"], True:
            return constructors.gaussian(1 / amounts["mu"])
    raise BadParameter(
        "DP105",
        f"{text!r} is not a claim.",
        why="a claim is eps, eps with delta, rho (zero-concentrated) or mu (Gaussian).",
        fix=f"{_EXAMPLE}   --claim eps=1,delta=1e-6   --claim rho=0.5   --claim mu=1",
    )


def load(name: str) -> Any:
    """The thing that MODULE:NAME names; modules are looked for here first, and a .py file may be
    named too.
    """
    module, _, attribute = name.removesuffix(":").partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        target = import_module(module.removesuffix(".py").replace("/", "."))
        for part in attribute.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadParameter(
            "DP105",
            f"{name} cannot be loaded: {error}.",
            why="the audit runs the mechanism that is named.",
            fix="module:name of something that  python -c 'import module'  finds from this folder",
        ) from None
    return target


def _pair(mechanism: Any, inputs: str | None) -> tuple[object, object]:
    from discreet.audit import worst_pair

    if inputs is None:
        return worst_pair(mechanism)
    try:
        values = json_module.loads(inputs) if inputs.lstrip().startswith("[") else load(inputs)
        first, second = values
    except (TypeError, ValueError) as error:
        if isinstance(error, BadParameter):
            raise
        raise BadParameter(
            "DP107",
            f"--inputs {inputs} are not two inputs.",
            why="an audit compares the outputs on two neighbouring inputs.",
            fix="--inputs '[0, 1]'   or   --inputs module:pair",
        ) from None
    return first, second


def _report_facts(report: AuditReport, claims: list[Guarantee]) -> dict[str, object]:
    verdicts = [_verdict(report, claim) for claim in claims]
    return {"command": "audit", **json_module.loads(report.to_json()), "claims": verdicts}


def _verdict(report: AuditReport, claim: Guarantee) -> dict[str, object]:
    refuted = report.refutes(claim)
    return {
        "claim": json_module.loads(claim.to_json()),
        "what": repr(claim),
        "refuted": refuted,
        "witness": report.claim_witness(claim).to_dict() if refuted else None,
    }
