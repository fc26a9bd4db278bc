"""`cacp demo`: the whole walk, on a real node of its own."""

from tests.cli.run import process


def test_it_walks_a_contract_to_verified_and_leaves_nothing() -> None:
    # A newcomer's own settings must not reach the scratch node.
    done = process("demo", "--fast", port="1", db="/nonexistent/x.db", key="x")
    assert done.returncode == 0, done.stderr
    for part in (
        "contract/propose",
        "contractStatus=negotiating",
        "● verified",
        "asks: What does an expired coupon answer?",
        "- response.discount: number",
        "+ response.discount_cents: integer",
        "verifies: it works together",
        "the node and its data are removed",
    ):
        assert part in done.stdout
    assert "cacp_sk_" not in done.stdout
