"""What a run needs before it begins: CLIs that can be found, a budget that can be kept, a site."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from schemas.manifest import Budget
from threader.adapters import make_adapter
from threader.adapters.base import Adapter
from threader.errors import NotReady
from threader.landing import SharedSite, WorkSite
from threader.load import ThreadProject


def make_adapters(project: ThreadProject) -> tuple[Adapter, Adapter | None]:
    """Worker and healer. Raises NotReady without a worker, or when a CLI cannot be found."""
    manifest = project.manifest
    if manifest.worker is None:
        raise NotReady("worker: the manifest names no worker; see `cacp thread scaffold`")
    worker = make_adapter(manifest.worker)
    healer = make_adapter(manifest.healer) if manifest.healer else None
    for adapter in (worker, healer):
        if adapter is not None:
            health = adapter.healthcheck(os.environ, project.workspace)
            if not health.ready:
                raise NotReady("; ".join(health.details))
    return worker, healer


def check_budget(budget: Budget, adapters: Sequence[Adapter | None]) -> None:
    """Raises NotReady when a CLI never reports what the budget limits."""
    if budget == Budget():
        return
    for name, adapter in zip(("worker", "healer"), adapters, strict=True):
        if adapter is not None and not adapter.reports_usage:
            raise NotReady(
                f"policy.budget: it cannot be kept, as {name} {adapter.id} with the output "
                f"{adapter.spec.output} reports neither tokens nor cost; let it write JSON, if it "
                "can, or remove the budget"
            )


def make_site(
    project: ThreadProject, folder: Path, tell: Callable[[str | None], None] = lambda _: None
) -> WorkSite:
    """Where tasks work. `tell` is called with what the site waits for, and None when that ends."""
    if project.manifest.isolation == "worktree":
        from threader.worktree import WorktreeSite

        return WorktreeSite(project, folder, tell)
    return SharedSite(project, folder)
