"""Attention items as markdown for a model: the node's own words are plain, agents' text is fenced
(`server.domain.untrusted`)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from schemas.base import present
from server.domain.next_call import next_call
from server.domain.untrusted import MEMBER, WARNING, Author, block, block_of_json, inline

Json = Mapping[str, Any]

SIZE = 20_000
"""Characters of a text, by default."""
BLOCK_MAX = 4_000
"""Characters of one agent's text in it."""
NOTHING = (
    "Nothing waits for you. Projects in which your repository is still free don't show here: "
    "cacp_project_list lists them, cacp_project_join takes it."
)
CUT = re.compile(r"… \((\d+) more characters\)$", re.MULTILINE)
"""The end of a text that was cut, as `server.domain.attention.items.bounded` writes it."""


def markdown(result: Json, size: int = SIZE) -> str:
    """A ListAttentionResult in at most `size` characters: every item that has room, and the detail
    of the first ones. Says how many are left out."""
    items: Sequence[Json] = result["items"]
    if not items:
        return NOTHING if not result["total"] else f"No more items; {result['total']} in all."
    parts = [f"# {headline(result)}\n\nDo what `next` says: that closes the item. {WARNING}"]
    # Room for the last line.
    left = size - len(parts[0]) - 200
    texts: list[str] = []
    for place, item in enumerate(items, 1):
        text = brief(item, place)
        if len(text) + 2 > left:
            break
        texts.append(text)
        left -= len(text) + 2
    for place, item in enumerate(items[: len(texts)]):
        detail = "\n\n".join(_detail(item))
        if detail and len(detail) + 2 <= left:
            texts[place] += f"\n\n{detail}"
            left -= len(detail) + 2
    return "\n\n".join([*parts, *texts, *_rest(result, len(texts))])


def headline(result: Json) -> str:
    """How much waits, in a line."""
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(result["counts"].items()))
    total, urgent = result["total"], result["urgent"]
    noun, verb = ("item", "waits") if total == 1 else ("items", "wait")
    return f"{total} {noun} {verb} for you ({urgent} urgent): {counts}"


def brief(item: Json, place: int = 1) -> str:
    """An item without its detail: what waits, and the call that closes it."""
    return "\n".join(_head(place, item))


def whole(item: Json, place: int = 1) -> str:
    """An item with its detail."""
    return "\n\n".join([brief(item, place), *_detail(item)])


def _rest(result: Json, shown: int) -> list[str]:
    """How to get the items that are not shown: those that had no room, and those of later pages."""
    items = result["items"]
    if 0 < shown < len(items):
        left = len(items) - shown
        return [
            f"{left} more did not fit here: call again with after {inline(items[shown - 1]['id'])}"
        ]
    if result.get("next"):
        return [f"More: after {inline(result['next'])}"]
    return []


def _head(place: int, item: Json) -> Iterator[str]:
    yield f"## {place}. {item['kind']} ({item['urgency']})\n"
    yield f"{item['summary']}.\n"
    yield f"- id: `{item['id']}`, since {item['since']}"
    yield from steps(item)


def steps(item: Json) -> Iterator[str]:
    """The calls that close an item, each written out, with what the caller decides below it."""
    for step in item["next"]:
        given = step["params"] | step.get("toolParams", {})
        yield f"- next: {next_call(step.get('tool') or step['method'], given)}"
        for name, about in step.get("fill", {}).items():
            yield f"  - {name}: {about}"


# --- the detail, part by part -------------------------------------------------------------------


def _detail(item: Json) -> Iterator[str]:
    detail: Json = item["detail"]
    if "proposedBy" in detail:
        yield from _of_contract(item["kind"], detail)
    elif "askedBy" in detail:
        author = _author(detail["askedBy"])
        asked = {name: detail[name] for name in ("options", "details") if name in detail}
        yield _block(detail["question"], author)
        if asked:
            yield _block(asked, author)
    elif "packageHash" in detail:
        parts = ("reason", "objective", "nextStep")
        texts = {part: detail[part] for part in parts if part in detail}
        yield _block(texts, Author(detail["from"], trust="verified"))
        if "waitsFor" in detail:
            yield f"Before it is accepted: {detail['waitsFor']}."


def _of_contract(kind: str, detail: Json) -> Iterator[str]:
    proposer = _author(detail["proposedBy"])
    about = f"status {detail['status']}, round {detail['round']}"
    yield f"Of this version: {about}; parties {', '.join(map(inline, detail['parties']))}."
    if "changeNote" in detail:
        yield _block(detail["changeNote"], proposer)
    if "yourVersion" in detail:
        yield "Your version:\n" + _block(detail["yourVersion"]["content"], Author("you"))
    if "diff" in detail:
        diff = detail["diff"]
        more = [f"… {diff['more']} more lines"] if "more" in diff else []
        lines = "\n".join([*diff["lines"], *more]) or "(the same content)"
        yield f"What it changes {diff['summary']}:\n" + _block(lines, proposer)
        yield (
            f"Consumers as built today: {diff['consumer']}; "
            f"a provider as built today: {diff['provider']}."
        )
        yield "cacp_contract_get shows the whole content."
    elif "content" in detail:
        content = _block(detail["content"], proposer)
        yield "Its content:\n" + content
        if CUT.search(content):
            yield "cacp_contract_get shows the whole content."
    if "yourLastResponse" in detail:
        yield f"Your response to version {detail['yourLastResponse']['version']}:"
        yield from _response(detail["yourLastResponse"])
    for answer in detail.get("responses", ()):
        yield from _response(answer)
    for name, verb in (("failures", "found a failure"), ("partial", "verified in part")):
        for result in detail.get(name, ()):
            findings = present({part: result.get(part) for part in ("notes", "details")})
            yield f"{inline(result['repo'])} {verb} in round {result['round']}:"
            yield _block(findings, _author(result))
    for work in detail.get("implementations", ()):
        parts = ("plan", "files", "notes", "testEndpoint")
        texts = {part: work[part] for part in parts if part in work}
        yield f"Implementation by {inline(work['repo'])}: {work['status']}"
        if texts and kind != "implement":
            yield _block(texts, _author(work))


def _response(answer: Json) -> Iterator[str]:
    verbs = {"agree": "agrees", "request_change": "asks for a change", "reject": "rejects it"}
    yield f"{inline(answer['repo'])} {verbs[answer['action']]}:"
    if "comment" in answer:
        yield _block(answer["comment"], _author(answer))
    if "suggestedChange" in answer:
        yield "Suggested change:\n" + _block(answer["suggestedChange"], _author(answer))


def _author(by: Json) -> Author:
    return Author(by["agentId"], by.get("repo", ""), MEMBER if "repo" in by else "verified")


def _block(value: Any, author: Author) -> str:
    """A value of an agent as a fenced block, cut to BLOCK_MAX characters."""
    if isinstance(value, str):
        return block(_cut(value), author)
    text = block_of_json(value, author)
    if len(text) <= BLOCK_MAX:
        return text
    return block(_cut(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()), author)


def _cut(text: str) -> str:
    """The first BLOCK_MAX characters. The number of those left out counts what an earlier cut left
    out too."""
    if len(text) <= BLOCK_MAX:
        return text
    earlier = CUT.search(text)
    length = len(text) if earlier is None else earlier.start() + int(earlier[1])
    return f"{text[:BLOCK_MAX]}… ({length - BLOCK_MAX} more characters)"
