"""What an operator settles about mail."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from server.domain.acp.message_rate import BROADCAST, DIRECT
from server.domain.acp.routing import CHANNELS, capabilities
from server.domain.acp.rules import MailRules


def test_the_defaults_are_those_of_the_specification() -> None:
    """acp-canonical §10.1, §10.3, §12.7."""
    rules = MailRules()
    assert rules.limits == {"direct": DIRECT, "broadcast": BROADCAST}
    assert rules.retention == 90 * 24 * 3600 * 1_000_000
    assert [one for one, state in rules.capabilities.items() if state == "available"] == ["inbox"]


LEAD = "aid://example.com/lead"
CREDENTIALS = st.fixed_dictionaries(
    dict.fromkeys(("operator", "human", "keyless", "restricted"), st.booleans())
)


def test_a_coordinator_is_one_in_any_version() -> None:
    rules = MailRules(coordinators=frozenset({LEAD}))
    none = dict.fromkeys(("operator", "human", "keyless"), False)
    assert rules.coordinates(f"{LEAD}@2.0.0", **none)
    assert not rules.coordinates("aid://example.com/leader@2.0.0", **none)


@given(CREDENTIALS, st.booleans())
def test_no_place_makes_a_coordinator(credentials: dict[str, bool], named: bool) -> None:
    """Without a key nobody coordinates, whoever the settings name."""
    rules = MailRules(coordinators=frozenset({LEAD} if named else ()))
    coordinates = rules.coordinates(LEAD, **credentials)
    if credentials["operator"] or (credentials["human"] and not credentials["restricted"]):
        assert coordinates
    else:
        assert coordinates == (named and not credentials["keyless"])


def test_the_routes_follow_from_the_channels_that_work() -> None:
    """acp-canonical §10.2."""
    every = frozenset(CHANNELS)
    rules = MailRules(capabilities=capabilities(every, every))
    assert rules.routes["normal"] == ["inbox", "session"]
    assert rules.routes["critical"] == ["inbox", "session", "channel", "wake"]
    assert replace(rules, wake_from="normal").routes["normal"] == ["inbox", "session", "wake"]
    assert MailRules().routes["critical"] == ["inbox"]
