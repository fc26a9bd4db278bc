"""The files that run replicas: what can be said of them without an engine, and the proxy itself."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import Popen
from typing import Any

import httpx
import pytest
import yaml

from server.http.health import PROBE_PATIENCE
from server.settings import load
from tests.deploy.test_deploy import (
    CONTAINER,
    DEPLOY,
    NODE,
    POD,
    ROOT,
    SHUTDOWN_SECONDS,
    healthcheck,
    instructions,
)
from tests.support import postgresql
from tests.support.node import NO_TLS, Node, bearer, free_port
from tests.support.waiting import eventually

COMPOSE = yaml.safe_load((DEPLOY / "compose.replicas.yaml").read_text())
SERVICES = COMPOSE["services"]
REPLICAS = {name: one for name, one in SERVICES.items() if name.startswith("replica-")}
PROXY, DATABASE = SERVICES["proxy"], SERVICES["database"]
CONFIG = (DEPLOY / "haproxy.cfg").read_text()
OBJECTS = {
    item["kind"]: item
    for item in yaml.safe_load_all((DEPLOY / "kubernetes.replicas.yaml").read_text())
}
DEPLOYMENT = OBJECTS["Deployment"]["spec"]
REPLICA_POD = DEPLOYMENT["template"]
REPLICA = REPLICA_POD["spec"]["containers"][0]


def image_variables() -> dict[str, str]:
    pairs = (pair.split("=", 1) for pair in " ".join(instructions("ENV")).split() if "=" in pair)
    return {name: value for name, value in pairs if name.startswith("CACP_")}


class TestCompose:
    """deploy/compose.replicas.yaml."""

    def test_three_replicas_as_the_single_node_and_each_alike(self) -> None:
        own = {"build", "environment", "ports", "volumes", "secrets", "depends_on", "networks"}
        common = {name: value for name, value in NODE.items() if name not in own}
        first = REPLICAS["replica-1"]
        assert len(REPLICAS) == 3
        for replica in REPLICAS.values():
            assert replica == first
            assert {key: value for key, value in replica.items() if key not in own} == common
        assert (DEPLOY / first["build"]).resolve() == ROOT

    def test_they_are_one_node(self) -> None:
        """What tells a node to others is the same; the proxy's address is the node's."""
        own = {"CACP_DATABASE_URL", "CACP_DATABASE_PASSWORD_FILE", "CACP_CONNECTIONS_PER_ADDRESS"}
        given = REPLICAS["replica-1"]["environment"]
        shared = {name: value for name, value in given.items() if name not in own}
        assert shared == NODE["environment"]
        assert PROXY["ports"] == NODE["ports"]

    def test_only_the_proxy_is_reached_and_only_the_replicas_reach_the_database(self) -> None:
        assert [name for name, one in SERVICES.items() if "ports" in one] == ["proxy"]
        assert COMPOSE["networks"]["back"] == {"internal": True}
        within = {name: set(one["networks"]) for name, one in SERVICES.items()}
        assert within.pop("proxy") == {"front"}
        assert within.pop("database") == {"back"}
        assert set(map(frozenset, within.values())) == {frozenset({"front", "back"})}

    def test_the_password_comes_as_a_file_that_git_leaves_alone(self) -> None:
        [(name, secret)] = COMPOSE["secrets"].items()
        for one in (DATABASE, *REPLICAS.values()):
            assert one["secrets"] == [name]
        path = f"/run/secrets/{name}"
        assert DATABASE["environment"]["POSTGRES_PASSWORD_FILE"] == path
        assert REPLICAS["replica-1"]["environment"]["CACP_DATABASE_PASSWORD_FILE"] == path
        assert f"/deploy/{secret['file']}" in (ROOT / ".gitignore").read_text().splitlines()

    def test_a_replica_starts_with_its_settings(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "password").write_text("a password\n")
        given = image_variables() | REPLICAS["replica-1"]["environment"]
        given |= {"CACP_PUBLIC_URL": "http://localhost:8080"}
        given |= {"CACP_DATABASE_PASSWORD_FILE": str(tmp_path / "password")}
        for name, value in given.items():
            monkeypatch.setenv(name, value or "")
        settings = load()
        user, database = (
            DATABASE["environment"][name] for name in ("POSTGRES_USER", "POSTGRES_DB")
        )
        url = f"postgresql://{user}@database/{database}?password=a%20password"
        assert settings.location == url
        assert not settings.is_local, "every caller needs a key"

    @pytest.mark.parametrize("one", [PROXY, DATABASE])
    def test_the_others_may_do_as_little(self, one: dict[str, Any]) -> None:
        for name in ("restart", "read_only", "cap_drop", "security_opt", "logging"):
            assert one[name] == NODE[name]
        assert {"mem_limit", "pids_limit", "healthcheck", "stop_grace_period"} <= set(one)
        assert one["image"].split(":")[0] in ("haproxy", "postgres")
        assert one["image"].split(":")[1][0].isdigit(), "an image of a known version"

    def test_the_database_is_kept_where_its_image_has_it(self) -> None:
        major = int(DATABASE["image"].split(":")[1])
        assert major >= 18, "earlier images have it in a folder below"
        assert DATABASE["volumes"] == ["database:/var/lib/postgresql"]
        assert set(COMPOSE["volumes"]) == {"keys", "database"}
        assert DATABASE["user"] == "postgres"


class TestKubernetes:
    """deploy/kubernetes.replicas.yaml."""

    def test_three_replicas_of_which_no_upgrade_takes_one_away(self) -> None:
        assert DEPLOYMENT["replicas"] == 3
        rolling = {"maxUnavailable": 0, "maxSurge": 1}
        assert DEPLOYMENT["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
        assert OBJECTS["PodDisruptionBudget"]["spec"]["minAvailable"] == 2

    def test_all_that_selects_them_finds_them(self) -> None:
        labels = REPLICA_POD["metadata"]["labels"]
        spec = REPLICA_POD["spec"]
        assert OBJECTS["Service"]["spec"]["selector"] == labels
        [spread] = spec["topologySpreadConstraints"]
        [apart] = spec["affinity"]["podAntiAffinity"][
            "preferredDuringSchedulingIgnoredDuringExecution"
        ]
        for one in (
            DEPLOYMENT["selector"],
            OBJECTS["PodDisruptionBudget"]["spec"]["selector"],
            spread["labelSelector"],
            apart["podAffinityTerm"]["labelSelector"],
        ):
            assert one == {"matchLabels": labels}
        assert REPLICA["ports"] == CONTAINER["ports"]
        assert OBJECTS["Service"]["spec"]["ports"][0]["targetPort"] == REPLICA["ports"][0]["name"]

    def test_a_pod_may_do_as_little_as_a_single_node(self) -> None:
        for name in ("enableServiceLinks", "automountServiceAccountToken", "securityContext"):
            assert REPLICA_POD["spec"][name] == POD["spec"][name]
        for name in ("image", "securityContext", "resources", "startupProbe", "livenessProbe"):
            assert REPLICA[name] == CONTAINER[name]

    def test_one_without_its_database_is_left_out_and_not_restarted(self) -> None:
        assert REPLICA["livenessProbe"]["httpGet"]["path"] == "/live"
        assert REPLICA["readinessProbe"]["httpGet"]["path"] == "/ready"
        assert REPLICA["readinessProbe"]["timeoutSeconds"] > PROBE_PATIENCE

    def test_open_requests_may_finish(self) -> None:
        pause = int(REPLICA["lifecycle"]["preStop"]["exec"]["command"][1])
        assert REPLICA_POD["spec"]["terminationGracePeriodSeconds"] > SHUTDOWN_SECONDS + pause

    def test_secrets_come_from_one_that_the_readme_makes(self) -> None:
        variables = {one["name"]: one for one in REPLICA["env"]}
        taken = variables["CACP_DATABASE_URL"]["valueFrom"]["secretKeyRef"]
        [volume] = [one for one in REPLICA_POD["spec"]["volumes"] if "secret" in one]
        keys = {taken["key"], *(item["key"] for item in volume["secret"]["items"])}
        assert taken["name"] == volume["secret"]["secretName"]
        # Group-readable at most: the node refuses a key that others can read or write.
        assert not volume["secret"]["defaultMode"] & 0o027
        readme = (DEPLOY / "README.md").read_text()
        assert f"kubectl create secret generic {taken['name']} " in readme
        assert all(f"--from-literal={key}=" in readme for key in keys)
        mounts = {mount["name"]: mount["mountPath"] for mount in REPLICA["volumeMounts"]}
        file = variables["CACP_BOOTSTRAP_KEY_FILE"]["value"]
        assert file == f"{mounts[volume['name']]}/{volume['secret']['items'][0]['path']}"


def test_the_proxy_waits_for_longer_than_a_probe_and_than_a_call() -> None:
    times = dict(line.split()[1:3] for line in CONFIG.splitlines() if "    timeout " in line)
    assert float(times["check"].removesuffix("s")) > PROBE_PATIENCE
    assert float(times["server"].removesuffix("s")) > 60, "the longest wait of a call"


def test_the_proxys_check_is_of_a_ready_node() -> None:
    assert PROXY["healthcheck"]["test"][-1] == "http://127.0.0.1:8080/ready"
    assert healthcheck()[-1].endswith("healthcheck.py")


class Upstream:
    """In the place of a replica: ready or not, and it may drop a request that it has read."""

    def __init__(self) -> None:
        self.ready, self.drops = True, False
        self.posts = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                well = outer.ready or self.path == "/live"
                self._answer(200 if well else 503)

            def do_POST(self) -> None:
                outer.posts += 1
                self.rfile.read(int(self.headers["content-length"]))
                if outer.drops:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self._answer(200 if outer.ready else 503)

            def _answer(self, status: int) -> None:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def proxy(folder: Path, ports: list[int]) -> Iterator[httpx.Client]:
    """HAProxy with the deployed configuration, before servers on these ports of loopback."""
    port = free_port()
    config = CONFIG.replace("bind :8080", f"bind 127.0.0.1:{port}")
    for number, there in enumerate(ports, start=1):
        config = config.replace(f" replica-{number}:8080", f" 127.0.0.1:{there}")
    # Names are not looked up here, and checks come more often than a test may wait.
    config = config.replace(" resolvers engine init-addr last,libc,none", "")
    config = config.replace("check inter 2s", "check inter 100ms")
    (folder / "haproxy.cfg").write_text(config)
    with (folder / "haproxy.log").open("w") as log:
        process = Popen(["haproxy", "-db", "-f", folder / "haproxy.cfg"], stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=url, timeout=60, verify=NO_TLS) as client:
            eventually(lambda: _answers(client))
            yield client
    finally:
        process.kill()
        process.wait()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/ready").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.needs("haproxy")
class TestProxy:
    """deploy/haproxy.cfg, in HAProxy."""

    @pytest.fixture
    def upstreams(self) -> Iterator[list[Upstream]]:
        with ExitStack() as stack:
            made = [Upstream() for _ in range(3)]
            for upstream in made:
                stack.callback(upstream.close)
            yield made

    def test_a_request_that_was_sent_is_not_sent_again(
        self, tmp_path: Path, upstreams: list[Upstream]
    ) -> None:
        with proxy(tmp_path, [one.port for one in upstreams]) as client:
            for upstream in upstreams:
                upstream.drops = True
            # On a connection that was used before, the proxy ends that of the caller instead.
            with suppress(httpx.RemoteProtocolError):
                assert client.post("/", content=b"{}").status_code == 502
            assert sum(upstream.posts for upstream in upstreams) == 1

    def test_who_is_not_ready_gets_nothing(self, tmp_path: Path, upstreams: list[Upstream]) -> None:
        with proxy(tmp_path, [one.port for one in upstreams]) as client:
            upstreams[0].ready = upstreams[1].ready = False

            def only_the_third() -> bool:
                before = upstreams[2].posts
                for _ in range(6):
                    client.post("/", content=b"{}")
                return upstreams[2].posts == before + 6

            eventually(only_the_third)
            upstreams[0].ready = True
            before = upstreams[0].posts
            eventually(lambda: client.post("/", content=b"{}") and upstreams[0].posts > before)

    def test_without_any_that_is_ready_one_that_runs_says_why(
        self, tmp_path: Path, upstreams: list[Upstream]
    ) -> None:
        """An answer of a node, in place of a page of the proxy."""
        with proxy(tmp_path, [one.port for one in upstreams]) as client:
            for upstream in upstreams:
                upstream.ready = False
            eventually(lambda: client.get("/ready").status_code == 503)
            sent = sum(upstream.posts for upstream in upstreams)
            for number in range(1, 7):
                answer = client.post("/", content=b"{}")
                assert (answer.status_code, answer.content) == (503, b"")
                assert sum(upstream.posts for upstream in upstreams) == sent + number

    def test_real_replicas_behind_it(self, tmp_path: Path) -> None:
        """A stream is passed on at once; of a killed replica only what it was doing is lost."""
        with ExitStack() as stack:
            url = stack.enter_context(postgresql.database())
            nodes = []
            for number in range(3):
                (folder := tmp_path / f"{number}").mkdir()
                file = {"bootstrap_key_file": tmp_path / "key", "database_url": str(url)}
                nodes.append(stack.enter_context(Node(folder, **file)))
            key = bearer((tmp_path / "key").read_text().strip())
            client = stack.enter_context(proxy(tmp_path, [node.port for node in nodes]))
            assert _create(client, {}) == 401, "it shows that a caller comes from elsewhere"
            with client.stream("GET", "/events", headers=key) as events:
                lines = events.iter_lines()
                while not next(lines).startswith(":"):
                    pass
                assert _create(client, key) == 200
                while "project" not in next(lines):
                    pass
            nodes[0].kill()
            assert [_create(client, key) for _ in range(9)].count(200) >= 8
            eventually(lambda: _create(client, key) == 200)


def _create(client: httpx.Client, headers: dict[str, str]) -> int:
    params = {"name": "p", "objective": "o"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "cacp/project/create", "params": params}
    try:
        return client.post("/", json=call, headers=headers).status_code
    except httpx.TransportError:
        return 0
