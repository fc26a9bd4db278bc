"""What goes wrong before or around a run; failures inside a run are data (see `outcome`).

ThreaderError
├── ManifestProblems      the manifest or a file it names is wrong
├── DigestMismatch        the manifest changed since the run began (§10)
├── RunExists             a new run over an old one
├── NoSuchRun             nothing to resume or report
├── RunLocked             another process runs it
└── NotReady              the workspace or a CLI is not fit to run
"""

from collections.abc import Sequence


class ThreaderError(Exception):
    """Its text is for the user: what, where, and what would be right."""


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
