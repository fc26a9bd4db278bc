"""What can be wrong with a replica among others, in words, with the remedy."""

from typing import NamedTuple

from peers.clock import OFF, SECOND

VACANT_SECONDS = 20.0
"""For how long nobody may have the background duty: twice its lease."""


class ReplicaTrouble(NamedTuple):
    """A problem; `detail` says what is wrong and what to do."""

    reason: str
    detail: str


def replica_trouble(*, vacant: float, machine_ahead: int) -> ReplicaTrouble | None:
    """The gravest problem; None when there is none.

    `vacant`: for how many seconds nobody has had the background duty. `machine_ahead`: how many
    microseconds this machine's clock is ahead of the database server's, by which replicas go.
    """
    if vacant >= VACANT_SECONDS:
        return ReplicaTrouble(
            "background_idle",
            f"No replica has done the background work for {vacant:.0f} s: mail, webhooks and peers "
            "wait. One takes it by itself; if none does, the log of each has the cause "
            "(`loop_failed`, `loop_waits`)",
        )
    if abs(machine_ahead) > OFF:
        way = "ahead of" if machine_ahead > 0 else "behind"
        return ReplicaTrouble(
            "machine_clock_off",
            f"The clock of this replica's machine is {abs(machine_ahead) // SECOND} s {way} the "
            "database server's. The node goes by the server's; logs, certificates and signatures "
            "of webhooks go by this one: run NTP on both",
        )
    return None
