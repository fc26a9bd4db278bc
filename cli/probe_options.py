"""How much `cacp probe` sends, and with what."""

from dataclasses import dataclass
from typing import Annotated

import typer

from schemas.plain import one_line


@dataclass(frozen=True)
class ProbeOptions:
    """How much is sent, and with what."""

    cases: Annotated[
        int,
        typer.Option(
            "--cases",
            min=1,
            help="Requests to each endpoint; more if its contract has more constraints to break.",
        ),
    ] = 100
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Draws the same cases again; random by default."),
    ] = None
    rate: Annotated[
        float,
        typer.Option("--rate", min=0, help="Requests each second; 0 for as fast as it answers."),
    ] = 0
    time_limit: Annotated[float, typer.Option("--time-limit", min=1, help="Seconds for all.")] = 300
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds for each answer.")
    ] = 10
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="'NAME: VALUE'",
            help="Send this header along, such as credentials; repeatable.",
        ),
    ] = None
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="NAME=VALUE",
            help="The value of a parameter in each request, such as the id of what is there; "
            "repeatable.",
        ),
    ] = None
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="COMMAND",
            help="Run this first, in a shell, to prepare the provider. Lines that it prints as "
            "NAME: VALUE are sent along as headers.",
        ),
    ] = None
    serve: Annotated[
        str | None,
        typer.Option(
            "--serve",
            metavar="COMMAND",
            help="Start the provider with this, in a shell and in this folder, wait until the base "
            "URL answers, and end it after the probe. Nothing may answer there before.",
        ),
    ] = None
    allow_skipped: Annotated[
        bool,
        typer.Option(
            "--allow-skipped",
            help="Let the rest pass without the operations that can't be tried this way, such as "
            "webhooks and subscriptions.",
        ),
    ] = False
    allow_mock: Annotated[
        bool,
        typer.Option("--allow-mock", help="Probe a mock too, which proves nothing."),
    ] = False


def parsed_header(text: str) -> tuple[str, str]:
    """The name and value of a header. Raises ValueError.

    >>> parsed_header("X-Team: coupons")
    ('X-Team', 'coupons')
    """
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    known = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    if not colon or not known or not value.isprintable() or not value.isascii():
        raise ValueError(f"a header is like 'X-Team: coupons'; {one_line(name, 40)} is none")
    return name, value


def parsed_value(text: str) -> tuple[str, str]:
    """The name and value of a parameter. Raises ValueError."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"a value is like id=7; {one_line(text, 40)} is none")
    return name, value
