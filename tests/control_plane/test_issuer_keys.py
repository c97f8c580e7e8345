"""Public keys of token issuers at an address: read on a schedule, over https alone, and the last good ones are kept."""

import contextlib
import datetime
import http.server
import ipaddress
import json
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from control_plane.adapters import key_sets
from control_plane.adapters.key_sets import HttpsKeySets
from control_plane.errors import SettingsError
from control_plane.ports import KeySetError
from control_plane.records import Scope
from control_plane.services.issuer_keys import IssuerKeys
from fleet.token_issuer import MOST_KEYS, keys_in

URL = "https://login.example.com/keys"
X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
SPEC = {
    "issuer": "https://login.example.com/",
    "audiences": ["gateway"],
    "algorithms": ["EdDSA"],
    "allowed_tenants": ["acme"],
    "jwks_url": URL,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["keys", "kty", "d", "use"]), inner),
    max_leaves=10,
)


def key(kid, **more):
    return {"kty": "OKP", "crv": "Ed25519", "x": X, "kid": kid, "use": "sig", **more}


def key_set(*keys):
    return json.dumps({"keys": keys}).encode()


class FakeSource:
    def __init__(self):
        self.answer, self.asked = key_set(key("one")), []

    def read(self, url):
        self.asked.append(url)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Fetching:
    """A control plane whose key sets come from the test."""

    def __init__(self, world):
        self.world, self.source = world, FakeSource()
        store, meter = world.assembly.store, world.assembly.meter
        self.keys = IssuerKeys(
            store=store, source=self.source, clock=world.clock, meter=meter, every_seconds=300, retry_seconds=30
        )
        world.call("PUT", "/v1/tenants/acme", json={"metadata": {"name": "acme"}})
        self.put(SPEC)

    def put(self, spec, **more):
        body = {"metadata": {"name": "login"}, "spec": spec}
        answer = self.world.call("PUT", "/v1/token-issuers/login", json=body, scope=Scope.SECURITY_ADMIN, **more)
        assert answer.status_code in (200, 201), answer.text

    @property
    def status(self):
        return self.world.get("/v1/token-issuers/login").json()["status"]["fetched"]

    @property
    def kids(self):
        (issuer,) = self.world.get("/v1/gateway/snapshot").json()["issuers"]
        return [item["kid"] for item in issuer["keys"]]

    @property
    def failing(self):
        return self.world.assembly.meter.registry.get_sample_value("enginehouse_token_issuers_without_fresh_keys")


@pytest.fixture
def fetching(world):
    return Fetching(world)


def test_keys_are_read_at_once_and_again_when_they_are_due(fetching):
    assert (fetching.kids, fetching.status) == ([], None)
    assert fetching.keys.look() == 1
    assert fetching.kids == ["one"]
    assert fetching.status == {"keys": 1, "fetched": "2030-01-01T12:00:00.000000Z", "problem": None}
    fetching.world.clock.forward(seconds=299)
    assert fetching.keys.look() == 0
    fetching.source.answer = key_set(key("two"), key("three"))
    fetching.world.clock.forward(seconds=1)
    assert fetching.keys.look() == 1
    assert fetching.kids == ["two", "three"]


@pytest.mark.parametrize(
    "answer", [KeySetError("its address answers 503"), b"<html>", key_set(), key_set(key("x", d=X))]
)
def test_the_last_good_keys_stay_when_no_new_ones_can_be_had(fetching, answer):
    fetching.keys.look()
    fetching.source.answer = answer
    fetching.world.clock.forward(seconds=300)
    assert fetching.keys.look() == 1
    assert fetching.kids == ["one"]
    assert fetching.status["problem"]
    assert fetching.status["fetched"] == "2030-01-01T12:00:00.000000Z"
    assert fetching.failing == 1
    fetching.world.clock.forward(seconds=29)
    assert fetching.keys.look() == 0
    fetching.source.answer = key_set(key("two"))
    fetching.world.clock.forward(seconds=1)
    fetching.keys.look()
    assert (fetching.kids, fetching.failing, fetching.status["problem"]) == (["two"], 0, None)


def test_another_address_does_not_keep_the_keys_of_the_one_before(fetching):
    fetching.keys.look()
    fetching.put({**SPEC, "jwks_url": f"{URL}/2"}, etag="*")
    assert fetching.kids == []
    fetching.source.answer = KeySetError("gone")
    fetching.keys.look()
    assert fetching.kids == []
    assert fetching.source.asked == [URL, f"{URL}/2"]


def test_keys_of_the_spec_stand_beside_those_that_were_read(fetching):
    own = {name: value for name, value in key("own").items() if name != "use"}
    fetching.put({**SPEC, "keys": [own]}, etag="*")
    fetching.keys.look()
    assert fetching.kids == ["own", "one"]


def test_changed_keys_are_audited_and_unchanged_ones_are_not(fetching):
    def fetches():
        items = fetching.world.get("/v1/audit-events").json()["items"]
        return [item["actor"] for item in items if item["action"] == "tokenissuer.fetch"]

    fetching.keys.look()
    assert fetches() == ["system:fetch-keys"]
    fetching.world.clock.forward(seconds=300)
    fetching.keys.look()
    assert len(fetches()) == 1


def test_an_issuer_without_an_address_is_never_read(fetching):
    own = {name: value for name, value in key("own").items() if name != "use"}
    spec = {name: value for name, value in SPEC.items() if name != "jwks_url"}
    fetching.put({**spec, "keys": [own]}, etag="*")
    assert fetching.keys.look() == 0
    assert fetching.source.asked == []


@given(document=JSON)
def test_a_key_set_has_keys_or_is_refused(document):
    text = json.dumps(document).encode()
    with contextlib.suppress(ValueError):
        assert 0 < len(keys_in(text)) <= MOST_KEYS


def test_keys_for_other_uses_and_unknown_members_are_left_out():
    found = keys_in(key_set(key("one", x5t="abc"), key("two", use="enc"), {"kty": "oct2", "kid": "three"}))
    assert [item.kid for item in found] == ["one"]


@pytest.mark.parametrize("member", ["d", "p", "k"])
def test_a_key_set_that_shows_a_private_key_is_refused(member):
    with pytest.raises(ValueError, match="can sign") as refusal:
        keys_in(key_set(key("one", **{member: "the-secret"})))
    assert "the-secret" not in str(refusal.value)


class Site(http.server.BaseHTTPRequestHandler):
    """What stands at the addresses of a small https server."""

    def do_GET(self):
        place = self.path.strip("/")
        self.send_response({"moved": 302, "broken": 500}.get(place, 200))
        if place == "moved":
            self.send_header("Location", "/keys")
        self.end_headers()
        self.wfile.write(b"x" * (key_sets.MOST_BYTES + 1) if place == "large" else key_set(key("one")))

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The base URL of an https server on loopback, and the file of the authority that signed for it."""
    folder = tmp_path_factory.mktemp("tls")
    private, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "site")]),
    )
    today = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(private.public_key())
        .serial_number(1).not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(private, hashes.SHA256())
    )  # fmt: skip
    encoding = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(made.public_bytes(encoding))
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private.private_bytes(encoding, *plain))
    server = http.server.HTTPServer(("127.0.0.1", 0), Site)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}", folder / "ca.pem"
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.fixture
def reading(site):
    source = HttpsKeySets(site[1])
    yield source
    source.close()


def test_a_key_set_is_read_over_https(site, reading):
    assert [item.kid for item in keys_in(reading.read(f"{site[0]}/keys"))] == ["one"]


@pytest.mark.parametrize(
    ("place", "words"), [("moved", "answers 302"), ("broken", "answers 500"), ("large", "larger than")]
)
def test_redirects_errors_and_floods_are_no_key_set(site, reading, place, words):
    with pytest.raises(KeySetError, match=words):
        reading.read(f"{site[0]}/{place}")


def test_nothing_is_read_without_tls_or_from_a_stranger(site, reading):
    with pytest.raises(KeySetError, match="not https"):
        reading.read(site[0].replace("https", "http"))
    stranger = HttpsKeySets()
    with pytest.raises(KeySetError, match="ConnectError"):
        stranger.read(f"{site[0]}/keys")
    stranger.close()


def test_an_authority_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingsError, match="jwks_ca_file"):
        HttpsKeySets(tmp_path / "none.pem")
