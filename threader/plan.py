"""The stable order of a manifest's tasks, and which are ready (agent-threader-v2 §5). Pure."""

import heapq
from collections.abc import Callable, Iterable, Sequence

from schemas.manifest import ManifestTask


def find_cycle(tasks: Sequence[ManifestTask]) -> list[str] | None:
    """The ids of one dependency cycle, first repeated at the end, or None."""
    needs = {task.id: list(task.depends_on) for task in tasks}
    done: set[str] = set()
    for root in needs:
        path: list[str] = []
        on_path: set[str] = set()
        stack: list[tuple[str, int]] = [(root, 0)]
        while stack:
            node, index = stack.pop()
            if index == 0:
                if node in done:
                    continue
                if node in on_path:
                    return [*path[path.index(node) :], node]
                path.append(node)
                on_path.add(node)
            deps = needs.get(node, [])
            if index < len(deps):
                stack += [(node, index + 1), (deps[index], 0)]
            else:
                path.pop()
                on_path.discard(node)
                done.add(node)
    return None


def stable_order(tasks: Sequence[ManifestTask]) -> list[str]:
    """All ids: dependencies first, then by depth, priority and place in the manifest (§5).

    The dependencies must exist and be free of cycles.
    """
    needs = {task.id: task.depends_on for task in tasks}
    depth: dict[str, int] = {}
    stack = [task.id for task in reversed(tasks)]
    while stack:
        node = stack[-1]
        open_deps = [dep for dep in needs[node] if dep not in depth]
        if open_deps:
            stack += open_deps
            continue
        stack.pop()
        depth[node] = 1 + max((depth[dep] for dep in needs[node]), default=-1)
    place = {task.id: (depth[task.id], task.priority, i) for i, task in enumerate(tasks)}
    return sorted(place, key=place.__getitem__)


class ReadyQueue:
    """The pending tasks whose dependencies are DONE, in stable order.

    Each change costs O(log n), so that the last task of a large manifest costs what the first did.
    """

    def __init__(self, tasks: Sequence[ManifestTask], done: Iterable[str]) -> None:
        self.order = stable_order(tasks)
        self._rank = {task_id: rank for rank, task_id in enumerate(self.order)}
        finished = set(done)
        self._waits_for: dict[str, set[str]] = {
            task.id: {dep for dep in task.depends_on if dep not in finished} for task in tasks
        }
        self._dependents: dict[str, list[str]] = {}
        for task in tasks:
            for dep in task.depends_on:
                self._dependents.setdefault(dep, []).append(task.id)
        self._heap: list[int] = []
        self._queued: set[str] = set()

    def rank(self, task_id: str) -> int:
        """The task's place in the stable order, from 0."""
        return self._rank[task_id]

    def offer(self, task_id: str) -> None:
        """Queue a PENDING task, if its dependencies are DONE."""
        if task_id not in self._queued and not self._waits_for[task_id]:
            self._queued.add(task_id)
            heapq.heappush(self._heap, self._rank[task_id])

    def finished(self, task_id: str) -> list[str]:
        """Note a DONE task; returns the tasks for which it was the last missing dependency."""
        freed = []
        for other in self._dependents.get(task_id, []):
            waits = self._waits_for[other]
            if task_id in waits:
                waits.discard(task_id)
                if not waits:
                    freed.append(other)
        return freed

    def take(self, limit: int, eligible: Callable[[str], bool] = lambda _: True) -> list[str]:
        """Remove and return up to `limit` ready tasks that are `eligible`, in stable order."""
        taken: list[str] = []
        passed: list[int] = []
        while self._heap and len(taken) < limit:
            rank = heapq.heappop(self._heap)
            task_id = self.order[rank]
            if eligible(task_id):
                self._queued.discard(task_id)
                taken.append(task_id)
            else:
                passed.append(rank)
        for rank in passed:
            heapq.heappush(self._heap, rank)
        return taken
