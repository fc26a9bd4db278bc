"""An honest judge of `compare` that is not `compare`: random pairs of schemas, values of the one
that another library holds against the other.

What `compare` calls compatible must have no counterexample. What it calls breaking should have one.
"""

import random
from collections import Counter
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from contracts.changes import ContractComparison
from contracts.compare import compare
from contracts.recognise import read
from contracts.schema_objects import LOST
from tests.contracts.schema_pairs import SchemaMaker, ValueMaker, as_sent

TRIES = 60
MORE_TRIES = 600
"""For what is called breaking, so that a witness is found if there is one."""
NO_WITNESS_MAX = 0.02


class Judged(NamedTuple):
    """What `compare` says of one side, and whether a value contradicts that it fits."""

    effect: str
    is_refuted: bool
    case: str


def test_what_is_called_compatible_has_no_counterexample() -> None:
    _check(range(300))


@pytest.mark.soak
def test_what_is_called_compatible_has_no_counterexample_in_many() -> None:
    _check(range(10_000, 20_000))


def _check(seeds: range) -> None:
    judged = [one for seed in seeds for one in _judge(seed)]
    missed = [one.case for one in judged if one.effect != "breaking" and one.effect != "unknown"]
    wrong = [one.case for one in judged if one.is_refuted and one.case in missed]
    assert wrong == []
    breaking = [one for one in judged if one.effect == "breaking"]
    unproven = [one.case for one in breaking if not one.is_refuted]
    assert len(unproven) <= NO_WITNESS_MAX * len(breaking) + 1, unproven
    counted = Counter(one.effect for one in judged)
    # It decides, and it decides both ways.
    assert counted["unknown"] < 0.2 * len(judged), counted
    assert min(counted["breaking"], counted["compatible"]) > 0.2 * len(judged), counted


def _judge(seed: int) -> list[Judged]:
    """Both sides of one pair: what the provider sends by one schema and is read by the other."""
    chance = random.Random(seed)
    maker = SchemaMaker(chance)
    before = _rooted(maker.schema(), maker.schema(2))
    after = before
    for _ in range(chance.randint(1, 3)):
        after = maker.changed(after) if isinstance(after, dict) else after
    after = _rooted(after, before["$defs"]["D"])
    if any(_refers_in_place(one["$defs"]["D"]) for one in (before, after)):
        # A schema that may be nothing but itself: no validator knows what it means.
        return []
    comparison = compare(read(before, "json-schema"), read(after, "json-schema"))
    values = ValueMaker(chance, before, after)
    return [
        Judged(
            _effect(comparison, side),
            _is_refuted(values, sent, accepted, _effect(comparison, side)),
            f"{seed} {side}",
        )
        for side, sent, accepted in (("consumer", after, before), ("provider", before, after))
    ]


def _refers_in_place(schema: Any) -> bool:
    """Whether a schema refers to one for the same value."""
    if not isinstance(schema, dict):
        return False
    parts = [part for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key, [])]
    return "$ref" in schema or any(map(_refers_in_place, [*parts, schema.get("not")]))


def _rooted(schema: Any, shared: Any) -> dict[str, Any]:
    whole = schema if isinstance(schema, dict) else {"enum": [1]}
    return {"$defs": {"D": shared}, **whole}


def _effect(comparison: ContractComparison, side: str) -> str:
    """The effect on one side, without what has another reason than that a value is refused."""
    effects = [getattr(change, side) for change in comparison.changes if change.why != LOST]
    known = [effect for effect in ("breaking", "unknown") if effect in effects]
    return known[0] if known else "compatible"


def _is_refuted(values: ValueMaker, sent: Any, accepted: Any, effect: str) -> bool:
    """Whether a value was found that is sent and not accepted."""
    sender = Draft202012Validator(as_sent(sent))
    itself, receiver = Draft202012Validator(sent), Draft202012Validator(accepted)
    for _ in range(MORE_TRIES if effect == "breaking" else TRIES):
        value = values.value(sent, sent)
        if sender.is_valid(value) and itself.is_valid(value) and not receiver.is_valid(value):
            return True
    return False
