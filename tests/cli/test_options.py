"""Options in groups are options as all others are."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from cli.options import grouped


@dataclass(frozen=True)
class Limits:
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Tests at a time.")] = 4
    words: Annotated[list[str] | None, typer.Option("--word")] = None


app = typer.Typer()


@app.command()
@grouped
def count(
    name: Annotated[str, typer.Argument(help="A name.")],
    limits: Limits,
    loud: Annotated[bool, typer.Option("--loud")] = False,
) -> None:
    """Count it."""
    typer.echo(f"{name} {limits} {loud}")


def run(*args: str) -> str:
    return CliRunner().invoke(app, args).output


def test_fields_are_options_with_their_defaults() -> None:
    assert run("x") == "x Limits(jobs=4, words=None) False\n"
    given = run("x", "-j", "2", "--word", "a", "--word", "b", "--loud")
    assert given == "x Limits(jobs=2, words=['a', 'b']) True\n"


def test_help_shows_the_fields_and_the_docstring() -> None:
    shown = run("--help")
    assert "Tests at a time." in shown
    assert "Count it." in shown
    assert "A name." in shown


def test_a_wrong_value_names_its_option() -> None:
    assert "'--jobs'" in run("x", "--jobs", "many").replace("\n", "")
