"""cacp/project/matrix and cacp/project/graph: all contracts of a project at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.domain.errors import NotFound
from tests.support.in_process_node import InProcessNode
from tests.support.shop import Shop

Json = dict[str, Any]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with InProcessNode(tmp_path) as node:
        yield Shop(node)


def matrix(shop: Shop, **params: Any) -> Json:
    shown: Json = shop.call("api", "project/matrix", **params)
    return shown


def graph(shop: Shop, **params: Any) -> Json:
    shown: Json = shop.call("api", "project/graph", **params)
    return shown


def test_each_cell_says_who_must_do_what(shop: Shop) -> None:
    verified = shop.verified("api", ("web", "ios"))
    proposed = shop.proposed("web", ("api",))
    shown = matrix(shop)
    assert [row["contractId"] for row in shown["contracts"]] == [verified, proposed]
    done, waiting = shown["contracts"]
    assert (done["status"], done["verified"], waiting["verified"]) == ("verified", 3, 0)
    assert [cell["side"] for cell in done["cells"]] == ["provider", "consumer", "consumer"]
    assert {cell["evidence"] for cell in done["cells"]} == {"word"}
    assert {cell["by"] for cell in done["cells"]} == {shop.ids["web"]}
    web, api = waiting["cells"]
    assert (web["state"], web["side"]) == ("agreed", "consumer"), "it wrote the proposal"
    assert (api["state"], api["side"], api["awaited"]) == ("awaited", "provider", "respond")
    assert "evidence" not in api


def test_the_totals_are_those_of_all_contracts(shop: Shop) -> None:
    shop.verified()
    shop.agreed("pay", ("api",))
    shown = matrix(shop, missing=True, limit=1)
    assert shown["matching"] == 1
    assert shown["totals"] == {
        "complete": False,
        "contracts": 2,
        "verified": 1,
        "proven": 0,
        "cells": 4,
        "verifiedCells": 2,
        "awaited": {"implement": 2},
    }
    columns = {repo["name"]: repo for repo in shown["repos"]}
    assert list(columns) == ["api", "web", "ios", "pay"]
    assert (columns["api"]["contracts"], columns["api"]["verified"]) == (2, 1)
    assert columns["api"]["awaited"] == {"implement": 1}
    assert (columns["ios"]["contracts"], columns["ios"]["awaited"]) == (0, {})
    assert columns["web"]["agentId"] == "aid://example.com/web@1.0.0"


def test_it_is_complete_when_all_is_verified(shop: Shop) -> None:
    assert matrix(shop)["totals"]["complete"] is False
    shop.verified()
    assert matrix(shop)["totals"]["complete"] is True
    assert matrix(shop, missing=True)["contracts"] == []


def test_one_repo_by_name_or_id_and_page_by_page(shop: Shop) -> None:
    first, _, third = shop.proposed(), shop.proposed("pay", ("ios",)), shop.proposed()
    page = matrix(shop, repo="web", limit=1)
    assert ([row["contractId"] for row in page["contracts"]], page["matching"]) == ([first], 2)
    rest = matrix(shop, repo=shop.ids["web"], cursor=page["nextCursor"])
    assert [row["contractId"] for row in rest["contracts"]] == [third]
    assert "nextCursor" not in rest
    with pytest.raises(NotFound, match="no repo nobody: it has api, web, ios, pay"):
        matrix(shop, repo="nobody")


def test_a_party_that_is_not_known_here_has_a_column(shop: Shop) -> None:
    shop.proposed()
    shop.node.db.execute("DELETE FROM repos WHERE name = 'web'")
    [*_, unknown] = matrix(shop)["repos"]
    assert unknown == {"repoId": shop.ids["web"], "contracts": 1, "verified": 0} | {
        "awaited": {"respond": 1}
    }
    assert matrix(shop, repo=shop.ids["web"])["matching"] == 1
    [*_, unknown] = graph(shop)["repos"]
    assert unknown == {"repoId": shop.ids["web"], "provides": 0, "consumes": 1}


def test_repos_are_joined_by_what_one_provides_to_the_other(shop: Shop) -> None:
    shop.verified("api", ("web", "ios"))
    shop.verified("api", ("web",), result="failure")
    charge = shop.agreed("pay", ("api",))
    shown = graph(shop, provider="pay")
    names = {repo_id: name for name, repo_id in shop.ids.items()}
    joined = [
        (names[pair["providerId"]], names[pair["consumerId"]], pair["state"], pair["states"])
        for pair in shown["pairs"]
    ]
    assert joined[0] == ("api", "web", "broken", {"verified": 1, "broken": 1})
    assert sorted(joined[1:]) == [
        ("api", "ios", "verified", {"verified": 1}),
        ("pay", "api", "agreed", {"agreed": 1}),
    ]
    assert {pair.get("contract") for pair in shown["pairs"]} == {
        None,
        "api for web, ios",
        "pay for api",
    }
    [contract] = shown["contracts"]
    assert (contract["contractId"], shown["matching"]) == (charge, 1)
    assert contract["consumers"] == [
        {"repoId": shop.ids["api"], "state": "agreed", "awaited": "implement"}
    ]
    assert graph(shop, consumer="web", limit=1)["matching"] == 2
    assert graph(shop, repo="api")["matching"] == 3
    assert graph(shop, repo="ios", provider="pay")["matching"] == 0
    counts = {repo["name"]: (repo["provides"], repo["consumes"]) for repo in shown["repos"]}
    assert counts == {"api": (2, 1), "web": (0, 2), "ios": (0, 1), "pay": (1, 0)}


def test_what_a_change_of_a_contract_reaches(shop: Shop) -> None:
    charge = shop.proposed("pay", ("api",), name="charge")
    users = shop.proposed("api", ("web", "ios"), name="users")
    reached = graph(shop, contractId=charge)["reach"]
    itself, next_ = reached["contracts"]
    assert reached["contractId"] == itself["contractId"] == charge
    assert (itself["steps"], itself["providerId"]) == (0, shop.ids["pay"])
    assert (next_["contractId"], next_["name"], next_["steps"]) == (users, "users", 1)
    assert next_["consumerIds"] == [shop.ids["web"], shop.ids["ios"]]
    steps = {repo["repoId"]: repo["steps"] for repo in reached["repos"]}
    assert steps == {shop.ids["api"]: 1, shop.ids["web"]: 2, shop.ids["ios"]: 2}
    assert "reach" not in graph(shop)
    with pytest.raises(NotFound, match="no contract nope"):
        graph(shop, contractId="nope")
