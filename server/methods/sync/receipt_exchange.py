"""cacp/receipt/sync: receipts of mesh peers (N2).

They are an entity of their own beside the contract that they are of, so that a node of an earlier
release, which doesn't know them, takes the contract all the same.
"""

from typing import Any

from schemas.sync import ReceiptSyncParams, SyncResult
from server.methods.base import Context, writes
from server.methods.sync.digest import check_source
from server.methods.sync.entity_sync import result_of
from server.methods.sync.merge_receipts import ReceiptMerge
from server.methods.sync.peer_message import PeerMessage


@writes("cacp/receipt/sync", ReceiptSyncParams, SyncResult, access="sync", large=True)
def sync(ctx: Context, params: ReceiptSyncParams) -> dict[str, Any]:
    """Take receipts of a contract from a peer."""
    check_source(ctx, params.source_agent)
    message = PeerMessage(ctx, ctx.caller.agent_id, params.keys)
    return result_of(message.skipped, *ReceiptMerge(message).receipts(params))
