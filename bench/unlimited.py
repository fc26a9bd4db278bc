"""`cacp` without rate limits for senders of ACP messages: `python -m bench.unlimited serve …`.

Settings only tighten these limits (acp-canonical §10.3). Benches and tests that measure what lies
behind the limits lift them in the process that they start.
"""

from dataclasses import replace

from cli.main import main
from server.domain.acp.rules import MailRules
from server.settings import Settings


def lift_limits() -> None:
    """Give every node of this process mail rules without limits for senders."""
    limited = Settings.acp_rules

    def unlimited(settings: Settings) -> MailRules:
        rules: MailRules = limited.__get__(settings)
        return replace(rules, limits={})

    Settings.acp_rules = property(unlimited)  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    lift_limits()
    main()
