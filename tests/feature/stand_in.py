"""A follower behind a real socket: it stands in for a model's API, in the formats of agents."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import uvicorn

from comply.model import server
from comply.model.conversation import ModelAnswer, ModelRequest


class StandIn:
    """A model's API for one agent as long as this lasts. Its log has each request and answer."""

    def __init__(self, reply: Callable[[ModelRequest], ModelAnswer], log: Path) -> None:
        self._log = log.open("a", encoding="utf-8")
        self._listener = server.listen(0)
        self.url = f"http://{server.HOST}:{self._listener.getsockname()[1]}"

        def write_line(line: object) -> None:
            print(json.dumps(line), file=self._log, flush=True)

        app = server.app(reply, write_line, bodies=True)
        self._server = uvicorn.Server(
            uvicorn.Config(app, http="h11", lifespan="off", log_config=None)
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._log.close()
