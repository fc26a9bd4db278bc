"""What can be said of the deployment files without a container engine or a cluster."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from typer.main import get_command

from cli.comply import app
from server.http.health import PROBE_PATIENCE
from server.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
UNIT = (DEPLOY / "cacp.service").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NODE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["node"]
MESH = yaml.safe_load((DEPLOY / "compose.mesh.yaml").read_text())
OBJECTS = {
    item["kind"]: item for item in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
}
POD = OBJECTS["StatefulSet"]["spec"]["template"]
CONTAINER = POD["spec"]["containers"][0]
OPTIONS = {str(one.envvar) for one in get_command(app).commands["run"].params if one.envvar}  # type: ignore[attr-defined]
"""What `cacp comply run` takes from variables."""
SHUTDOWN_SECONDS = Settings.model_fields["shutdown_seconds"].default


def instructions(*names: str) -> list[str]:
    """The arguments of the Dockerfile's instructions of these names, continued lines joined."""
    joined = re.sub(r"\\\n\s*", "", DOCKERFILE)
    split = (line.split(maxsplit=1) for line in joined.splitlines() if line.strip())
    return [rest[0] for name, *rest in split if name in names]


def copied() -> list[str]:
    """What the Dockerfile copies from the repository."""
    return [
        source
        for line in instructions("COPY")
        if not line.startswith("--from")
        for source in line.split()[:-1]
    ]


def healthcheck() -> list[str]:
    (line,) = instructions("HEALTHCHECK")
    command = json.loads(line.split("CMD", 1)[1])
    assert isinstance(command, list)
    return command


class TestDockerfile:
    def test_hadolint_finds_nothing(self) -> None:
        hadolint = Path(sys.executable).with_name("hadolint")
        done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "")

    def test_every_stage_starts_from_one_pinned_python(self) -> None:
        images = {line.split()[0] for line in instructions("FROM")}
        assert len(images) == 1
        assert re.fullmatch(r"python:3\.1[1-3]-slim-[a-z]+", images.pop())

    def test_the_node_is_a_user_without_a_name_and_owns_only_the_volume(self) -> None:
        assert instructions("USER") == ["10001:10001"]
        assert instructions("VOLUME") == instructions("WORKDIR")[1:] == ["/data"]
        assert "--mode 0700 --owner 10001 --group 10001 /data" in DOCKERFILE

    def test_the_node_gets_signals_itself(self) -> None:
        """A shell in between would keep SIGTERM from it."""
        assert [json.loads(line) for line in instructions("ENTRYPOINT", "CMD")] == [
            ["cacp"],
            ["serve"],
        ]
        assert healthcheck()

    def test_only_locked_packages_are_installed(self) -> None:
        installs = re.findall(r"install (--.*?)(?: &&|$)", "\n".join(instructions("RUN")), re.M)
        locks = [re.findall(r"-r (\S+)", line) for line in installs if "-r" in line]
        assert locks == [["requirements.lock"], ["requirements-build.lock"]]
        for line in installs:
            assert re.match(r"--require-hashes|--no-deps|--directory", line)
        for lock in ROOT.glob("requirements*.lock"):
            pinned = re.split(r"\n(?=\S)", lock.read_text().strip())
            assert all("==" in entry and "--hash=sha256:" in entry for entry in pinned)

    def test_it_copies_what_is_there_and_every_package(self) -> None:
        assert [source for source in copied() if not (ROOT / source).exists()] == []
        assert set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= {*copied()}

    def test_the_build_is_sent_only_what_it_copies(self) -> None:
        lines = (ROOT / ".dockerignore").read_text().splitlines()
        sent = {line[1:] for line in lines if line.startswith("!")}
        assert "*" in lines
        assert sent == {*copied()}
        assert any(fnmatch("server/__pycache__", line) for line in lines if line != "*")


class TestNames:
    @pytest.mark.parametrize(
        "file",
        [
            "Dockerfile",
            "compose.yaml",
            *(f"deploy/{path.name}" for path in sorted(DEPLOY.glob("*.*"))),
        ],
    )
    def test_every_variable_is_a_setting_or_an_option(self, file: str) -> None:
        known = {f"CACP_{name.upper()}" for name in Settings.model_fields} | OPTIONS
        assert {*re.findall(r"CACP_[A-Z_0-9]+", (ROOT / file).read_text())} <= known

    def test_the_images_bear_the_projects_version(self) -> None:
        image = f"cacp-server:{PROJECT['project']['version']}"
        meshed = {node["image"] for node in MESH["services"].values()}
        assert {NODE["image"], CONTAINER["image"], *meshed} == {image}


class TestCompose:
    def test_it_builds_this_and_is_reached_from_this_host_only(self) -> None:
        assert NODE["build"] == "."
        assert NODE["ports"] == ["127.0.0.1:8080:8080"]

    def test_it_can_write_to_its_volume_only(self) -> None:
        assert NODE["volumes"] == ["data:/data"]

    @pytest.mark.parametrize("node", [NODE, *MESH["services"].values()])
    def test_a_node_is_started_again_and_may_do_little(self, node: dict[str, Any]) -> None:
        assert node["restart"] == "unless-stopped"
        assert node["read_only"] is True
        assert [mount.split(":")[0] for mount in node["tmpfs"]] == ["/tmp"]
        assert node["cap_drop"] == ["ALL"]
        assert node["security_opt"] == ["no-new-privileges:true"]
        assert int(node["stop_grace_period"].removesuffix("s")) > SHUTDOWN_SECONDS

    @pytest.mark.parametrize("node", [NODE, *MESH["services"].values()])
    def test_its_healthcheck_is_the_images(self, node: dict[str, Any]) -> None:
        check = node["healthcheck"]
        assert check["test"] == ["CMD", *healthcheck()]
        (line,) = instructions("HEALTHCHECK")
        for option in ("interval", "timeout", "start_period"):
            assert f"--{option.replace('_', '-')}={check[option]} " in line


class TestMesh:
    """deploy/compose.mesh.yaml."""

    NODES: ClassVar[dict[str, Any]] = MESH["services"]

    def test_three_nodes_as_the_single_one_each_with_its_volume(self) -> None:
        own = {"build", "environment", "ports", "volumes", "secrets"}
        common = {name: value for name, value in NODE.items() if name not in own}
        for name, node in self.NODES.items():
            assert {key: value for key, value in node.items() if key not in own} == common
            assert (DEPLOY / node["build"]).resolve() == ROOT
            assert node["volumes"] == [f"{name}:/data"]
        assert set(MESH["volumes"]) == set(self.NODES)
        assert len(self.NODES) == 3

    def test_each_knows_both_others_by_the_names_of_their_services(self) -> None:
        urls = {name: f"http://{name}:8080" for name in self.NODES}
        for name, node in self.NODES.items():
            settings = node["environment"]
            assert settings["CACP_PUBLIC_URL"] == urls[name]
            assert set(settings["CACP_PEERS"].split(",")) == {*urls.values()} - {urls[name]}
            assert settings["CACP_REPO"].startswith(f"{name}-")

    def test_they_are_reached_from_this_host_only(self) -> None:
        ports = [port for node in self.NODES.values() for port in node["ports"]]
        assert ports == [f"127.0.0.1:{port}:8080" for port in (8081, 8082, 8083)]

    def test_one_secret_comes_as_a_file_that_git_leaves_alone(self) -> None:
        [(name, secret)] = MESH["secrets"].items()
        for node in self.NODES.values():
            assert node["secrets"] == [name]
            assert node["environment"]["CACP_MESH_TOKEN_FILE"] == f"/run/secrets/{name}"
            assert "CACP_MESH_TOKEN" not in node["environment"]
        assert f"/deploy/{secret['file']}" in (ROOT / ".gitignore").read_text().splitlines()

    def test_each_starts_with_its_settings(self, tmp_path: Path) -> None:
        """As the image gives them, with a file for the secret."""
        (tmp_path / "token").write_text("a token that is long enough for it\n")
        image = dict(
            pair.split("=", 1)
            for pair in " ".join(instructions("ENV")).split()
            if pair.startswith("CACP_")
        )
        for node in self.NODES.values():
            given = image | node["environment"]
            given["CACP_MESH_TOKEN_FILE"] = str(tmp_path / "token")
            settings = Settings(
                **{name.removeprefix("CACP_").lower(): value for name, value in given.items()}
            )
            assert settings.mesh_tokens
            assert len(settings.peers) == 2
            assert not settings.loopback


class TestKubernetes:
    def test_one_node_and_its_volume(self) -> None:
        spec = OBJECTS["StatefulSet"]["spec"]
        assert spec["replicas"] == 1
        assert spec["serviceName"] == OBJECTS["Service"]["metadata"]["name"]
        mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
        assert mounts == {"data": "/data", "tmp": "/tmp"}
        assert spec["volumeClaimTemplates"][0]["metadata"]["name"] == "data"

    def test_the_service_finds_the_pod(self) -> None:
        labels = POD["metadata"]["labels"]
        assert OBJECTS["Service"]["spec"]["selector"] == labels
        assert OBJECTS["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
        (port,) = CONTAINER["ports"]
        assert OBJECTS["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
        assert str(port["containerPort"]) in instructions("EXPOSE")

    def test_no_variable_of_a_service_is_taken_for_a_setting(self) -> None:
        """Kubernetes would set CACP_PORT=tcp://… for a Service named cacp."""
        assert POD["spec"]["enableServiceLinks"] is False

    def test_the_pod_may_do_little(self) -> None:
        user = int(instructions("USER")[0].split(":")[0])
        pod, container = POD["spec"]["securityContext"], CONTAINER["securityContext"]
        assert pod["runAsNonRoot"] is True
        assert pod["runAsUser"] == pod["runAsGroup"] == pod["fsGroup"] == user
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["readOnlyRootFilesystem"] is True
        assert container["allowPrivilegeEscalation"] is False
        assert container["capabilities"] == {"drop": ["ALL"]}
        assert POD["spec"]["automountServiceAccountToken"] is False

    def test_the_key_file_stays_closed_to_the_group(self) -> None:
        assert POD["spec"]["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"

    def test_a_database_in_trouble_makes_the_node_unready_but_restarts_nothing(self) -> None:
        assert CONTAINER["livenessProbe"]["httpGet"]["path"] == "/live"
        assert CONTAINER["readinessProbe"]["httpGet"]["path"] == "/ready"
        assert CONTAINER["readinessProbe"]["timeoutSeconds"] > PROBE_PATIENCE

    def test_open_requests_may_finish(self) -> None:
        assert POD["spec"]["terminationGracePeriodSeconds"] > SHUTDOWN_SECONDS


class TestUnit:
    def test_systemd_reads_it(self, tmp_path: Path) -> None:
        """Where systemd is; the tests below read the text everywhere."""
        analyze = shutil.which("systemd-analyze")
        here = UNIT.replace("/opt/cacp/bin/cacp", str(Path(sys.executable).with_name("cacp")))
        (tmp_path / "cacp.service").write_text(here)
        if analyze is not None:
            done = subprocess.run(
                [analyze, "verify", "--man=no", tmp_path / "cacp.service"],
                capture_output=True,
                text=True,
                env={**os.environ, "SYSTEMD_LOG_TARGET": "console"},
            )
            about_us = [line for line in done.stderr.splitlines() if "cacp.service" in line]
            assert (done.returncode, about_us) == (0, [])

    def test_it_runs_the_node_as_a_user_of_its_own(self) -> None:
        options = unit_options()
        assert options["ExecStart"] == "/opt/cacp/bin/cacp serve"
        assert options["DynamicUser"] == "yes"
        assert options["CapabilityBoundingSet"] == ""
        assert options["UMask"] == "0077"

    def test_its_data_is_in_the_state_directory(self) -> None:
        options = unit_options()
        assert options["StateDirectory"] == "cacp"
        assert options["WorkingDirectory"] == "%S/cacp"
        values = dict(pair.split("=", 1) for pair in options["Environment"].split())
        assert values == {
            "CACP_DB": "%S/cacp/cacp.db",
            "CACP_BOOTSTRAP_KEY_FILE": "%S/cacp/key",
        }

    def test_open_requests_may_finish(self) -> None:
        assert int(unit_options()["TimeoutStopSec"]) > SHUTDOWN_SECONDS


def unit_options() -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z]+)=(.*)$", UNIT, re.MULTILINE))
