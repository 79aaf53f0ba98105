"""The certificates of the other tests are what their table says: a test of the tools, by the openssl program."""
import subprocess

import pytest

import certificates as certs

BAD = {"expired": "certificate has expired", "early": "certificate is not yet valid", "of_other_ca": "unable to get local issuer",
       "self_signed": "self-signed certificate", "alice_expired": "certificate has expired", "alice_early": "certificate is not yet valid",
       "alice_of_other_ca": "unable to get local issuer", "alice_self_signed": "self-signed certificate", "ed25519": "unable to get local issuer"}
OWN_ROOTS = ("other_ca", "ed25519_ca")


def openssl(*args):
    run = subprocess.run(["openssl", *args], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize("name", [name for name in certs.RECIPES if name not in OWN_ROOTS])
def test_verifies_as_meant(certificates, name):
    pair = certificates[name]
    code, said = openssl("verify", "-CAfile", certificates.ca, "-untrusted", pair.cert, pair.cert)
    assert (code == 0) == (name not in BAD), said
    assert BAD.get(name, "OK") in said


@pytest.mark.parametrize("name", certs.RECIPES)
def test_key_belongs_to_certificate(certificates, name):
    pair = certificates[name]
    _, of_certificate = openssl("x509", "-in", pair.cert, "-noout", "-pubkey")
    code, of_key = openssl("pkey", "-in", pair.key, "-pubout", "-passin", f"pass:{certs.PASSPHRASE}")
    assert code == 0, of_key
    assert (of_certificate == of_key) == (name != "mismatched")
    code, _ = openssl("pkey", "-in", pair.key, "-noout", "-passin", "pass:")
    assert (code == 0) == (name != "encrypted")


@pytest.mark.parametrize("name, host, is_right", [
    ("server", "localhost", True), ("server", "db.example", True), ("server", "127.0.0.1", True), ("server", "::1", True), ("other_name", "localhost", False),
    ("wildcard", "a.db.example", True), ("wildcard", "a.b.db.example", False), ("no_names", "localhost", True), ("names_only", "127.0.0.1", False)])
def test_names(certificates, name, host, is_right):
    option = "-verify_ip" if host[0].isdigit() or ":" in host else "-verify_hostname"
    code, said = openssl("verify", "-CAfile", certificates.ca, option, host, certificates[name].cert)
    assert (code == 0) == is_right, said
