"""The options of `cacp comply run`."""

from dataclasses import fields

from cli.comply_options import LimitOptions, NodeOptions, ReportOptions, SubjectOptions
from tests.cli.run import cacp


def test_every_field_is_an_option_of_the_command() -> None:
    shown = cacp("comply", "run", "--help").output
    for group in (SubjectOptions, NodeOptions, LimitOptions, ReportOptions):
        for field in fields(group):
            option = field.name.replace("_", "-").removesuffix(
                "s" if field.name == "agents" else ""
            )
            assert f"--{option}" in shown
