"""Checks of URLs that the node is asked to call (design §6), as endpoints are an attack surface.

Parsing is stricter than any URL library's, so that the URL that is checked is the one called later.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from server.domain.errors import Forbidden, InvalidInput

URL_MAX = 2_000
_DEFAULT_PORTS = {"http": 80, "https": 443}

_URL_CHARACTERS = re.compile(r"[!-~]+")
_ODD_CHARACTERS = re.compile(r'["<>\\^`{|}]')
_AUTHORITY = re.compile(
    r"(\[[0-9a-f]*:[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.IGNORECASE
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

_METADATA = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",  # AWS, Azure, Google and most others
            "100.100.100.200",  # Alibaba
            "168.63.129.16",  # Azure's host
            "192.0.0.192",  # Oracle
            "fd00:ec2::254",  # AWS
            "fd20:ce::254",  # Google
            "fd00:42::42",  # Scaleway
        ),
    )
)
_REFUSED_NETWORKS: dict[IPv4Network | IPv6Network, str] = {
    IPv4Network("0.0.0.0/8"): "unspecified",
    IPv4Network("169.254.0.0/16"): "link-local",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "reserved or broadcast",
    IPv6Network("::/128"): "unspecified",
    IPv6Network("fe80::/10"): "link-local",
    IPv6Network("ff00::/8"): "multicast",
    IPv6Network("2001::/32"): "a Teredo tunnel's",
    IPv6Network("64:ff9b:1::/48"): "a local translator's",
}
_IPV4_INSIDE: dict[IPv6Network, int] = {
    IPv6Network("::/96"): 0,
    IPv6Network("::ffff:0:0/96"): 0,
    IPv6Network("::ffff:0:0:0/96"): 0,
    IPv6Network("64:ff9b::/96"): 0,
    IPv6Network("2002::/16"): 80,
}
"""IPv6 networks whose addresses contain an IPv4 address (mapped, NAT64, 6to4, …), and its offset
from the right, in bits."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A URL that may be called if its host resolves to addresses that `check_address` accepts."""

    url: str
    scheme: str
    host: str
    """A name in lower case, or an address without brackets."""
    port: int


def check_endpoint(url: str, *, loopback_allowed: bool) -> Endpoint:
    """The endpoint that `url` names.

    Raises InvalidInput when it is not a plain http(s) URL, and Forbidden for an address that the
    node never calls (`refused_address`, `loopback_endpoint`).
    """
    if not 0 < len(url) <= URL_MAX:
        raise _invalid(f"should have 1 to {URL_MAX} characters")
    if not _URL_CHARACTERS.fullmatch(url) or _ODD_CHARACTERS.search(url):
        raise _invalid("should hold only the ASCII characters of a URL; write a host as xn--…")
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _DEFAULT_PORTS:
        raise _invalid("should start with http:// or https://")
    if "#" in rest:
        raise _invalid("should have no fragment (#…)")
    authority = re.split("[/?]", rest, maxsplit=1)[0]
    if "@" in authority:
        raise _invalid("should name no user or password before the host")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise _invalid("should name a host and optionally a port, such as http://api.example:8080")
    host = _check_host(match[1].lower(), loopback_allowed=loopback_allowed)
    port = int(match[2]) if match[2] else _DEFAULT_PORTS[scheme]
    if not 0 < port < 65536:
        raise _invalid("should name a port from 1 to 65535")
    return Endpoint(url, scheme, host, port)


def place(url: str) -> str:
    """The normalised form of `url`: URLs with the same form lead to the same node.

    Raises InvalidInput when it is not a plain http(s) URL, or has a query.

    >>> place("HTTP://Node.example/"), place("http://node.example:80")
    ('http://node.example:80', 'http://node.example:80')
    """
    endpoint = check_endpoint(url, loopback_allowed=True)
    if "?" in url:
        raise _invalid("should have no query (?…)")
    _, _, path = url.partition("://")[2].partition("/")
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.scheme}://{host}:{endpoint.port}/{path}".rstrip("/")


def check_address(address: str, *, loopback_allowed: bool, private_allowed: bool = True) -> None:
    """Raises Forbidden unless the node may connect to this address; call it after resolving a name.

    Link-local, metadata, multicast, unspecified and reserved addresses are always refused, also
    inside IPv6 addresses. Loopback is refused unless allowed. Private addresses are normal in a
    mesh; other calls may use them only by setting. Raises InvalidInput when it is not an address.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        raise InvalidInput(f"{address} is not an IP address") from None
    if isinstance(ip, IPv6Address):
        ip = _carried(int(ip))
    if ip.is_loopback:
        if not loopback_allowed:
            raise Forbidden(
                f"{address} is a loopback address; only a node that listens on loopback calls it",
                reason="loopback_endpoint",
            )
        return
    if ip in _METADATA:
        raise _refused(address, "a metadata service's")
    for network, kind in _REFUSED_NETWORKS.items():
        if ip in network:
            raise _refused(address, kind)
    if not private_allowed and not ip.is_global:
        raise Forbidden(
            f"{address} is in a private network, which is not called here",
            reason="private_address",
        )


def _check_host(host: str, *, loopback_allowed: bool) -> str:
    if host.startswith("["):
        address = host[1:-1]
        check_address(address, loopback_allowed=loopback_allowed)
        return address
    if host.endswith("."):
        raise _invalid("should name the host without a trailing dot")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _check_ipv4(host, loopback_allowed=loopback_allowed)
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise _invalid("should name a host by letters, digits, hyphens and single dots")
    if labels[-1] == "localhost" and not loopback_allowed:
        raise Forbidden(
            f"{host} is this machine; only a node that listens on loopback calls it",
            reason="loopback_endpoint",
        )
    return host


def _check_ipv4(host: str, *, loopback_allowed: bool) -> str:
    """Raises InvalidInput for forms such as 0x7f.1, 017700000001 and 2130706433, which resolvers
    also read as addresses."""
    try:
        address = IPv4Address(host)
    except ValueError:
        raise _invalid("should write an IPv4 address as four decimal numbers: 192.0.2.1") from None
    check_address(str(address), loopback_allowed=loopback_allowed)
    return host


def _carried(number: int) -> IPv4Address | IPv6Address:
    """The IPv4 address inside an IPv6 address, else the address itself, without a zone. `::` and
    `::1` contain none."""
    address = IPv6Address(number)
    if number > 1:
        for network, shift in _IPV4_INSIDE.items():
            if address in network:
                return IPv4Address(number >> shift & 0xFFFFFFFF)
    return address


def _invalid(problem: str) -> InvalidInput:
    return InvalidInput(f"An endpoint {problem}", reason="invalid_endpoint")


def _refused(address: str, kind: str) -> Forbidden:
    return Forbidden(
        f"{address} is {kind} address; the node never calls it", reason="refused_address"
    )


def is_loopback(host: str) -> bool:
    """Whether `host` names only this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
