"""Times as people read them. Pure, and imports little."""

from datetime import UTC, datetime

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def ago(timestamp: str, now: datetime | None = None) -> str:
    """How long ago it was, in the largest unit that fits.

    >>> ago("2026-01-01T00:00:00+00:00", datetime(2026, 1, 1, 3, tzinfo=UTC))
    '3 h ago'
    """
    span = _span(((now or datetime.now(UTC)) - moment_of(timestamp)).total_seconds())
    return f"{span} ago" if span else "just now"


def until(timestamp: str, now: datetime | None = None) -> str:
    """How far ahead it is, in the largest unit that fits.

    >>> until("2026-01-01T03:00:00+00:00", datetime(2026, 1, 1, tzinfo=UTC))
    'in 3 h'
    """
    span = _span((moment_of(timestamp) - (now or datetime.now(UTC))).total_seconds())
    return f"in {span}" if span else "now"


def clock(timestamp: str) -> str:
    """The local time, with the date unless it is today."""
    moment = moment_of(timestamp).astimezone()
    today = moment.date() == datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if today else "%d %b %H:%M:%S")


def moment_of(timestamp: str) -> datetime:
    moment = datetime.fromisoformat(timestamp)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _span(seconds: float) -> str:
    """Empty below a minute."""
    for unit, size in UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return ""
