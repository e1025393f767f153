# SPDX-License-Identifier: Apache-2.0
"""All commands together, and what they have in common: errors with a code, and exit codes.

0  done
2  bad input: an argument is wrong, missing or contradicts another            DP1xx, DP4xx
3  refused: no theorem, no certified bound, or a dependency is not installed  DP2xx, DP3xx, DP5xx
5  an audit refuted a claim
"""

from __future__ import annotations

import io
import sys
from typing import Annotated, cast

import typer

from discreet.cli.account import Ordered, account
from discreet.cli.audit import audit
from discreet.cli.demo import demo
from discreet.cli.dpsgd import dpsgd
from discreet.cli.report import print_json
from discreet.cli.terminal import print_error
from discreet.cli.version import version
from discreet.errors import BadDescription, BadParameter, CannotCertify, DiscreetError

#: What Typer raises for words that it cannot parse; its name has moved between versions of it.
_UsageError = cast("type[Exception]", typer.BadParameter.__base__)
_SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    add_completion=False,
    context_settings=_SETTINGS,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
_account = typer.Typer(
    cls=Ordered,
    subcommand_metavar="[dpsgd …]",
    callback=account,
    invoke_without_command=True,
    context_settings=_SETTINGS,
    add_completion=False,
)
_account.command("dpsgd")(dpsgd)
app.add_typer(_account, name="account")
app.command("audit")(audit)
app.command("demo")(demo)
app.command("version")(version)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    *,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    """Differential privacy from the description to the promise.

    Start with  discreet demo  or  discreet account --help.
    """
    if show_version:
        version()
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        ctx.get_help()


def main(arguments: list[str] | None = None) -> None:
    """Run the command and leave with its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek shows ? for ε, and no traceback
    try:
        code = app(words, prog_name="discreet", standalone_mode=False)
    except DiscreetError as error:
        code = _refuse(error, words)
    except _UsageError as error:
        code = _refuse(_unreadable(error), words)
    except typer.Abort:
        code = 130
    sys.exit(code or 0)


def _unreadable(error: Exception) -> BadParameter:
    """Words that are no command, in the voice of every other error."""
    missing = type(error).__name__ in {"BadOptionUsage", "MissingParameter"}
    message = " ".join(str(getattr(error, "format_message", error.__str__)()).split()).rstrip(".?")
    command = getattr(getattr(error, "ctx", None), "command_path", "discreet")
    return BadParameter(
        "DP107" if missing else "DP105",
        f"{message[:1].lower()}{message[1:]}{'?' if 'Did you mean' in message else '.'}",
        why="a flag that is dropped in silence would describe something else than what was run.",
        fix=f"{command} --help  lists what there is",
    )


def _refuse(error: DiscreetError, words: list[str]) -> int:
    if "--json" in words:
        print_json({"error": _as_object(error)})
    else:
        print_error(error)
    return 2 if isinstance(error, BadParameter | BadDescription) else 3


def _as_object(error: DiscreetError) -> dict[str, object]:
    bracket = error.bracket if isinstance(error, CannotCertify) else None
    said = {name: getattr(error, name) for name in ("code", "what", "why", "fix", "spent")}
    return said | {"bracket": list(bracket) if bracket else None}
