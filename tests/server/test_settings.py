"""Settings: flags over variables over the file over the defaults."""

import os
from pathlib import Path
from typing import Any

import pytest

from server.domain.endpoints import is_loopback
from server.settings import Settings, load


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CACP_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cacp.toml"
    path.write_text('port = 1111\nrepo = "from-file"\nallowed_hosts = ["a.example"]\n')
    return path


def test_defaults_are_a_private_node() -> None:
    settings = load()
    assert settings.host == "127.0.0.1"
    assert settings.db == Path("data/cacp.db")
    assert settings.loopback
    assert settings.is_local
    assert settings.takes_unkeyed_peers
    assert settings.durability == "FULL"
    assert settings.agent == "aid://localhost/local@1.0.0"
    assert settings.url == "http://127.0.0.1:8080"


def test_the_file_wins_over_the_defaults(file: Path) -> None:
    settings = load(file)
    assert (settings.port, settings.repo) == (1111, "from-file")
    assert settings.allowed_hosts == ("a.example",)


def test_variables_win_over_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACP_PORT", "2222")
    monkeypatch.setenv("CACP_ALLOWED_HOSTS", "b.example, c.example,")
    settings = load(file)
    assert (settings.port, settings.repo) == (2222, "from-file")
    assert settings.allowed_hosts == ("b.example", "c.example")


def test_flags_win_over_all(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACP_PORT", "2222")
    assert load(file, port=3333).port == 3333


def test_a_flag_that_is_not_given_leaves_the_rest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACP_PORT", "2222")
    assert load(port=None, repo="mine").port == 2222


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACP_PORT", "")
    assert load().port == 8080


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("port", "65536", "should be 65535 or less"),
        ("port", "http", "should be a whole number"),
        ("repo", "r" * 201, "at most 200 characters"),
        ("durability", "OFF", "FULL or NORMAL"),
        ("log_level", "loud", "debug, info"),
        ("body_limit", "10", "should be 1024 or more"),
        ("rate_limit", "-1", "should be 0 or more"),
        ("trust_unkeyed_peers", "perhaps", "true or false"),
        ("allowed_hosts", ",,", "must name a host"),
        ("public_url", "ftp://cacp.example", "https://cacp.example"),
        ("public_url", "cacp.example", "https://cacp.example"),
        ("public_url", "http://[::1", "https://cacp.example"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, right: str
) -> None:
    monkeypatch.setenv(f"CACP_{name.upper()}", value)
    with pytest.raises(ValueError, match=right) as error:
        load()
    assert str(error.value).startswith(f"{name} (CACP_{name.upper()}): ")
    assert "Value error" not in str(error.value)


def test_each_wrong_value_gets_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACP_PORT", "-1")
    monkeypatch.setenv("CACP_BATCH_LIMIT", "0")
    with pytest.raises(ValueError, match="port") as error:
        load()
    assert len(str(error.value).splitlines()) == 2


def test_a_misspelt_name_in_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cacp.toml"
    path.write_text("prot = 1\n")
    with pytest.raises(ValueError, match="prot"):
        load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--config: the file .*none\.toml does not exist"):
        load(tmp_path / "none.toml")


def test_a_file_that_is_no_toml_is_refused_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "cacp.toml"
    path.write_text("port: 1\n")
    with pytest.raises(ValueError, match=r"cacp\.toml is not TOML: .*line 1"):
        load(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"cacp\.toml is not TOML"):
        load(path)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_which_hosts_are_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    assert Settings(host=host).loopback is loopback


@pytest.mark.parametrize(
    ("host", "given", "taken"),
    [
        ("127.0.0.1", None, True),
        ("0.0.0.0", None, False),
        ("127.0.0.1", False, False),
        ("0.0.0.0", True, True),
    ],
)
def test_unkeyed_peers_are_taken_by_default_only_on_loopback(
    host: str, given: bool | None, taken: bool
) -> None:
    assert Settings(host=host, trust_unkeyed_peers=given).takes_unkeyed_peers is taken


@pytest.mark.parametrize(
    ("host", "given", "limit"),
    [("127.0.0.1", None, 0), ("0.0.0.0", None, 6_000), ("0.0.0.0", 0, 0), ("127.0.0.1", 7, 7)],
)
def test_requests_are_limited_by_default_only_when_exposed(
    host: str, given: int | None, limit: int
) -> None:
    assert Settings(host=host, rate_limit=given).requests_per_minute == limit


def test_the_url_is_what_others_can_reach() -> None:
    assert Settings(public_url="https://cacp.example/").url == "https://cacp.example"
    assert Settings(host="::1", port=1).url == "http://[::1]:1"
    assert "0.0.0.0" not in Settings(host="0.0.0.0").url


def test_an_agent_id_wins_over_the_one_made_from_the_repo() -> None:
    assert Settings(repo="web").agent == "aid://localhost/web@1.0.0"
    assert Settings(repo="web", agent_id="aid://x.example/web@2.0.0").agent.endswith("2.0.0")


def test_a_mesh_token_is_long_and_is_not_shown() -> None:
    """Design §6: a short one could be guessed from what a false endpoint sees."""
    with pytest.raises(ValueError, match="24 characters") as refused:
        load(mesh_token="too short to be one")
    assert "too short" not in str(refused.value)
    settings = load(mesh_token=f"{'a' * 24}, {'b' * 24}", peers=("http://a",))
    assert settings.mesh_tokens == ("a" * 24, "b" * 24)
    assert "aaa" not in repr(settings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"adp_url": "ftp://x"}, "adp_url: An endpoint should start with http://"),
        ({"adp_url": "http://169.254.169.254"}, "metadata service's address"),
        ({"adp_url": "http://127.0.0.1", "host": "0.0.0.0"}, "only a node that listens on loopb"),
        ({"adp_register": True}, "adp_register needs adp_url"),
        ({"known_agents": True}, "known_agents needs adp_url"),
    ],
)
def test_settings_of_adp_that_can_not_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load(**given)


def test_an_exchange_of_its_own_is_enough_to_know_agents() -> None:
    assert load(known_agents=True, exchange=True).known_agents


def test_the_key_for_the_exchange_is_not_shown() -> None:
    settings = load(adp_key="cacp_sk_secret")
    assert settings.adp_key is not None
    assert settings.adp_key.get_secret_value() == "cacp_sk_secret"
    assert "cacp_sk_secret" not in f"{settings!r} {settings.model_dump_json()}"


TOKEN = "a token that a container is given"


def test_the_mesh_token_may_stand_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(f"{TOKEN}\n")
    settings = load(mesh_token_file=secret)
    assert settings.mesh_tokens == (TOKEN,)
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    ("content", "given", "said"),
    [
        (None, {}, "can't be read: No such file"),
        (b"", {}, "is empty"),
        (b"\xff\xfe", {}, "can't be read: it is not text"),
        (b"short", {}, "24 characters or more"),
        (TOKEN.encode(), {"mesh_token": TOKEN}, "are both given"),
    ],
)
def test_a_file_that_can_not_be_the_mesh_token_is_named(
    tmp_path: Path, content: bytes | None, given: dict[str, Any], said: str
) -> None:
    secret = tmp_path / "token"
    if content is not None:
        secret.write_bytes(content)
    with pytest.raises(ValueError, match=said) as refused:
        load(mesh_token_file=secret, **given)
    assert "CACP_MESH_TOKEN" in str(refused.value)
    assert TOKEN not in str(refused.value)


def test_limits_of_mail_are_tightened_only() -> None:
    """acp-canonical §10.3: defaults may be tightened only."""
    rules = load(acp_direct_per_minute=3, acp_coordinators="aid://x/a@1.0.0, b").acp_rules
    assert (rules.limits["direct"].most, rules.limits["broadcast"].most) == (3, 5)
    assert rules.coordinators == {"aid://x/a", "b"}
    assert load().acp_rules.human_nodes == frozenset(), "no peer's word on humans, unasked"
    assert load(acp_human_nodes="aid://x/n@1.0.0").acp_rules.human_nodes == {"aid://x/n"}
    wrong: tuple[dict[str, Any], ...] = (
        {"acp_direct_per_minute": 11},
        {"acp_broadcasts_per_hour": 6},
    )
    for wider in wrong:
        with pytest.raises(ValueError, match="or less"):
            load(**wider)


def test_channels_are_off_until_their_flags_are_set() -> None:
    """acp-canonical §10.1."""
    assert load().acp_rules.capabilities["wake"] == "disabled"
    assert load(acp_wake=True).acp_rules.capabilities["wake"] == "unavailable"


@pytest.mark.parametrize(
    ("given", "state", "remote"),
    [(None, "available", False), (True, "available", True), (False, "disabled", False)],
)
def test_sessions_on_the_nodes_machine_are_served_by_default(
    given: bool | None, state: str, remote: bool
) -> None:
    rules = load(acp_session_injection=given).acp_rules
    assert (rules.capabilities["session"], rules.remote_sessions) == (state, remote)


@pytest.mark.parametrize(
    ("host", "public_url", "is_local"),
    [
        ("127.0.0.1", "", True),
        ("::1", "http://localhost:9000", True),
        ("127.0.0.1", "http://[::1]:9000/", True),
        ("127.0.0.1", "https://cacp.example.org", False),
        ("127.0.0.1", "http://192.168.1.5:8080", False),
        ("0.0.0.0", "", False),
        ("0.0.0.0", "http://localhost:8080", False),
    ],
)
def test_a_node_that_others_reach_is_not_local(host: str, public_url: str, is_local: bool) -> None:
    """Design §6: a bare proxy makes each visitor a program of this machine."""
    settings = Settings(host=host, public_url=public_url)
    assert settings.is_local == is_local
    assert settings.takes_unkeyed_peers == is_local
    assert settings.requests_per_minute == (0 if is_local else 6_000)
