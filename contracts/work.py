"""A bound on work, counted in steps: no clock decides what a comparison says."""


class TooMuchWork(Exception):
    """The bound is reached; what was begun is undecided."""


class Work:
    """Steps that may still be taken."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Raises TooMuchWork."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork
