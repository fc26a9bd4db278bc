"""Extracts the model's own text from the JSON output of CLIs. Pure.

Lines that are not JSON (warnings, stderr) are ignored. The output of tools and the user's prompt
are not the model's text, so a contract echoed there does not count.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

import orjson

from threader.outage import reported_error
from threader.parsing import Buffer

MAX_LINE = 64 * 1024 * 1024


def _lines(log: Buffer) -> Iterator[bytes]:
    """The lines that may be JSON objects: those that begin with a brace."""
    opening = -1 if log[0:1] == b"{" else log.find(b"\n{")
    if opening < 0 and log[0:1] != b"{":
        return
    while True:
        start = opening + 1
        end = log.find(b"\n", start)
        end = len(log) if end < 0 else end
        if end - start <= MAX_LINE:
            yield log[start:end]
        opening = log.find(b"\n{", end)
        if opening < 0:
            return


def objects(log: Buffer) -> Iterator[dict[str, object]]:
    """The JSON objects of a log: one on each line, or one that is the whole output."""
    any_lines = False
    for line in _lines(log):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            any_lines = True
            yield value
    start = log.find(b"{", 0)
    if not any_lines and start >= 0 and len(log) - start <= MAX_LINE:
        try:
            value = orjson.loads(log[start : log.rfind(b"}") + 1])
        except orjson.JSONDecodeError:
            return
        if isinstance(value, dict):
            yield value


def _texts(content: object) -> Iterator[str]:
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict) and part.get("type") == "text":
            text = part.get("text")
            if isinstance(text, str):
                yield text


def claude_text(event: dict[str, object]) -> Iterator[str]:
    """`claude --output-format json|stream-json`, and the same events of `agent`.

    Assistant messages in order; the final `result` repeats the last one and comes last.
    """
    kind = event.get("type")
    if kind == "assistant":
        message = event.get("message")
        if isinstance(message, dict):
            yield from _texts(message.get("content"))
    elif kind == "result":
        result = event.get("result")
        if isinstance(result, str):
            yield result


def opencode_text(event: dict[str, object]) -> Iterator[str]:
    """`opencode run --format json`: events of type `text` carry one finished part each."""
    part = event.get("part")
    if event.get("type") == "text" and isinstance(part, dict):
        text = part.get("text")
        if isinstance(text, str):
            yield text


def codex_text(event: dict[str, object]) -> Iterator[str]:
    """`codex exec --json`: items of type `agent_message`, once they are complete."""
    item = event.get("item")
    if event.get("type") == "item.completed" and isinstance(item, dict):
        text = item.get("text")
        if item.get("type") == "agent_message" and isinstance(text, str):
            yield text


def gemini_text(event: dict[str, object]) -> Iterator[str]:
    """`gemini --output-format json`: the response."""
    response = event.get("response")
    if isinstance(response, str):
        yield response


def any_text(event: dict[str, object]) -> Iterator[str]:
    """The text of an event, whichever known CLI wrote it."""
    for texts in (claude_text, opencode_text, codex_text, gemini_text):
        yield from texts(event)


def _delta(event: dict[str, object]) -> str | None:
    """A piece of a message, as `gemini --output-format stream-json` writes it."""
    content = event.get("content")
    spoken = event.get("type") == "message" and event.get("role") == "assistant"
    return content if spoken and isinstance(content, str) else None


def acp_text(log: Buffer) -> bytes:
    """The text of an Agent Client Protocol session: its message chunks, joined."""
    parts: list[str] = []
    for event in objects(log):
        text = event.get("text")
        if event.get("update") == "agent_message_chunk" and isinstance(text, str):
            parts.append(text)
    return "".join(parts).encode("utf-8", "replace") + b"\n"


def transcript(log: Buffer, texts: Callable[[dict[str, object]], Iterator[str]]) -> bytes:
    """All of the model's text in `log`, one part per paragraph.

    A part equal to the one before it is left out, so that a final summary is not a second block.
    """
    parts: list[str] = []
    open_ended = False
    for event in objects(log):
        piece = _delta(event)
        if piece is not None and open_ended:
            parts[-1] += piece
        elif piece is not None:
            parts.append(piece)
        open_ended = piece is not None
        for text in texts(event):
            if not parts or parts[-1].strip() != text.strip():
                parts.append(text)
    return "\n".join(parts).encode("utf-8", "replace") + b"\n"


def _readable(event: dict[str, object]) -> str | None:
    """The readable text of an event; None when no known CLI writes such events."""
    texts = [*any_text(event), *filter(None, [_delta(event)])]
    item = event.get("item")
    if not texts and isinstance(item, dict) and isinstance(item.get("text"), str):
        texts.append(item["text"])
    if event.get("update") == "agent_message_chunk" and isinstance(event.get("text"), str):
        texts.append(str(event["text"]))
    if not texts and (error := reported_error(event)):
        texts.append(error)
    if texts:
        return "\n".join(texts)
    return "" if "type" in event or "update" in event else None


def readable(tail: str) -> str:
    """The end of a log as text: JSON events become the text of the model or the CLI in them.

    Plain lines, and JSON that no known CLI writes, stay as they are.
    """
    lines: list[str] = []
    for line in tail.splitlines():
        event = None
        if line.lstrip().startswith("{"):
            with suppress(orjson.JSONDecodeError):
                event = orjson.loads(line)
        text = _readable(event) if isinstance(event, dict) else None
        if text is None:
            lines.append(line)
        elif text and (not lines or lines[-1] != text):
            lines.append(text)
    return "\n".join(lines)
