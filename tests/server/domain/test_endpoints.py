"""SSRF rules for registered endpoints (design §6)."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.endpoints import Endpoint, check_address, check_endpoint, place
from server.domain.errors import Forbidden, InvalidInput, Refusal

GOOD = {
    "http://localhost:8081": ("http", "localhost", 8081),
    "HTTPS://API.Example.com/cacp?team=a": ("https", "api.example.com", 443),
    "http://backend_api:8080/": ("http", "backend_api", 8080),
    "http://10.1.2.3": ("http", "10.1.2.3", 80),
    "http://192.168.0.7:65535/a@b": ("http", "192.168.0.7", 65535),
    "http://[fd12:3456::1]:8080": ("http", "fd12:3456::1", 8080),
    "http://[2606:4700::1111]": ("http", "2606:4700::1111", 80),
    "http://xn--mnchen-3ya.example": ("http", "xn--mnchen-3ya.example", 80),
    "http://127.0.0.1:1": ("http", "127.0.0.1", 1),
    "http://[::1]:8080": ("http", "::1", 8080),
}

MALFORMED = [
    "",
    "http://",
    "http:///path",
    "http://?q",
    "//example.com",
    "example.com:8080",
    "ftp://example.com",
    "file:///etc/passwd",
    "gopher://example.com",
    "unix:/run/docker.sock",
    "javascript:alert(1)",
    "http:/example.com",
    "http:example.com",
    "http://user@example.com",
    "http://user:secret@example.com",
    "http://example.com@169.254.169.254/",
    "http://example.com#@169.254.169.254/",
    "http://example.com/#fragment",
    "http://example.com\\@169.254.169.254/",
    "http://example.com:80:80",
    "http://example.com:",
    "http://example.com:0",
    "http://example.com:65536",
    "http://example.com:-1",
    "http://example.com:８０",
    "http://example.com.",
    "http://127.0.0.1.",
    "http://exa mple.com",
    " http://example.com",
    "http://example.com\n",
    "http://example.com\r\nX-Agent-ID: x",
    "http://example.com\t/",
    "http://example.com\x00",
    "http://%31%32%37.0.0.1",
    "http://münchen.example",
    "http://①②⑦.⓪.⓪.①",
    "http://127。0。0。1",
    "http://localhoſt",
    "http://-example.com",
    "http://example-.com",
    "http://a..example.com",
    "http://.example.com",
    f"http://{'a' * 64}.example",
    f"http://{'a.' * 127}ab",
    f"http://example.com/{'a' * 2_000}",
    # IPv4 in the spellings that a resolver takes, and no person writes.
    "http://2130706433",
    "http://0x7f000001",
    "http://0X7F.0.0.1",
    "http://017700000001",
    "http://0177.0.0.1",
    "http://127.1",
    "http://127.0.1",
    "http://127.0.0.01",
    "http://127.0.0.0x1",
    "http://127.0.0.1.0",
    "http://127.0.0.256",
    "http://0",
    "http://0x",
    "http://2852039166",
    "http://0xa9fea9fe",
    "http://[::1",
    "http://::1",
    "http://[::1]x",
    "http://[::g]",
    "http://[fe80::1%25eth0]",
    "http://[127.0.0.1]",
    "http://[]",
]

NEVER = [
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "169.254.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fe80::1",
    "febf::1",
    "ff02::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fd00:42::42",
    # The same places, carried in IPv6.
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::ffff:0:169.254.169.254",
    "::169.254.169.254",
    "::ffff:0.0.0.0",
    "64:ff9b::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "2002:a9fe:a9fe::1",
    "2002:e000:1::",
    "2001:0:a9fe:a9fe::1",
]

LOOPBACK = [
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
]

PRIVATE = ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "::ffff:10.0.0.1"]


@pytest.mark.parametrize("url", GOOD)
def test_takes_plain_urls(url: str) -> None:
    assert check_endpoint(url, loopback_allowed=True) == Endpoint(url, *GOOD[url])


@pytest.mark.parametrize("url", MALFORMED)
def test_refuses_what_is_no_plain_url(url: str) -> None:
    with pytest.raises(InvalidInput):
        check_endpoint(url, loopback_allowed=True)


@pytest.mark.parametrize("address", NEVER)
@pytest.mark.parametrize("loopback_allowed", [True, False])
def test_never_calls(address: str, loopback_allowed: bool) -> None:
    with pytest.raises(Forbidden) as refusal:
        check_address(address, loopback_allowed=loopback_allowed)
    assert refusal.value.data["reason"] == "refused_address"
    with pytest.raises(Forbidden):
        check_endpoint(_url(address), loopback_allowed=loopback_allowed)


@pytest.mark.parametrize("address", LOOPBACK)
def test_calls_loopback_only_if_allowed(address: str) -> None:
    check_address(address, loopback_allowed=True)
    check_endpoint(_url(address), loopback_allowed=True)
    with pytest.raises(Forbidden, match="loopback") as refusal:
        check_address(address, loopback_allowed=False)
    assert refusal.value.data["reason"] == "loopback_endpoint"
    with pytest.raises(Forbidden):
        check_endpoint(_url(address), loopback_allowed=False)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "node.localhost"])
def test_localhost_is_loopback(host: str) -> None:
    check_endpoint(f"http://{host}", loopback_allowed=True)
    with pytest.raises(Forbidden, match="this machine"):
        check_endpoint(f"http://{host}", loopback_allowed=False)


@pytest.mark.parametrize("address", PRIVATE)
def test_calls_private_networks(address: str) -> None:
    check_address(address, loopback_allowed=False)


def test_a_zone_hides_nothing() -> None:
    with pytest.raises(Forbidden):
        check_address("fd00:ec2::254%eth0", loopback_allowed=True)


def test_an_address_must_be_one() -> None:
    with pytest.raises(InvalidInput):
        check_address("example.com", loopback_allowed=True)


@given(st.ip_addresses(v=4))
def test_what_carries_an_address_is_treated_as_what_it_carries(inner: IPv4Address) -> None:
    number = int(inner)
    carriers = [
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address(0x64FF9B << 96 | number),
        IPv6Address(0x2002 << 112 | number << 80),
    ]
    assert {_outcome(str(carrier)) for carrier in carriers} == {_outcome(str(inner))}


@given(st.text(max_size=60) | st.from_regex(r"https?://[0-9a-fx.:\[\]@#%/-]{0,40}"))
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        endpoint = check_endpoint(text, loopback_allowed=False)
    except Refusal:
        return
    assert endpoint.scheme in ("http", "https")
    assert endpoint.host.isascii()
    assert 0 < endpoint.port < 65536


def _url(address: str) -> str:
    return f"http://[{address}]:8080" if ":" in address else f"http://{address}:8080"


def _outcome(address: str) -> str:
    try:
        check_address(address, loopback_allowed=False)
    except Forbidden as refusal:
        return str(refusal.data["reason"])
    return "taken"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://Node.example", "HTTP://node.example:80/"),
        ("https://node.example/a/", "https://node.example:443/a"),
        ("http://[::1]:8080", "http://[::1]:8080/"),
    ],
)
def test_one_place_written_differently(one: str, other: str) -> None:
    assert place(one) == place(other)
    assert place(place(one)) == place(one)


@pytest.mark.parametrize(
    "other",
    [
        "https://node.example",
        "http://node.example:81",
        "http://node.example/a",
        "http://a.node.example",
    ],
)
def test_another_place(other: str) -> None:
    assert place(other) != place("http://node.example")


@pytest.mark.parametrize("url", ["http://node.example?a", "http://node.example/?", "node", ""])
def test_what_is_no_place(url: str) -> None:
    with pytest.raises(InvalidInput):
        place(url)


@pytest.mark.parametrize("address", ["10.0.0.1", "192.168.1.1", "172.16.0.1", "fd12::1"])
def test_private_networks_are_called_unless_that_is_forbidden(address: str) -> None:
    check_address(address, loopback_allowed=False)
    with pytest.raises(Forbidden) as refused:
        check_address(address, loopback_allowed=False, private_allowed=False)
    assert refused.value.data["reason"] == "private_address"
    check_address("198.41.0.4", loopback_allowed=False, private_allowed=False)
