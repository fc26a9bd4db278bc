"""Finds tests: the suites shipped with the package, files, and folders of files."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from comply.setup import BadSetup, setup_steps
from comply.source import SUFFIX, NotATest, id_of, read
from schemas.jsont import ComplianceTest, JsontStep

SUITES = Path(__file__).parent / "suites"


class NoSuchTest(ValueError):
    """The name is not a suite, test or file; the message lists the suites."""


class BadTest(ValueError):
    """The file is not a valid test; the message starts with `file:line:`."""


@dataclass(frozen=True, slots=True)
class Case:
    """A test with all its steps, and where it comes from."""

    id: str
    suite: str
    path: Path
    test: ComplianceTest
    problem: str = ""
    """Why the file is not a test; empty when it is one."""
    setup_count: int = 0
    """How many of the first steps come from the set-up that the test shares."""


def suites() -> list[str]:
    """The names of the shipped suites."""
    return sorted({path.parent.name for path in SUITES.glob(f"*/*{SUFFIX}")})


def find(names: Sequence[str]) -> list[Path]:
    """The files of these suites, test ids, files and folders, each once. Raises NoSuchTest."""
    paths = [path for name in names for path in _named(name)]
    return list(dict.fromkeys(paths))


def around(cases: Sequence[Case]) -> set[str]:
    """The keys of all shipped tests and of those in the folders of `cases`."""
    folders = {case.path.parent for case in cases}
    paths = itertools.chain(
        SUITES.glob(f"*/*{SUFFIX}"), *(folder.glob(f"*{SUFFIX}") for folder in folders)
    )
    return {key_of(path) for path in paths}


def key_of(path: Path) -> str:
    """`suite/test`, as reports and baselines name it."""
    return f"{path.parent.name}/{id_of(path)}"


def load_all(paths: Iterable[Path]) -> list[Case]:
    """Load each file; an invalid one becomes a case with `problem`, and the others run."""
    return [_load_or_report(path) for path in paths]


def _load_or_report(path: Path) -> Case:
    try:
        return load(path)
    except BadTest as error:
        test = ComplianceTest(title=id_of(path), severity="required", steps=[JsontStep(delayMs=0)])
        return Case(id_of(path), path.parent.name, path, test, str(error))


def load(path: Path) -> Case:
    """The test in a file, with the steps of its set-up before its own. Raises BadTest."""
    try:
        test = read(path.read_text(encoding="utf-8"))
        before = setup_steps(test.setup, path.parent)
    except BadSetup as error:
        raise BadTest(f"{path}: setup: {error}") from None
    except NotATest as error:
        raise BadTest(f"{path}:{error.problem.line}: {error.problem.text}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadTest(f"{path}: can't be read: {getattr(error, 'strerror', 'not UTF-8')}") from None
    test = test.model_copy(update={"steps": [*before, *test.steps]})
    return Case(id_of(path), path.parent.name, path, test, setup_count=len(before))


def _named(name: str) -> Iterator[Path]:
    if name in suites():
        yield from sorted((SUITES / name).glob(f"*{SUFFIX}"))
        return
    shipped = [
        path for path in sorted(SUITES.glob(f"*/*{SUFFIX}")) if name in (id_of(path), key_of(path))
    ]
    path = Path(name)
    if shipped and not path.exists():
        yield from shipped
    elif path.is_dir():
        inside = sorted(path.rglob(f"*{SUFFIX}"))
        if not inside:
            raise NoSuchTest(f"no {SUFFIX} file in the folder {name}")
        yield from inside
    elif path.is_file():
        yield path
    else:
        raise NoSuchTest(f"no suite, test or file {name}; the suites are {', '.join(suites())}")
