"""The hits of a search for people at a terminal: what each is, and the command that opens it."""

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from cli.times import ago
from schemas.plain import one_line

Json = dict[str, Any]
INDENT = "  "


def hits_text(answer: Json) -> Text:
    """The result of `cacp/search` with its hits. Agents' text is cleaned, and stays what it is:
    nothing in it is markup."""
    parts = [Text("\n").join(_lines(hit)) for hit in answer["hits"]]
    if "nextCursor" in answer:
        parts.append(Text(f"There are more: --cursor {one_line(answer['nextCursor'])}", "dim"))
    return Text("\n\n").join(parts)


def _lines(hit: Json) -> Iterator[Text]:
    head = Text(one_line(hit["title"] or hit["type"], 120), "bold")
    if "status" in hit:
        head.append(f"  {one_line(hit['status'])}", "dim")
    yield head
    yield Text(INDENT) + _marked(hit["snippet"])
    by = f" of {one_line(hit['author'], 80)}" if "author" in hit else ""
    where = f" in {one_line(hit['projectName'], 60)}" if "projectName" in hit else ""
    yield Text(f"{INDENT}{hit['kind']} {one_line(hit['type'])}{by}{where}, {ago(hit['at'])}", "dim")
    command = _command(hit)
    if command:
        yield Text(f"{INDENT}{command}", "dim")


def _marked(snippet: Json) -> Text:
    """The snippet, with its words in bold. The node has cleaned it already, so that the places of
    the marks are right."""
    text = Text(snippet["text"])
    for start, stop in snippet["marks"]:
        text.stylize("bold yellow", start, stop)
    return text


def _command(hit: Json) -> str | None:
    """The command that shows the whole."""
    if hit["kind"] == "contract":
        return f"cacp show {one_line(hit['contractId'])}"
    if hit["kind"] == "mail":
        return f"cacp call acp/thread thread_id={one_line(hit['threadId'])}"
    ids = f"projectId={one_line(hit['projectId'])} packetId={one_line(hit['packetId'])}"
    return f"cacp call cacp/context/getThread {ids}"
