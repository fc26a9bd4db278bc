"""A PostgreSQL server on loopback that this process starts, and that ends with it: for `cacp
cluster`, the tests and the benchmarks."""

import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

from cli import postgresql_guard
from cli.postgresql_binaries import Account, account, enters, find
from server.domain.location import DatabaseUrl

USER = "cacp"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
PAUSE = 0.02
SETTINGS: Mapping[str, str | int] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # In its folder, so that one that is killed leaves nothing elsewhere.
    "dynamic_shared_memory_type": "mmap",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A standby that is late, or is made anew, still finds what it lacks.
    "wal_keep_size": "256MB",
}
"""What each server has; `settings` adds to it."""
BUSY = "pre-existing shared memory block"
"""What a server says while processes of its killed predecessor still end."""


class LocalPostgresql:
    """One server: its data in `FOLDER/data`, its log in `FOLDER/postgresql.log`.

    Its superuser is `cacp`, whom it trusts on loopback, or asks for a `password` (SCRAM). It keeps
    its port from start to start. The server runs while this process does, or any other that holds
    `lifeline`. `removed` is a folder that is deleted when they have all ended without `stop`.

    Raises ValueError where a server can't run: no programs, or a folder that its account can't
    enter; OSError for its folder.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        binaries: Path | None = None,
        password: str | None = None,
        settings: Mapping[str, str | int] = {},
        lifeline: Path | None = None,
        removed: Path | None = None,
    ) -> None:
        self.folder = folder.resolve()
        self.data = self.folder / "data"
        self.log_file = self.folder / "postgresql.log"
        self.port = port or free_port()
        self.binaries = find(binaries)
        self.pid: int | None = None
        self._password = password
        self._settings = dict(settings)
        self._account = account()
        self._lifeline = lifeline or self.folder / "in-use"
        self._removed = removed
        self._held: int | None = None
        self._guard: subprocess.Popen[str] | None = None

    # --- what it is ---------------------------------------------------------------------------

    def url(self, database: str = "postgres") -> DatabaseUrl:
        """The URL of a database on it."""
        secret = f":{quote(self._password, safe='')}" if self._password else ""
        return DatabaseUrl(f"postgresql://{USER}{secret}@127.0.0.1:{self.port}/{database}")

    @property
    def running(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    @property
    def log(self) -> str:
        """What it wrote over all its starts."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    # --- making it ----------------------------------------------------------------------------

    def create(self) -> Self:
        """Make the database cluster, unless it is there."""
        if (self.data / "PG_VERSION").exists():
            return self
        self._make_folder()
        command = ["initdb", f"--username={USER}", "--encoding=UTF8", "--locale=C"]
        # What a crash of the machine may do to it is of no interest without fsync.
        command += ["--no-sync"] if self._settings.get("fsync") == "off" else []
        secret = self.folder / "password"
        try:
            if self._password:
                secret.touch(0o600)
                secret.write_text(self._password + "\n")
                self._give(secret)
                command += ["--auth=scram-sha-256", f"--pwfile={secret}"]
            else:
                command += ["--auth=trust"]
            self._run(*command, f"--pgdata={self.data}")
        finally:
            secret.unlink(missing_ok=True)
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("include 'cacp.conf'\n")
        return self

    def create_database(self, name: str) -> DatabaseUrl:
        """Make a database on the running server, unless it is there. Returns its URL."""
        try:
            self._run("createdb", f"--maintenance-db={self.url()}", name)
        except ValueError as error:
            if "already exists" not in str(error):
                raise
        return self.url(name)

    def standby(self, folder: Path, name: str, *, port: int | None = None) -> "LocalPostgresql":
        """A copy of this running server that follows it from its start, under this name in
        `synchronous_standby_names`. It has this server's settings except that one."""
        settings = dict(self._settings)
        settings.pop("synchronous_standby_names", None)
        copy = LocalPostgresql(
            folder,
            port=port,
            binaries=self.binaries,
            password=self._password,
            settings=settings,
            removed=self._removed,
        )
        copy._make_folder()
        self._run(
            "pg_basebackup",
            f"--pgdata={copy.data}",
            f"--dbname={self.url()}?application_name={name}",
            "--write-recovery-conf",
            "--wal-method=stream",
            "--checkpoint=fast",
            "--no-sync",
        )
        return copy

    def _make_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._account is not None and not enters(self.folder, self._account):
            raise ValueError(
                f"PostgreSQL does not run as root, and the account that runs it instead "
                f"(uid {self._account.uid}) can't reach {self.folder}: name another folder"
            )
        self.data.mkdir(mode=0o700, exist_ok=True)
        self._give(self.data)

    def _give(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, *self._account)

    # --- the process --------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Create it if it is absent, start it, and wait until it takes connections. Raises
        ValueError with the end of its log."""
        if self.running:
            return self
        self.create()
        self._write_settings()
        self._hold()
        deadline = time.monotonic() + START_SECONDS
        while True:
            before = len(self.log)
            self._launch()
            if self._waited(deadline):
                return self
            logged = self.log[before:]
            self.kill()
            if BUSY not in logged or time.monotonic() > deadline:
                raise ValueError(f"the PostgreSQL server did not start:\n{logged[-2000:]}")
            time.sleep(PAUSE)

    def stop(self, *, fast: bool = True) -> None:
        """End it: with a checkpoint (`fast`), or at once, so that its next start recovers."""
        self._end(signal.SIGINT if fast else signal.SIGQUIT)
        self._release()

    def _release(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def leave(self) -> None:
        """Leave it to the others that hold its lifeline: it ends with the last of them."""
        self._release()
        if self._guard is not None:
            # Python warns of a process that still runs when the object goes.
            self._guard.returncode = 0

    def kill(self) -> None:
        """SIGKILL: no warning, no clean-up."""
        self._end(signal.SIGKILL)

    def restart(self) -> Self:
        """Stop it if it runs, and start it."""
        self._end(signal.SIGINT)
        return self.start()

    def configure(self, **settings: str | int) -> None:
        """Change settings; those that need no restart take effect soon, if it runs."""
        self._settings.update(settings)
        self._write_settings()
        if self.running and self.pid is not None:
            os.kill(self.pid, signal.SIGHUP)

    def promote(self) -> None:
        """Make a standby a server of its own that takes writes, and wait until it is."""
        self._run("pg_ctl", "promote", "--wait", f"--pgdata={self.data}")

    def remove(self) -> None:
        """Stop it, and delete its folder."""
        self.stop(fast=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write_settings(self) -> None:
        values = {**SETTINGS, "port": self.port, **self._settings}
        lines = []
        for name, value in values.items():
            quoted = str(value).replace("'", "''")
            lines.append(f"{name} = '{quoted}'\n")
        path = self.data / "cacp.conf"
        path.write_text("".join(lines))
        self._give(path)

    def _hold(self) -> None:
        """Hold the lifeline, with which the server ends."""
        if self._held is None:
            self._held = os.open(self._lifeline, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_SH)

    def _launch(self) -> None:
        uid, gid = self._account or (None, None)
        order: postgresql_guard.Order = {
            "command": [str(self.binaries / "postgres"), "-D", str(self.data)],
            "lifeline": str(self._lifeline),
            "output": str(self.log_file),
            "uid": uid,
            "gid": gid,
            "removed": None if self._removed is None else str(self._removed),
        }
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", postgresql_guard.__file__, json.dumps(order)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=_environment(),
            text=True,
            # Ctrl-C reaches only this process, which then ends the server in order.
            start_new_session=True,
        )
        assert self._guard.stdout is not None
        with self._guard.stdout as output:
            self.pid = int(output.readline() or 0) or None

    def _waited(self, deadline: float) -> bool:
        """Wait for the server to take connections. Returns whether it does."""
        while self.running and time.monotonic() < deadline:
            if self._is_ready():
                return True
            time.sleep(PAUSE)
        return False

    def _is_ready(self) -> bool:
        """Whether the server says so, in the file that `pg_ctl` goes by as well. A connection
        would not tell it from another one on its port."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _end(self, with_signal: signal.Signals) -> None:
        guard, self._guard = self._guard, None
        if guard is None:
            return
        if guard.poll() is None and self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, with_signal)
        try:
            guard.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            if self.pid is not None:
                os.kill(self.pid, signal.SIGKILL)
            guard.wait()
        self.pid = None

    def _run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as the server's account. Raises ValueError."""
        who: Account | tuple[None, None] = self._account or (None, None)
        done = subprocess.run(
            [self.binaries / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=_environment(),
            cwd="/",
            user=who[0],
            group=who[1],
            extra_groups=None if who[1] is None else [],
        )
        if done.returncode != 0:
            raise ValueError(f"{program} failed: {(done.stderr or done.stdout).strip()[-2000:]}")


def _environment() -> dict[str, str]:
    """This process's, without what PostgreSQL's programs would go by."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return {**kept, "LC_ALL": "C"}


def free_port() -> int:
    """A free port on loopback, of those that the system gives to no client: the server keeps it
    while it is down."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
