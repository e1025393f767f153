# SPDX-License-Identifier: Apache-2.0
"""All commands together, and what they have in common: errors with a code, and exit statuses.

0  done
2  bad input: an argument is wrong, missing or contradicts another            DP1xx, DP4xx, DP603, DP604, DP802, DP858
3  refused: over the limit; no theorem, no certified bound, a part is missing DP601, DP2xx, DP3xx, DP5xx, DP6xx, DP801
4  refused: the question cannot be proved private                             DP7xx
5  an audit refuted a claim, a statement is not true, or a ledger is damaged  DP602
"""

from __future__ import annotations

import io
import json as text
import platform
import sys
from difflib import get_close_matches
from importlib import metadata
from typing import Annotated, cast

import typer

from discreet.cli.account import account
from discreet.cli.audit import audit
from discreet.cli.budget import budget
from discreet.cli.demo import demo
from discreet.cli.describe import describe
from discreet.cli.dpsgd import dpsgd
from discreet.cli.ledger import export, show, verify
from discreet.cli.login import login
from discreet.cli.options import DEFAULT, DefaultCommand, Json, add_command
from discreet.cli.plan import plan
from discreet.cli.query import query
from discreet.cli.release import release
from discreet.cli.report import error_object, print_json
from discreet.cli.serve import add_person, backup, check, list_people, serve
from discreet.cli.statement import statement
from discreet.cli.statement import verify as verify_statement
from discreet.cli.stream import open_command, release_command, show_command
from discreet.cli.synthesize import synthesize
from discreet.cli.terminal import print_error
from discreet.errors import (
    BadDescription,
    BadParameter,
    DiscreetError,
    LedgerDamaged,
    RefusedQuestion,
)

#: What Typer raises for words that it cannot parse; its name has moved between versions of it.
_UsageError = cast("type[Exception]", typer.BadParameter.__base__)
_SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    context_settings=_SETTINGS,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
_account = typer.Typer(
    cls=DefaultCommand,
    help="Compute the guarantee of mechanisms that run together.",
    no_args_is_help=True,
    context_settings=_SETTINGS,
    add_completion=False,
)
add_command(_account, DEFAULT, account)
add_command(_account, "dpsgd", dpsgd)
_ledger = typer.Typer(
    help="Read a ledger: list its charges, verify it, export it.",
    no_args_is_help=True,
    context_settings=_SETTINGS,
    add_completion=False,
)
add_command(_ledger, "show", show)
add_command(_ledger, "verify", verify)
add_command(_ledger, "export", export)

_statement = typer.Typer(
    cls=DefaultCommand,
    help="Write or verify a privacy statement: what was guaranteed and what was released.",
    context_settings=_SETTINGS,
    add_completion=False,
)
add_command(_statement, DEFAULT, statement)
add_command(_statement, "verify", verify_statement)

_stream = typer.Typer(
    help="Publish the answer to one question every period, for one charge.",
    no_args_is_help=True,
    context_settings=_SETTINGS,
    add_completion=False,
)
add_command(_stream, "open", open_command)
add_command(_stream, "release", release_command)
add_command(_stream, "show", show_command)

_serve = typer.Typer(
    cls=DefaultCommand,
    help="Serve private tables to people who may not see the rows.",
    no_args_is_help=True,
    context_settings=_SETTINGS,
    add_completion=False,
)
add_command(_serve, DEFAULT, serve)
add_command(_serve, "check", check)
add_command(_serve, "backup", backup)

_people = typer.Typer(
    help="Let people into a server, on its machine.",
    no_args_is_help=True,
    context_settings=_SETTINGS,
    add_completion=False,
)
add_command(_people, "add", add_person)
add_command(_people, "list", list_people)


def version(*, json: Json = False) -> None:
    """Show the version."""
    versions = {"discreet": metadata.version("discreet"), "python": platform.python_version()}
    print(text.dumps(versions) if json else f"discreet {versions['discreet']}")


add_command(app, "demo", demo)
add_command(app, "describe", describe)
add_command(app, "plan", plan)
add_command(app, "query", query)
add_command(app, "release", release)
add_command(app, "synthesize", synthesize)
add_command(app, "budget", budget)
app.add_typer(_stream, name="stream")
app.add_typer(_ledger, name="ledger")
app.add_typer(_statement, name="statement")
app.add_typer(_account, name="account")
add_command(app, "audit", audit)
app.add_typer(_serve, name="serve")
app.add_typer(_people, name="people")
add_command(app, "login", login)
add_command(app, "version", version)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    *,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Differential privacy from the description of the data to the released answer.

    Start with  discreet demo  or  discreet describe visits.parquet.
    """
    if show_version:
        version()
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        ctx.get_help()


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its status."""
    words = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without Greek shows ? for ε, and no traceback.
            stream.reconfigure(errors="replace")
    try:
        code = app(words, prog_name="discreet", standalone_mode=False)
    except DiscreetError as error:
        code = _print_refusal(error, words)
    except _UsageError as error:
        code = _print_refusal(_usage_error(error), words)
    except typer.Abort:
        code = 130
    sys.exit(code or 0)


def _usage_error(error: Exception) -> BadParameter:
    """The error of words that are no command."""
    missing = type(error).__name__ in {"BadOptionUsage", "MissingParameter", "NoArgsIsHelpError"}
    message = " ".join(str(getattr(error, "format_message", error.__str__)()).split()).rstrip(".?")
    message = message or "the command is not complete"
    command = " ".join(getattr(getattr(error, "ctx", None), "command_path", "discreet").split())
    meant = f"{word}   or   " if (word := _nearest_word(error)) else ""
    return BadParameter(
        "DP107" if missing else "DP105",
        f"{message[:1].lower()}{message[1:]}{'?' if 'Did you mean' in message else '.'}",
        why="discreet never ignores a word of a command.",
        fix=f"{meant}{command} --help  lists the commands and flags",
    )


def _nearest_word(error: Exception) -> str:
    """The flag or the command that was probably meant: one that begins like it, or is close to it."""
    word = str(getattr(error, "option_name", "") or getattr(error, "cmd_name", "") or "")
    known = [str(name) for name in getattr(error, "possibilities", None) or ()]
    same_start = [name for name in known if word and name.startswith(word)]
    return (same_start or get_close_matches(word, known, n=1, cutoff=0.0) or [""])[0]


def _print_refusal(error: DiscreetError, words: list[str]) -> int:
    if "--json" in words:
        print_json({"error": error_object(error)})
    else:
        print_error(error)
    return _exit_code(error)


def _exit_code(error: DiscreetError) -> int:
    if isinstance(error, BadParameter | BadDescription) or error.code in {"DP603", "DP604", "DP802", "DP858"}:
        return 2
    if isinstance(error, LedgerDamaged):
        return 5
    return 4 if isinstance(error, RefusedQuestion) else 3
