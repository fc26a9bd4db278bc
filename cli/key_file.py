"""A file that holds an agent's key, readable by its owner only: what `cacp connect` makes, and what
`--key-file` names in an agent's configuration."""

import os
import re
import stat
import sys
from pathlib import Path

KEY = re.compile(r"cacp_sk_[A-Za-z0-9_-]{16,128}")
_OTHERS = 0o077
_SIZE_MAX = 1024


def place(name: str) -> Path:
    """The file that a name stands for. `~` is the home directory, so that a configuration which is
    shared names each user's own file."""
    return Path(os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser raises without a home


def read_key(name: str) -> str:
    """The key in a file. Raises ValueError, in one line, when the file can't be read, holds
    something else, or is open to other users."""
    file = place(name)
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            text = opened.read(_SIZE_MAX).decode(errors="replace").strip()
    except FileNotFoundError:
        raise ValueError(f"the key file {name} does not exist") from None
    except OSError as error:
        raise ValueError(f"the key file {name} can't be read: {error.strerror}") from None
    # Windows has no such modes.
    if mode & _OTHERS and sys.platform != "win32":
        raise ValueError(
            f"the key file {name} is open to other users (mode {stat.S_IMODE(mode):04o}): close it "
            f"with `chmod 600 {name}`, and replace the key if they could read it"
        )
    if not KEY.fullmatch(text):
        raise ValueError(
            f"the key file {name} holds no key: it should be one line, cacp_sk_ and 16 to 128 "
            "letters, digits, - and _"
        )
    return text


def write_private(file: Path, text: str) -> None:
    """Write a file that only this user can read, in one step, and the folders above it. Raises
    OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    part.replace(file)
