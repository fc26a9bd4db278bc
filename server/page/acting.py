"""Whether a person can answer for a repo, before they try."""

from server.domain.errors import Forbidden, NotFound
from server.methods.base import open_project, party
from server.page.view import PageCall


def cannot_answer(call: PageCall, project_id: str) -> str | None:
    """Why the viewer can't agree, ask for a change or answer in a project: their key holds no repo
    of it. None if they can."""
    try:
        party(call.ctx, project_id, open_project(call.ctx, project_id))
    except (Forbidden, NotFound):
        return (
            "Your key holds no repo of this project, so you can't answer for one; you can nudge "
            "its agents and write to them."
        )
    return None
