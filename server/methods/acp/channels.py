"""acp/subscribe, acp/unsubscribe and acp/channels: how mail reaches an agent besides its inbox
(acp-canonical §10)."""

from functools import partial
from ipaddress import ip_address
from typing import Any

from schemas.acp_calls import (
    ChannelsParams,
    ChannelsResult,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
    UnsubscribeResult,
)
from schemas.base import iso, present
from server.domain.acp import breaker, webhooks
from server.domain.acp.routing import CHANNELS, Channel
from server.domain.endpoints import check_address, check_endpoint
from server.domain.errors import Forbidden
from server.methods.acp import delivery, push
from server.methods.acp.refusals import LOOKING
from server.methods.base import CallSession, Context, new_id, waits, writes
from server.store import pushes, sender_limits
from server.store.pushes import PushTarget, Webhook


@waits("acp/subscribe", SubscribeParams, SubscribeResult, access="write", guard=LOOKING)
async def subscribe(session: CallSession, params: SubscribeParams) -> dict[str, Any]:
    """Announce the caller's mail of high priority at a URL from now on, in place of an earlier URL.
    Announcements are signed as Standard Webhooks specifies, with the secret in this answer, which
    is shown only once. Unread mail whose announcement failed is announced again."""
    # A plain write would keep its result, with the secret, for an Idempotency-Key.
    return await session.write(partial(_subscribed, url=params.url))


@writes("acp/unsubscribe", UnsubscribeParams, UnsubscribeResult, guard=LOOKING)
def unsubscribe(ctx: Context, params: UnsubscribeParams) -> dict[str, Any]:
    """Stop announcing the caller's mail at a URL. Mail still arrives in the inbox."""
    address = delivery.address_of(ctx)
    removed = pushes.drop_webhook(ctx.db, address)
    if removed:
        pushes.drop(ctx.db, PushTarget("channel", address))
        delivery.audit(ctx, "unsubscribed", None)
    return {"removed": removed}


@waits("acp/channels", ChannelsParams, ChannelsResult, access="write", guard=LOOKING)
async def channels(session: CallSession, params: ChannelsParams) -> dict[str, Any]:
    """List the channels by which mail reaches the caller: the state of each, how many messages wait
    there, how many could not be pushed, and until when a failing channel is paused."""
    return await session.read(_channels)


def _subscribed(ctx: Context, url: str) -> dict[str, Any]:
    _check_available(ctx)
    _check_url(ctx, url)
    address, now = delivery.address_of(ctx), iso(ctx.now)
    target = PushTarget("channel", address)
    made = Webhook(new_id(), url, now)
    pushes.put_webhook(ctx.db, address, made)
    sender_limits.put_breaker(ctx.db, push.breaker_name(target), breaker.CLOSED)
    pushes.rearm(ctx.db, target, now)
    delivery.audit(ctx, "subscribed", None)
    return {
        "url": made.url,
        "secret": webhooks.secret(ctx.node.webhook_key, made.webhook_id),
        "createdAt": now,
        "capabilities": ctx.node.acp.capabilities,
    }


def _channels(ctx: Context) -> dict[str, Any]:
    return {
        "address": delivery.address_of(ctx),
        "channels": [_state(ctx, channel) for channel in CHANNELS],
        "capabilities": ctx.node.acp.capabilities,
    }


def _state(ctx: Context, channel: Channel) -> dict[str, Any]:
    target = PushTarget(channel, delivery.address_of(ctx))
    webhook = pushes.webhook(ctx.db, target.address) if channel == "channel" else None
    gate = sender_limits.breaker(ctx.db, push.breaker_name(target))
    paused = breaker.wait(gate, ctx.now) is not None
    configured = {
        "channel": webhook is not None,
        "wake": target.address in ctx.node.acp.wakes,
    }
    state = {
        "channel": channel,
        "state": ctx.node.acp.capabilities[channel],
        "configured": configured.get(channel, True),
        "url": webhook.url if webhook else None,
        "waiting": pushes.waiting(ctx.db, target),
        "failed": pushes.given_up(ctx.db, target),
        "pausedUntil": iso(gate.open_until) if paused else None,
    }
    return present(state)


def _check_available(ctx: Context) -> None:
    state = ctx.node.acp.capabilities["channel"]
    if state != "available":
        raise Forbidden(
            "Webhook notifications are disabled: the operator of this node has not set "
            "acp_channel_notify. Call acp/inbox with wait instead",
            reason="channel_disabled",
            capability=state,
        )


def _check_url(ctx: Context, url: str) -> None:
    """Raises InvalidInput or Forbidden for a URL that the node won't call. The addresses of a host
    name are checked at each call."""
    endpoint = check_endpoint(url, loopback_allowed=ctx.node.loopback)
    try:
        ip_address(endpoint.host)
    except ValueError:
        return
    check_address(
        endpoint.host,
        loopback_allowed=ctx.node.loopback,
        private_allowed=ctx.node.acp.private_webhooks,
    )
