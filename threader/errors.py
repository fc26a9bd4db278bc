"""What goes wrong before or around a run. Failures of tasks are data (see `outcome`).

ThreaderError
├── ManifestProblems      the manifest or a file it names is wrong
├── DigestMismatch        the manifest changed since the run began (§10)
├── RunExists             a new run over an old one
├── NoSuchRun             nothing to resume or report
├── RunLocked             another process runs this manifest, or in this workspace
└── NotReady              the workspace or a CLI is not fit to run

Interrupted and OutOfBudget end a run that was under way.
"""

from collections.abc import Sequence


class ThreaderError(Exception):
    """The text is for the user: what is wrong, where, and what would be right."""


class ManifestProblems(ThreaderError):
    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class DigestMismatch(ThreaderError):
    pass


class RunExists(ThreaderError):
    pass


class NoSuchRun(ThreaderError):
    pass


class RunLocked(ThreaderError):
    pass


class NotReady(ThreaderError):
    pass


class Interrupted(Exception):
    """A signal stopped the run; it can be resumed."""


class OutOfBudget(Exception):
    """The budget allows no further invocation; the text says why."""
