"""The model's own text out of the JSON that CLIs wrap it in. Pure.

Lines that are not JSON (warnings, traces of stderr) are passed over. What a tool printed and what
the user asked are not the model's text, so an echoed contract in them counts for nothing.
"""

from collections.abc import Callable, Iterator

import orjson

from threader.parsing import Buffer

MAX_LINE = 64 * 1024 * 1024


def _lines(log: Buffer) -> Iterator[bytes]:
    start = 0
    while start < len(log):
        end = log.find(b"\n", start)
        end = len(log) if end < 0 else end
        if end - start <= MAX_LINE:
            yield log[start:end]
        start = end + 1


def _objects(log: Buffer) -> Iterator[dict[str, object]]:
    """JSON objects that stand on a line each, or one that is the whole output."""
    found = False
    for line in _lines(log):
        if not line.lstrip().startswith(b"{"):
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            found = True
            yield value
    start = log.find(b"{", 0)
    if not found and start >= 0 and len(log) - start <= MAX_LINE:
        try:
            value = orjson.loads(log[start : len(log)])
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


def acp_text(log: Buffer) -> bytes:
    """An Agent Client Protocol session: message chunks, joined as they came."""
    parts: list[str] = []
    for event in _objects(log):
        text = event.get("text")
        if event.get("update") == "agent_message_chunk" and isinstance(text, str):
            parts.append(text)
    return "".join(parts).encode("utf-8", "replace") + b"\n"


def transcript(log: Buffer, texts: Callable[[dict[str, object]], Iterator[str]]) -> bytes:
    """All of the model's text in `log`, one part per paragraph.

    A part equal to the one before it is left out: a final summary is no second block.
    """
    parts: list[str] = []
    for event in _objects(log):
        for text in texts(event):
            if not parts or parts[-1].strip() != text.strip():
                parts.append(text)
    return "\n".join(parts).encode("utf-8", "replace") + b"\n"
