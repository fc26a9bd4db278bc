"""Who provides contracts to whom in a project, and what a change of one reaches."""

from collections.abc import Mapping
from typing import Any

from server.domain.matrix_text import SIGNS
from server.page.view import VIEWS, Page, PageCall, url_of, view
from server.page.views.matrix import legend

ROWS_MAX = 100
NODES_MAX = 80
EDGES_MAX = 120
"""The most repos and lines that are drawn: more are hard to read, and slow to lay out."""
NAMED_MAX = 60
"""The most lines that are drawn with more than a number."""
CHOICES = ("repo", "provider", "consumer")
Json = dict[str, Any]


@view(
    "graph",
    "/ui/projects/{project_id}/graph",
    title="Graph",
    kinds=("contract", "repo", "project"),
)
def graph(call: PageCall) -> Page:
    """Who provides contracts to whom in a project, and what a change of one reaches."""
    project_id = call.path["project_id"]
    shown: Json = call.ask(
        "cacp/project/graph",
        projectId=project_id,
        contractId=call.query.get("contract"),
        **{name: call.query.get(name) for name in CHOICES},
        limit=ROWS_MAX,
        cursor=call.query.get("after"),
    )
    names = {repo["repoId"]: repo.get("name", "unknown repo") for repo in shown["repos"]}
    reach = shown.get("reach")
    pairs = chosen_pairs(shown["pairs"], names, call.query)
    drawing = draw(project_id, shown | {"pairs": pairs}, names)
    return shown | {
        "names": names,
        "nextCursor": shown.get("nextCursor"),
        "reach": reach and reach | {"levels": levels(reach)},
        "drawing": drawing,
        "legend": legend(),
        "choice": {
            name: names.get(value, value)
            for name in CHOICES
            if (value := call.query.get(name)) is not None
        },
        "leftOut": len(pairs) - len(drawing["edges"]),
        "contractHref": _contract_href(project_id, reach),
    }


def chosen_pairs(pairs: list[Json], names: dict[str, str], query: Mapping[str, str]) -> list[Json]:
    """The pairs with a repo, a provider or a consumer that the query names, by id or name."""

    def fits(name: str, *repo_ids: str) -> bool:
        wanted = query.get(name)
        return wanted is None or any(wanted in (id, names[id]) for id in repo_ids)

    return [
        pair
        for pair in pairs
        if fits("provider", pair["providerId"])
        and fits("consumer", pair["consumerId"])
        and fits("repo", pair["providerId"], pair["consumerId"])
    ]


def levels(reach: Json) -> list[Json]:
    """What is reached, by the number of steps: the repos, and the contracts that they provide."""
    last = max((repo["steps"] for repo in reach["repos"]), default=0)
    return [
        {
            "steps": steps,
            "repos": [repo for repo in reach["repos"] if repo["steps"] == steps],
            "contracts": [
                contract for contract in reach["contracts"] if contract["steps"] == steps
            ],
        }
        for steps in range(1, last + 1)
    ]


def draw(project_id: str, shown: Json, names: dict[str, str]) -> Json:
    """The graph as `graph.js` takes it. What a change of the chosen contract reaches is marked, the
    rest is faint."""
    reach = shown.get("reach")
    edges, repos = reached_parts(reach)
    pairs = sorted(shown["pairs"], key=lambda pair: _ends(pair) not in edges)[:EDGES_MAX]
    ends = {repo_id for pair in pairs for repo_id in _ends(pair)}
    joined = [repo for repo in shown["repos"] if repo["repoId"] in ends]
    drawn = sorted(joined, key=lambda repo: repo["repoId"] not in repos)[:NODES_MAX]
    ids = {repo["repoId"] for repo in drawn}
    return {
        "nodes": [
            _node(project_id, repo, names, _look(reach, repo["repoId"] in repos)) for repo in drawn
        ],
        "edges": [
            _edge(project_id, pair, names, _look(reach, _ends(pair) in edges))
            | ({"label": _number(pair)} if len(pairs) > NAMED_MAX else {})
            for pair in pairs
            if ids.issuperset(_ends(pair))
        ],
    }


def _number(pair: Json) -> str:
    return f"{SIGNS[pair['state']]} {pair['contracts']}"


def reached_parts(reach: Json | None) -> tuple[set[tuple[str, str]], set[str]]:
    """The pairs of repos, and the repos, that a change goes through."""
    pairs = {
        (contract["providerId"], repo_id)
        for contract in (reach["contracts"] if reach else ())
        for repo_id in contract["consumerIds"]
    }
    itself = {contract["providerId"] for contract in (reach["contracts"][:1] if reach else ())}
    return pairs, itself | {repo_id for pair in pairs for repo_id in pair}


def _ends(pair: Json) -> tuple[str, str]:
    return pair["providerId"], pair["consumerId"]


def _look(reach: Json | None, is_reached: bool) -> str:
    if reach is None:
        return ""
    return "marked" if is_reached else "faint"


def _node(project_id: str, repo: Json, names: dict[str, str], look: str) -> Json:
    name = names[repo["repoId"]]
    provides = f"provides {repo['provides']}, consumes {repo['consumes']}"
    return {
        "id": repo["repoId"],
        "label": name,
        "note": repo.get("role", "not known here"),
        "state": "known" if "name" in repo else "unknown",
        "href": url_of("graph", project_id=project_id, repo=repo["repoId"]),
        "title": provides,
        "look": look,
    }


def _edge(project_id: str, pair: Json, names: dict[str, str], look: str) -> Json:
    provider, consumer = _ends(pair)
    states = ", ".join(f"{count} {state}" for state, count in pair["states"].items())
    count = pair["contracts"]
    only = pair.get("contractId")
    chosen = {"contract": only} if only else {"provider": provider, "consumer": consumer}
    return {
        "from": provider,
        "to": consumer,
        "label": f"{SIGNS[pair['state']]} {pair.get('contract', f'{count} contracts')}",
        "state": pair["state"],
        "href": url_of("graph", project_id=project_id, **chosen),
        "title": f"{names[provider]} to {names[consumer]}: {states}"
        + (f": {pair['contract']}" if only else ""),
        "look": look,
    }


def _contract_href(project_id: str, reach: Json | None) -> str | None:
    if reach is None or "contract" not in VIEWS:
        return None
    return url_of("contract", project_id=project_id, contract_id=reach["contractId"])
