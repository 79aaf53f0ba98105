"""Certificates of every kind that a TLS test needs, good and bad, made anew in each run.

It knows X.509 and must not know servers or settings. `Certificates(folder)["server"]` is a pair of file names; the
table below says what each name stands for.
"""
import datetime
import ipaddress
import pathlib
from typing import NamedTuple, Optional

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

KEYS = {"ec": lambda: ec.generate_private_key(ec.SECP256R1()), "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ed25519": ed25519.Ed25519PrivateKey.generate}
HASHES = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}
HERE = ["localhost", "127.0.0.1", "::1", "db.example"]
PASSPHRASE = "a passphrase"
ODD_NAME = "o'dd \"nämé\", x=1+2"

# Days from now: since when, until when.
VALID, EXPIRED, EARLY = (-1, 30), (-30, -1), (1, 30)


class Recipe(NamedTuple):
    """How a certificate is made: names are common names, `names` the alternative ones (IP addresses are told by their
    form). The file of a certificate holds the chain behind it, without the root."""

    common: object  # a text, or several
    names: list = []
    issuer: str = "ca"  # "" signs itself
    key: str = "ec"
    hash: str = "sha256"
    days: tuple = VALID
    is_ca: bool = False
    passphrase: Optional[str] = None
    key_of: Optional[str] = None  # the key file holds the key of another one


RECIPES = {
    "ca": Recipe("pgseek test CA", issuer="", is_ca=True),
    "other_ca": Recipe("another CA", issuer="", is_ca=True),
    "intermediate": Recipe("pgseek test intermediate", is_ca=True),
    # Servers: PostgreSQL's, the proxy's, and one for both.
    "server": Recipe("localhost", HERE),
    "proxy": Recipe("localhost", HERE),
    "shared": Recipe("localhost", HERE),
    "expired": Recipe("localhost", HERE, days=EXPIRED),
    "early": Recipe("localhost", HERE, days=EARLY),
    "of_other_ca": Recipe("localhost", HERE, issuer="other_ca"),
    "other_name": Recipe("elsewhere.example", ["elsewhere.example", "192.0.2.1"]),
    "names_only": Recipe("elsewhere.example", ["localhost", "db.example"]),
    "addresses_only": Recipe("localhost", ["127.0.0.1", "::1"]),
    "no_names": Recipe("localhost"),  # the common name counts
    "address_as_common": Recipe("127.0.0.1"),
    "wildcard": Recipe("any", ["*.db.example"]),
    "self_signed": Recipe("localhost", HERE, issuer=""),
    "chained": Recipe("localhost", HERE, issuer="intermediate"),
    "rsa": Recipe("localhost", HERE, key="rsa"),
    "ed25519": Recipe("localhost", HERE, key="ed25519", issuer="ed25519_ca"),
    "ed25519_ca": Recipe("an Ed25519 CA", issuer="", key="ed25519", is_ca=True),
    "sha384": Recipe("localhost", HERE, hash="sha384"),
    "sha512": Recipe("localhost", HERE, hash="sha512"),
    "encrypted": Recipe("localhost", HERE, passphrase=PASSPHRASE),
    "mismatched": Recipe("localhost", HERE, key_of="server"),
    # Clients.
    "alice": Recipe("alice"),
    "bob": Recipe("bob"),
    "odd": Recipe(ODD_NAME),
    "alice_chained": Recipe("alice", issuer="intermediate"),
    "alice_expired": Recipe("alice", days=EXPIRED),
    "alice_early": Recipe("alice", days=EARLY),
    "alice_of_other_ca": Recipe("alice", issuer="other_ca"),
    "alice_self_signed": Recipe("alice", issuer=""),
    "alice_and_bob": Recipe(["alice", "bob"]),
    "alice_nul": Recipe("alice\0.evil"),
    "nobody": Recipe([]),  # without a common name
    "proxy_client": Recipe("pgseek"),  # what the proxy shows to servers
}


class Pair(NamedTuple):
    cert: str
    key: str


class Certificates:
    """Made when first asked for, since most runs need few of them; RSA keys are slow."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.made = {}  # name -> (certificate, key, chain behind it)

    def __getitem__(self, name):
        if name not in self.made:
            self.make(name, RECIPES[name])
        return self.pair(name)

    @property
    def ca(self):
        """The file of the authority that has signed the good ones."""
        return self["ca"].cert

    def pair(self, name):
        return Pair(str(self.directory / f"{name}.crt"), str(self.directory / f"{name}.key"))

    def renew(self, name):
        """The same names with a new key and serial number, in the same files."""
        return self.make(name, RECIPES[name])

    def bundle(self, name, *authorities):
        """A file with several authorities."""
        path = self.directory / f"{name}.pem"
        path.write_bytes(b"".join(pathlib.Path(self[authority].cert).read_bytes() for authority in authorities))
        return str(path)

    def make(self, name, recipe):
        """Makes the files of `name`; recipes of a test's own may be made from those above by _replace()."""
        key = KEYS[recipe.key]()
        issuer, issuer_key, chain = None, key, []
        if recipe.issuer:
            self[recipe.issuer]
            issuer, issuer_key, chain = self.made[recipe.issuer]
            chain = [issuer, *chain] if RECIPES[recipe.issuer].issuer else chain
        certificate = _sign(recipe, key, issuer, issuer_key)
        self.made[name] = (certificate, key, chain)
        pair = self.pair(name)
        pathlib.Path(pair.cert).write_bytes(b"".join(each.public_bytes(serialization.Encoding.PEM) for each in [certificate, *chain]))
        if recipe.key_of:
            self[recipe.key_of]
            key = self.made[recipe.key_of][1]
        _write_key(pair.key, key, recipe.passphrase)
        return pair

    def revoke(self, name, lists, days=VALID):
        """A file of revocation lists: {authority: [names of what it has revoked]}."""
        path = self.directory / f"{name}.crl"
        path.write_bytes(b"".join(self._list(authority, revoked, days) for authority, revoked in lists.items()))
        return str(path)

    def _list(self, authority, revoked, days):
        for name in (authority, *revoked):
            self[name]
        issuer, key, _ = self.made[authority]
        begin, end = _period(days)
        builder = x509.CertificateRevocationListBuilder().issuer_name(issuer.subject).last_update(begin).next_update(end)
        for name in revoked:
            serial = self.made[name][0].serial_number
            builder = builder.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(begin).build())
        return builder.sign(key, HASHES["sha256"]).public_bytes(serialization.Encoding.PEM)

    def pkcs12(self, name):
        """The pair in one file under PASSPHRASE, by the name that pgjdbc looks for."""
        self[name]
        certificate, key, chain = self.made[name]
        path = self.directory / f"{name}.p12"
        path.write_bytes(pkcs12.serialize_key_and_certificates(
            b"user", key, certificate, chain or None, serialization.BestAvailableEncryption(PASSPHRASE.encode())))
        return str(path)

    def der(self, name):
        """The certificate's own bytes."""
        self[name]
        return self.made[name][0].public_bytes(serialization.Encoding.DER)


def _subject(common):
    commons = [common] if isinstance(common, str) else common
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "pgseek tests"),
                      *(x509.NameAttribute(NameOID.COMMON_NAME, each) for each in commons)])


def _general_name(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _period(days):
    now = datetime.datetime.utcnow()
    return [now + datetime.timedelta(days=each) for each in days]


def _sign(recipe, key, issuer, issuer_key):
    begin, end = _period(recipe.days)
    subject = _subject(recipe.common)
    builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer.subject if issuer else subject)
               .public_key(key.public_key()).serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(end)
               .add_extension(x509.BasicConstraints(ca=recipe.is_ca, path_length=None), critical=True)
               .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False))
    if issuer:
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    if recipe.names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(name) for name in recipe.names]), critical=False)
    is_hashed = not isinstance(issuer_key, ed25519.Ed25519PrivateKey)
    return builder.sign(issuer_key, HASHES[recipe.hash] if is_hashed else None)


def _write_key(path, key, passphrase):
    protection = serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else serialization.NoEncryption()
    file = pathlib.Path(path)
    file.touch(mode=0o600)
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection))
