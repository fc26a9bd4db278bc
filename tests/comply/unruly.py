"""An agent that does not behave: `unruly.py MODE [FILE]`. FILE gets its pid at each start.

`silent` answers nothing; `dying` ends in the first turn, with words on stderr; `flood` writes
without an end once it is prompted, `noisy` to stderr; `locked` refuses each prompt for want of a
login, `closed` each session; `mute` answers no prompt, `picky` only those with "hello" in them,
`endless` speaks version 2 and ends no turn; `parent` starts two processes, and FILE gets their
pids too.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
FILE = Path(sys.argv[2] if len(sys.argv) > 2 else os.devnull)
UPDATE = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}


def note(pid: int) -> None:
    with FILE.open("a") as file:
        file.write(f"{pid}\n")


def write(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def result_of(method: str) -> dict[str, Any]:
    if method == "initialize" and MODE == "endless":
        return {"result": {"protocolVersion": 2, "info": {"name": "e", "version": "1"}}}
    if method == "initialize":
        return {"result": {"protocolVersion": 1, "agentCapabilities": {}}}
    if (MODE, method) in {("closed", "session/new"), ("locked", "session/prompt")}:
        return {"error": {"code": -32000, "message": "log in first"}}
    if method == "session/new":
        return {"result": {"sessionId": "s"}}
    return prompted() if method == "session/prompt" else {"error": {"code": -32601, "message": ""}}


def prompted() -> dict[str, Any]:
    if MODE == "dying":
        sys.exit("Loading\nno such model")
    while MODE == "flood":
        write({"method": "session/update", "params": {"sessionId": "s", "update": UPDATE}})
    while MODE == "noisy":
        print("x" * 10_000, file=sys.stderr)
    if MODE == "endless":
        return {"result": {"messageId": "m"}}
    return {"result": {"stopReason": "end_turn"}}


def main() -> None:
    note(os.getpid())
    if MODE == "silent":
        time.sleep(600)
    if MODE == "parent":
        for apart in (False, True):
            note(subprocess.Popen(["sleep", "600"], start_new_session=apart).pid)
    for line in sys.stdin:
        message = json.loads(line)
        text = str(message.get("params")).lower()
        mute = MODE == "mute" or (MODE == "picky" and "hello" not in text)
        if message["method"] == "session/prompt" and mute:
            print("thinking", file=sys.stderr, flush=True)
        elif "id" in message:
            write({"id": message["id"], **result_of(message["method"])})


if __name__ == "__main__":
    main()
