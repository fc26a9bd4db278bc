"""What waits for someone."""

from server.page.view import Page, PageCall, view


@view("attention", "/ui/attention", title="Attention", kinds=("contract", "context", "repo"))
def attention(call: PageCall) -> Page:
    """What waits for whom."""
    return {"waiting": call.ask("cacp/attention/list", limit=50)}
