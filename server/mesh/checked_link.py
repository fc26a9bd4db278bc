"""Calls to a mesh peer whose results are checked before they are used."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from peers.errors import CallError, PeerRefused
from schemas.errors import ErrorCode
from server.mesh.mesh_channel import MeshChannel
from server.store.peers import Peer
from server.util.log_once import RateLimitedLog

M = TypeVar("M", bound=BaseModel)


class CheckedLink:
    """A channel to a mesh peer that returns results as models. Its calls raise CallError."""

    def __init__(self, channel: MeshChannel, peer: Peer) -> None:
        self._channel = channel
        self._peer = peer
        self._notices = RateLimitedLog()

    async def call(
        self,
        model: type[M],
        method: str,
        newer: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> M:
        """The result of a call, which counts for whether the peer is up. A peer of an older release
        is asked again without the `newer` params."""
        return self._checked(model, await self._channel.call(method, newer, **params))

    async def ask_newer(self, model: type[M], method: str, **params: Any) -> M | None:
        """The result of a method that older releases don't know; None from a peer of such a
        release."""
        try:
            result = await self._channel.ask(method, **params)
        except CallError as error:
            if isinstance(error, PeerRefused) and error.code == ErrorCode.METHOD_NOT_FOUND:
                return None
            self._channel.on_failure(error)
            raise
        return self._checked(model, result)

    def _checked(self, model: type[M], result: Any) -> M:
        try:
            return model.model_validate(result)
        except ValidationError:
            # The peer counts as up, so nothing else in the log tells of this.
            reason = f"its answer is not a valid {model.__name__}"
            peer = self._peer.agent_id
            self._notices.refused("comparison_failed", (reason,), peer=peer, reason=reason)
            raise CallError(reason) from None
