"""The receipts of a contract for a terminal: proof told from word."""

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from cli.times import clock
from schemas.plain import one_line
from schemas.receipt_calls import lack_of
from schemas.verification import VERIFIED_BY

Json = dict[str, Any]
SHOWN_MAX = 20


def proof_lines(proof: Json | None, names: Mapping[str, str]) -> list[RenderableType]:
    """What verifies the current version, each receipt of it and what it proves, and what lacks one.
    Nothing where a word verifies it and there is no receipt. `proof` is the answer of
    cacp/receipt/list, `names` are those of the repos by id."""
    if proof is None or (proof["verificationPolicy"] == "word" and not proof["receipts"]):
        return []
    policy = VERIFIED_BY[proof["verificationPolicy"]]
    lines: list[RenderableType] = [Text(f"Verified by {policy}.", "dim")]
    lines += [_receipt(listed, names) for listed in proof["receipts"][-SHOWN_MAX:]]
    for side in proof["unproven"]:
        name = names.get(side["repoId"], side["repoId"])
        lack = lack_of(side, lambda text: one_line(text, 300))
        tone = "red" if "failure" in side else "yellow"
        lines.append(Text(f"{one_line(name)} as {side['side']}: {lack}", tone))
    return lines


def _receipt(listed: Json, names: Mapping[str, str]) -> Text:
    ran = listed["receipt"]
    name = one_line(names.get(ran["repo"], ran["repo"]))
    what = one_line(ran.get("command") or ran["tool"], 120)
    outcome = ran["outcome"].replace("_", " ")
    tone = "green" if listed["proves"] else "red"
    line = Text.assemble(
        (f"{clock(listed['recordedAt'])}  ", "dim"),
        (f"{name} as {ran['side']}: ", "bold"),
        (outcome if listed["proves"] else f"{outcome}, proves nothing", tone),
        f"  {what} at {ran['commit'][:12]}, by runner {one_line(ran['runner'])}",
    )
    if listed.get("problem"):
        line.append(f": {one_line(listed['problem'], 300)}", "dim")
    return line
