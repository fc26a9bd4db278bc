"""The node's settings: `CACP_*` variables, a TOML file (`--config`), and flags of `cacp serve`."""

import socket
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from schemas.problems import problem_of
from server.domain.acp.message_rate import BROADCAST, DIRECT, Kind, Limit
from server.domain.acp.pushes import Terms
from server.domain.acp.routing import CHANNELS, Channel, capabilities
from server.domain.acp.rules import MailRules
from server.domain.acp.threads import Bounds
from server.domain.agents import identity
from server.domain.bans import TrustedBans
from server.domain.endpoints import check_endpoint, is_loopback
from server.domain.errors import Refusal
from server.domain.location import Location, check_database_url, file_path, location_of
from server.secret_files import with_secrets

MEBIBYTE = 1024 * 1024
TOKEN_MIN = 24


class Settings(BaseSettings):
    """Flags override variables, variables the file, and the file the defaults."""

    model_config = SettingsConfigDict(
        env_prefix="CACP_", extra="ignore", frozen=True, env_ignore_empty=True
    )

    _flags: frozenset[str] = PrivateAttr(frozenset())

    host: str = Field("127.0.0.1", description="Address to listen on; loopback by default")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one")
    db: Annotated[Path, AfterValidator(file_path)] = Field(
        Path("data/cacp.db"),
        description="The SQLite file; it and its folder are created if missing",
    )
    database_url: SecretStr = Field(
        SecretStr(""),
        description="A PostgreSQL database for any number of replicas in place of the file, such "
        "as postgresql://user@host/cacp; `db` then only names the operator's key file and the like",
    )
    database_password_file: Path | None = Field(
        None,
        description="File with the password for database_url, such as a secret of a container; a "
        "password in the URL precedes it",
    )
    agent_id: str = Field(
        "", max_length=200, description="This node's agent id (AID); made from repo by default"
    )
    repo: str = Field("local", min_length=1, max_length=200, description="This node's repository")
    role: str = Field(
        "shared", max_length=200, description="Its role: backend, frontend, mobile, shared, infra"
    )
    language: str = Field("unknown", max_length=200, description="Its main language")
    public_url: str = Field(
        "",
        description="URL at which others reach this node; http://HOST:PORT by default. Unless it "
        "is a loopback URL, every caller needs a key",
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Host names that calls with a key may use, besides loopback's "
        "(comma-separated); any by default",
    )
    bootstrap_key_file: Path | None = Field(
        None, description="File with the first key; created with mode 0600 on first start if absent"
    )
    durability: Literal["FULL", "NORMAL"] = Field(
        "FULL",
        description="SQLite's synchronous mode; NORMAL may lose the last writes in a power cut, "
        "and only warns about an unreadable end of the log, with which FULL refuses to start",
    )
    trust_unkeyed_peers: bool | None = Field(
        None,
        description="Trust a registered peer without a key on its own repo's facts; by default "
        "only while just this machine reaches the node",
    )
    mesh_token: SecretStr = Field(
        SecretStr(""),
        description="Secret that the nodes of a mesh share, 24 characters or more; during a "
        "rotation the new and the old one, separated by a comma",
    )
    mesh_token_file: Path | None = Field(
        None, description="File with the mesh token, such as a secret of a container"
    )
    peers: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="URLs of nodes to register with at start (comma-separated)"
    )
    bans_from: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Agent ids of nodes, once peers, whose bans apply here too (comma-separated)",
    )
    sync_seconds: float = Field(
        60.0, gt=0, description="Seconds between two comparisons with a peer, plus or minus half"
    )
    future_limit: int = Field(
        86_400,
        ge=300,
        description="Seconds that the stamps of what peers send may be ahead of this node's time; "
        "messages further ahead are deferred until then, or until an operator accepts them",
    )
    body_limit: int = Field(1 * MEBIBYTE, ge=1024, description="Bytes of a request's body, at most")
    file_body_limit: int = Field(
        14 * MEBIBYTE, ge=1024, description="Bytes of a request that carries a file, at most"
    )
    file_copies_bytes: int = Field(
        256 * MEBIBYTE, ge=0, description="Bytes of copies of other nodes' files, at most"
    )
    answer_limit: int = Field(64 * MEBIBYTE, ge=MEBIBYTE, description="Bytes of an answer, at most")
    answer_budget: int = Field(
        128 * MEBIBYTE, ge=MEBIBYTE, description="Bytes of all unfinished answers, at most"
    )
    batch_limit: int = Field(100, ge=1, description="Members of a JSON-RPC batch, at most")
    rate_limit: int | None = Field(
        None,
        ge=0,
        description="Requests per caller and minute, at most; 0 sets no limit; by default none "
        "while just this machine reaches the node, 6000 otherwise",
    )
    connections: int = Field(
        4096, ge=1, description="Open connections, at most; fewer if file descriptors are scarce"
    )
    connections_per_address: int = Field(
        512,
        ge=0,
        description="Open connections from one address, at most, such as that of a proxy; 0 sets "
        "no limit",
    )
    event_streams: int = Field(200, ge=1, description="Open event streams, at most")
    event_streams_per_caller: int = Field(20, ge=1, description="An agent's event streams, at most")
    adp_url: str = Field(
        "", description="The ADP exchange to search and register at; none by default"
    )
    adp_key: SecretStr | None = Field(
        None, description="The key for calls to the exchange, if it needs one"
    )
    adp_register: bool = Field(
        False, description="Register this node at the exchange at start, and stay registered"
    )
    known_agents: bool = Field(
        False,
        description="Let agents that ADP lists, and that prove their identity, read without a key",
    )
    exchange: bool = Field(
        False, description="Serve as an ADP exchange for others: /v1/search/, /v1/register/, …"
    )
    handoff_sla_seconds: int = Field(
        24 * 3600, ge=1, description="Seconds until an accepted handoff is escalated"
    )
    handoff_offer_seconds: int = Field(
        3 * 24 * 3600, ge=1, description="Seconds until an unaccepted offer expires"
    )
    handoff_evidence: Literal["word", "checked"] = Field(
        "word",
        description="What agents here need to accept a handoff whose tests are said to pass: the "
        "sender's word, or evidence that was checked (`cacp handoff check`)",
    )
    artifact_roots: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description="Folders in which the files of handoffs are checked against their sha256 "
        "(comma-separated); none by default",
    )
    artifact_bytes: int = Field(
        256 * MEBIBYTE, ge=0, description="Bytes of a file that is checked, at most"
    )
    workq_url: str = Field(
        "",
        description="The JSON-RPC gateway that moves the ownership of workq items (workq.release, "
        "workq.claim); without one, operators move it by hand",
    )
    workq_key: SecretStr | None = Field(
        None, description="The key for calls to the gateway, if it needs one"
    )
    teamspaces_root: Path | None = Field(
        None, description="Folder for the logs of teamspaces as JSON Lines; by default none"
    )
    acp_direct_per_minute: int = Field(
        10, ge=0, le=10, description="ACP messages to named recipients per sender and minute"
    )
    acp_broadcasts_per_hour: int = Field(
        5, ge=0, le=5, description="ACP broadcasts per sender and hour"
    )
    acp_coordinators: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Agent ids that have coordinator authority on this node when they call with "
        "their keys (comma-separated); the operator and humans have it too",
    )
    acp_human_nodes: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Agent ids of the peers that are trusted on which of their agents are humans, "
        "for the approval of handoffs that this node holds (comma-separated)",
    )
    acp_thread_hops: int = Field(
        64, ge=1, description="ACP replies to replies in a row, at most: a guard against loops"
    )
    acp_thread_rounds: int = Field(
        1_000, ge=1, description="ACP messages per sender and thread: a guard against loops"
    )
    acp_session_injection: bool | None = Field(
        None,
        description="Show running sessions of agents what waits for them, by hooks and streams: "
        "true all sessions, false none; by default those on the node's machine",
    )
    acp_channel_notify: bool = Field(
        False, description="Notify recipients of high and critical ACP messages by webhook"
    )
    acp_wake: bool = Field(
        False, description="Wake recipients of ACP messages by acp_wake_commands"
    )
    acp_wake_commands: dict[str, list[str]] = Field(
        {},
        description="The command that wakes an agent, by agent id: a list of words, run without a "
        "shell; JSON in a variable",
    )
    acp_wake_priority: Literal["normal", "high", "critical"] = Field(
        "critical", description="The lowest priority of ACP messages that wake their recipients"
    )
    acp_wake_seconds: float = Field(
        30.0, gt=0, le=600, description="Seconds that a wake command may take before it is killed"
    )
    acp_webhook_seconds: float = Field(
        10.0, gt=0, le=60, description="Seconds that a webhook may take to answer"
    )
    acp_webhook_private: bool = Field(
        False, description="Allow webhooks in private networks, not only on the internet"
    )
    acp_push_lease_seconds: float = Field(
        300.0, gt=0, description="Seconds before an unacknowledged ACP message is pushed again"
    )
    acp_push_retry_seconds: float = Field(
        5.0, gt=0, description="Seconds before a failed push is retried; each failure doubles them"
    )
    acp_push_attempts: int = Field(
        12, ge=1, le=100, description="Failed attempts after which a push is given up"
    )
    acp_retention_days: int = Field(90, ge=1, description="Days until ACP messages are archived")
    page_session_seconds: int = Field(
        43_200, ge=60, description="Seconds of a page session at most"
    )
    page_idle_seconds: int = Field(7_200, ge=60, description="Seconds until an unused session ends")
    shutdown_seconds: int = Field(
        10, ge=1, description="Seconds that open requests get to finish at SIGTERM"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest severity that is logged"
    )
    log_format: Literal["auto", "console", "json"] = Field(
        "auto", description="Log lines for people or machines; auto picks by the kind of stderr"
    )

    @model_validator(mode="before")
    @classmethod
    def _read_secrets(cls, values: dict[str, Any]) -> dict[str, Any]:
        return with_secrets(values)

    @field_validator("mesh_token")
    @classmethod
    def _check_tokens(cls, value: SecretStr) -> SecretStr:
        if any(len(token) < TOKEN_MIN for token in _split(value.get_secret_value())):
            raise ValueError(
                f"should have {TOKEN_MIN} characters or more; `openssl rand -hex 24` makes one"
            )
        return value

    @field_validator("database_url")
    @classmethod
    def _check_database(cls, value: SecretStr) -> SecretStr:
        check_database_url(value.get_secret_value())
        return value

    @field_validator("public_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            usable = parts.scheme in ("http", "https") and parts.hostname
        except ValueError:
            usable = False
        if value and not usable:
            raise ValueError("should be a URL such as https://cacp.example")
        return value

    @field_validator("acp_wake_commands")
    @classmethod
    def _check_commands(cls, value: dict[str, list[str]]) -> dict[str, list[str]]:
        for agent_id, words in value.items():
            if not words or not words[0] or any("\0" in word for word in words):
                raise ValueError(
                    f"{agent_id}: should be a list of words that begins with a program, "
                    'such as ["/usr/local/bin/wake", "backend"]'
                )
        return value

    @model_validator(mode="after")
    def _check_adp(self) -> Self:
        for name, url in (("adp_url", self.adp_url), ("workq_url", self.workq_url)):
            try:
                if url:
                    check_endpoint(url, loopback_allowed=self.loopback)
            except Refusal as refusal:
                raise ValueError(f"{name}: {refusal.message}") from None
        if self.adp_register and not self.adp_url:
            raise ValueError("adp_register needs adp_url, the exchange to register at")
        if self.known_agents and not self.exchange and not self.adp_url:
            raise ValueError("known_agents needs adp_url, the exchange that lists the agents")
        return self

    @field_validator("artifact_roots", "teamspaces_root", mode="after")
    @classmethod
    def _check_folders(cls, value: Any) -> Any:
        for folder in value if isinstance(value, tuple) else (value,):
            if folder is not None and not folder.is_absolute():
                raise ValueError(f"{folder} should be an absolute path")
        return value

    @field_validator(
        "allowed_hosts",
        "peers",
        "acp_coordinators",
        "acp_human_nodes",
        "bans_from",
        "artifact_roots",
        mode="before",
    )
    @classmethod
    def _split_list(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        names = _split(value)
        if not names and info.field_name == "allowed_hosts":
            raise ValueError("must name a host; unset it to allow any host")
        return names

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def flags(self) -> frozenset[str]:
        """The settings that were given to `load` as flags."""
        return self._flags

    @property
    def loopback(self) -> bool:
        """Whether the node listens on loopback only."""
        return is_loopback(self.host)

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach the node; they may call without a key.

        False when `public_url` is not a loopback URL: behind a proxy that adds no headers, every
        remote caller would look like a program of this machine.
        """
        host = urlsplit(self.public_url).hostname or ""
        return self.loopback and (not self.public_url or is_loopback(host))

    @property
    def location(self) -> Location:
        """Where the node's database is."""
        return location_of(self.database_url.get_secret_value(), self.db)

    @property
    def mesh_tokens(self) -> tuple[str, ...]:
        """The mesh tokens that this node accepts; it shows the first one to others."""
        return _split(self.mesh_token.get_secret_value())

    @property
    def agent(self) -> str:
        """The node's own agent id."""
        return self.agent_id or f"aid://localhost/{self.repo}@1.0.0"

    @property
    def trusted_bans(self) -> TrustedBans:
        """The nodes whose bans apply here."""
        return TrustedBans.of(self.agent, self.bans_from)

    @property
    def url(self) -> str:
        """The URL at which others reach this node."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = self.host
        if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
            host = socket.gethostname()
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def requests_per_minute(self) -> int:
        if self.rate_limit is None:
            return 0 if self.is_local else 6_000
        return self.rate_limit

    @property
    def acp_rules(self) -> MailRules:
        """The operator's rules for ACP messages."""
        flags: dict[Channel, bool] = {
            "session": self.acp_session_injection is not False,
            "channel": self.acp_channel_notify,
            "wake": self.acp_wake,
        }
        limits: dict[Kind, Limit] = {
            "direct": DIRECT._replace(most=self.acp_direct_per_minute),
            "broadcast": BROADCAST._replace(most=self.acp_broadcasts_per_hour),
        }
        return MailRules(
            limits=limits,
            bounds=Bounds(self.acp_thread_hops, self.acp_thread_rounds),
            coordinators=frozenset(map(identity, self.acp_coordinators)),
            human_nodes=frozenset(map(identity, self.acp_human_nodes)),
            capabilities=capabilities(
                frozenset(name for name, on in flags.items() if on),
                frozenset(CHANNELS if self.acp_wake_commands else set(CHANNELS) - {"wake"}),
            ),
            remote_sessions=self.acp_session_injection is True,
            pushes=Terms(
                lease=int(self.acp_push_lease_seconds * 1_000_000),
                retry=int(self.acp_push_retry_seconds * 1_000_000),
                attempts=self.acp_push_attempts,
            ),
            private_webhooks=self.acp_webhook_private,
            wakes=frozenset(map(identity, self.acp_wake_commands)),
            wake_from=self.acp_wake_priority,
            retention=self.acp_retention_days * 24 * 3600 * 1_000_000,
        )

    @property
    def takes_unkeyed_peers(self) -> bool:
        return self.is_local if self.trust_unkeyed_peers is None else self.trust_unkeyed_peers


def load(config: Path | None = None, **flags: Any) -> Settings:
    """Read the settings. A flag that is None leaves its setting to the environment and the file.

    Raises ValueError with one line per wrong setting, naming it and what would be right.
    """
    if config is not None and not config.is_file():
        raise ValueError(f"--config: the file {config} does not exist")
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        settings = _with_file(config)(**given)
        settings._flags = frozenset(given)
        return settings
    except ValidationError as error:
        raise ValueError(
            "\n".join(
                f"{'.'.join(map(str, item['loc'])) or 'settings'} (CACP_"
                f"{str(item['loc'][0]).upper() if item['loc'] else '…'}): "
                f"{problem_of(item)}"
                for item in error.errors()
            )
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"--config: {config} is not TOML: {error}") from None


def _with_file(config: Path | None) -> type[Settings]:
    if config is None:
        return Settings

    class FileSettings(Settings):
        model_config = SettingsConfigDict(toml_file=config, extra="forbid")

    return FileSettings


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
