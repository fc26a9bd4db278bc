"""What an operator settles about mail."""

from dataclasses import replace

from server.domain.acp.message_rate import BROADCAST, DIRECT
from server.domain.acp.routing import CHANNELS, capabilities
from server.domain.acp.rules import MailRules


def test_the_defaults_are_those_of_the_specification() -> None:
    """acp-canonical §10.1, §10.3, §12.7."""
    rules = MailRules()
    assert rules.limits == {"direct": DIRECT, "broadcast": BROADCAST}
    assert rules.retention == 90 * 24 * 3600 * 1_000_000
    assert [one for one, state in rules.capabilities.items() if state == "available"] == ["inbox"]


def test_a_coordinator_is_one_in_any_version() -> None:
    rules = MailRules(coordinators=frozenset({"aid://example.com/lead"}))
    assert rules.is_coordinator("aid://example.com/lead@2.0.0")
    assert not rules.is_coordinator("aid://example.com/leader@2.0.0")


def test_the_routes_follow_from_the_channels_that_work() -> None:
    """acp-canonical §10.2."""
    every = frozenset(CHANNELS)
    rules = MailRules(capabilities=capabilities(every, every))
    assert rules.routes["normal"] == ["inbox", "session"]
    assert rules.routes["critical"] == ["inbox", "session", "channel", "wake"]
    assert replace(rules, wake_from="normal").routes["normal"] == ["inbox", "session", "wake"]
    assert MailRules().routes["critical"] == ["inbox"]
