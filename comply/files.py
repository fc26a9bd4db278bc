"""Finds tests: the suites shipped with the package, files, and folders of files."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from comply.source import SUFFIX, NotATest, id_of, read
from schemas.jsont import ComplianceTest, Step

SUITES = Path(__file__).parent / "suites"


class NotFound(ValueError):
    """A name that is no suite, no test and no file; the message says what there is."""


class BadTest(ValueError):
    """A file that is no test; the message starts with `file:line:`."""


@dataclass(frozen=True, slots=True)
class Case:
    """A test and where it comes from; a file that is no test has `problem` say why."""

    id: str
    suite: str
    path: Path
    test: ComplianceTest
    problem: str = ""


def suites() -> list[str]:
    """The names of the suites that are shipped."""
    return sorted({path.parent.name for path in SUITES.glob(f"*/*{SUFFIX}")})


def find(names: Sequence[str]) -> list[Path]:
    """The files that suites, test ids, files and folders name, each once. Raises NotFound."""
    found = [path for name in names for path in _named(name)]
    return list(dict.fromkeys(found))


def around(cases: Sequence[Case]) -> set[str]:
    """The keys of all tests that are shipped or lie beside one of these."""
    folders = {case.path.parent for case in cases}
    paths = itertools.chain(
        SUITES.glob(f"*/*{SUFFIX}"), *(folder.glob(f"*{SUFFIX}") for folder in folders)
    )
    return {key_of(path) for path in paths}


def key_of(path: Path) -> str:
    """`suite/test`, as reports and baselines name it."""
    return f"{path.parent.name}/{id_of(path)}"


def load_all(paths: Iterable[Path]) -> list[Case]:
    """Each file; one that is no test concerns nobody else, and ends as an error of its own."""
    return [_whatever(path) for path in paths]


def _whatever(path: Path) -> Case:
    try:
        return load(path)
    except BadTest as error:
        test = ComplianceTest(title=id_of(path), severity="required", steps=[Step(delayMs=0)])
        return Case(id_of(path), path.parent.name, path, test, str(error))


def load(path: Path) -> Case:
    """Raises BadTest."""
    try:
        test = read(path.read_text(encoding="utf-8"))
    except NotATest as error:
        raise BadTest(f"{path}:{error.problem.line}: {error.problem.text}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadTest(f"{path}: can't be read: {getattr(error, 'strerror', 'not UTF-8')}") from None
    return Case(id_of(path), path.parent.name, path, test)


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
            raise NotFound(f"no {SUFFIX} file in the folder {name}")
        yield from inside
    elif path.is_file():
        yield path
    else:
        raise NotFound(f"no suite, test or file {name}; the suites are {', '.join(suites())}")
