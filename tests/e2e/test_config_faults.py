"""Configurations that would be insecure or cannot work: refused by -t, at a start and at a reload, with file and line."""
import itertools
import os
import re
import subprocess

import pytest

import cluster as clusters
import secure

# What each case writes: lines of [pgseek], which begin in line 2, the lines of [databases], which follow, and files. In all
# of them {d} is the folder of the case, {name.cert} and {name.key} are files of certificates.py, and {lists} and
# {other_lists} are revocation lists of "ca" and of "other_ca".
TLS = "client_tls_sslmode = require\nclient_tls_cert_file = {proxy.cert}\nclient_tls_key_file = {proxy.key}\n"
CA = "client_tls_ca_file = {ca.cert}\n"
HBA = "auth_type = hba\nauth_hba_file = {d}/hba\n"
SCRAM = "auth_type = scram-sha-256\nauth_file = {d}/users\n"
DAMAGED = "-----BEGIN X509 CRL-----\nMII\n-----END X509 CRL-----\n"
HERE = "* = host=127.0.0.1\n"
USERS = secure.userlist({"web": secure.scram_secret("secret")})

# name: (settings, databases, files, what is said; "conf:" stands for the file's name)
CASES = {
    # TLS with clients
    "no certificate": ("client_tls_sslmode = require\n", HERE, {}, "conf:2: client_tls_sslmode needs client_tls_cert_file"),
    "no key": ("client_tls_sslmode = allow\nclient_tls_cert_file = {proxy.cert}\n", HERE, {}, "conf:3: .*is of no use without client_tls_key_file"),
    "certificate missing": (TLS.replace("{proxy.cert}", "{d}/none"), HERE, {}, "conf:3: .*No such file"),
    "key missing": (TLS.replace("{proxy.key}", "{d}/none"), HERE, {}, "conf:4: .*No such file"),
    "key of another": (TLS.replace("proxy.", "mismatched."), HERE, {}, "conf:4: .*does not match the certificate"),
    "key with a passphrase": (TLS.replace("proxy.", "encrypted."), HERE, {}, "conf:4: .*is encrypted"),
    "key that others can read": (TLS.replace("{proxy.key}", "{d}/open.key"), HERE, {"open.key": 0o644}, "conf:4: .*mode 0644.*chmod"),
    "certificate is none": (TLS.replace("{proxy.cert}", "{d}/empty"), HERE, {"empty": ""}, "conf:3: .*no certificate"),
    "certificate expired": (TLS.replace("proxy.", "expired."), HERE, {}, "conf:3: .*expired"),
    "no authority": (TLS.replace("require", "verify-ca"), HERE, {}, "conf:2: .*needs client_tls_ca_file"),
    "authority missing": (TLS + "client_tls_ca_file = {d}/none\n", HERE, {}, "conf:5: .*No such file"),
    "authority is none": (TLS + "client_tls_ca_file = {d}/empty\n", HERE, {"empty": ""}, "conf:5: .*no certificate"),
    "lists missing": (TLS + CA + "client_tls_crl_file = {d}/none\n", HERE, {}, "conf:6: client_tls_crl_file .*No such file"),
    "lists are none": (TLS + CA + "client_tls_crl_file = {ca.cert}\n", HERE, {}, "conf:6: client_tls_crl_file .*holds no revocation list in PEM"),
    "lists damaged": (TLS + CA + "client_tls_crl_file = {d}/list\n", HERE, {"list": DAMAGED}, "conf:6: client_tls_crl_file .*a revocation list that is damaged"),
    "lists without an authority": (TLS + "client_tls_crl_file = {lists}\n", HERE, {}, "conf:5: client_tls_crl_file .*is of no use without client_tls_ca_file"),
    "lists of another": (TLS + CA + "client_tls_crl_file = {other_lists}\n", HERE, {}, "conf:6: client_tls_crl_file .*holds no list that an authority of client_tls_ca_file .* has signed"),
    "unknown cipher": (TLS + "client_tls_ciphers = XYZ\n", HERE, {}, "conf:5: .*names no cipher"),
    "cipher without encryption": (TLS + "client_tls_ciphers = NULL:eNULL\n", HERE, {}, "conf:5: "),
    "old protocol": (TLS + "client_tls_protocols = tlsv1.0\n", HERE, {}, "conf:5: client_tls_protocols cannot be \"tlsv1.0\""),
    "unknown mode": ("client_tls_sslmode = secure\n", HERE, {}, "conf:2: client_tls_sslmode must be one of"),
    # TLS with servers
    "server's authority missing": ("server_tls_sslmode = verify-full\nserver_tls_ca_file = {d}/none\n", HERE, {}, "conf:3: .*No such file"),
    "server's key missing": ("server_tls_sslmode = require\nserver_tls_cert_file = {proxy_client.cert}\n", HERE, {}, "conf:3: "),
    "server's key of another": ("server_tls_sslmode = require\nserver_tls_cert_file = {proxy_client.cert}\n"
                                "server_tls_key_file = {alice.key}\n", HERE, {}, "conf:4: .*does not match"),
    "verify-ca by everybody's authorities": ("server_tls_sslmode = verify-ca\n", HERE, {}, "conf:2: .*server_tls_ca_file"),
    "a line's authority missing": ("", "a = host=10.0.0.1 sslmode=verify-full sslrootcert={d}/none\n", {}, "conf:3: .*No such file"),
    "server's lists missing": ("server_tls_sslmode = require\nserver_tls_ca_file = {ca.cert}\nserver_tls_crl_file = {d}/none\n", HERE, {}, "conf:4: server_tls_crl_file .*No such file"),
    "server's lists without an authority": ("server_tls_crl_file = {lists}\n", "a = host=10.0.0.1\n", {}, "conf:2: server_tls_crl_file .*is of no use to database \"a\""),
    "a line's lists of another": ("", "a = host=10.0.0.1 sslmode=require sslrootcert={ca.cert} sslcrl={other_lists}\n", {}, "conf:3: sslcrl .*holds no list that an authority of sslrootcert"),
    "no name to verify": ("", "a = host=/tmp sslmode=verify-full\n", {}, "conf:3: .*verify-full without a name to verify"),
    "direct without TLS": ("", "a = host=10.0.0.1 sslmode=prefer sslnegotiation=direct\n", {}, "conf:3: .*sslnegotiation=direct"),
    # log-ins
    "no rules": ("auth_type = hba\n", HERE, {}, "conf:2: auth_type hba needs auth_hba_file"),
    "rules that nobody reads": ("auth_hba_file = {d}/hba\n", HERE, {"hba": "local all all relay\n"}, "conf:2: auth_hba_file is read with auth_type = hba only"),
    "maps that nobody reads": ("auth_ident_file = {d}/map\n", HERE, {"map": "m a b\n"}, "conf:2: auth_ident_file is for maps"),
    "SCRAM without secrets": ("auth_type = scram-sha-256\n", HERE, {}, "conf:2: auth_type scram-sha-256 needs secrets"),
    "SCRAM without secrets, by a rule": (HBA, HERE, {"hba": "local all all relay\nhost all all all scram-sha-256\n"}, "hba:2: method scram-sha-256 needs secrets"),
    "no question": ("auth_user = asker\nauth_query = SELECT 1\n", HERE, {}, "conf:3: auth_query does not mention [$]1"),
    "a question in any database": ("auth_user = asker\n", "* = host=127.0.0.1\n", {}, "conf:2: auth_user would ask in any database .* set auth_dbname"),
    "secrets missing": (SCRAM, HERE, {}, "conf:3: .*cannot be used"),
    "secrets that others can read": (SCRAM, HERE, {"users": (USERS, 0o640 if os.geteuid() else 0o644)}, "users: has mode .*chmod 0600"),
    "a password": (SCRAM, HERE, {"users": ('"web" "hunter2"\n', 0o600)}, "users:1: a plain password"),
    "an md5 hash": (SCRAM, HERE, {"users": ('"web" "md51234567890abcdef1234567890abcdef"\n', 0o600)}, "users:1: an md5 hash"),
    "rules missing": (HBA, HERE, {}, "hba: cannot be opened"),
    "no rule": (HBA, HERE, {"hba": "# none\n"}, "hba:2: there is no rule"),
    "trust": (HBA, HERE, {"hba": "local all all trust\n"}, "hba:1: method \"trust\" lets anybody in"),
    "a host name": (HBA, HERE, {"hba": "\nhost all all localhost relay\n"}, "hba:2: \"localhost\" is not an address"),
    "a role": (HBA, HERE, {"hba": "local all +staff relay\n"}, "hba:1: .*list the users"),
    "cert without TLS": (HBA, HERE, {"hba": "hostssl all all all cert\n"}, "hba:1: a client certificate needs TLS"),
    "cert without an authority": (HBA + TLS, HERE, {"hba": "hostssl all all all cert\n"}, "hba:1: a client certificate needs client_tls_ca_file"),
    "cert on a line without TLS": (HBA + TLS + CA, HERE, {"hba": "host all all all cert\n"}, "hba:1: method cert needs TLS"),
    "no maps": (HBA + TLS + CA, HERE, {"hba": "hostssl all all all cert map=m\n"}, "hba:1: a map needs auth_ident_file"),
    "no such map": (HBA + TLS + CA + "auth_ident_file = {d}/map\n", HERE, {"hba": "hostssl all all all cert map=m\n", "map": "n a b\n"}, "hba:1: auth_ident_file has no map \"m\""),
    "a pattern of another dialect": (HBA + TLS + CA + "auth_ident_file = {d}/map\n", HERE, {"hba": "hostssl all all all cert map=m\n", "map": "m /^\\d+$ b\n"}, "map:1: the regular expression"),
    # the file itself
    "unknown setting": ("auth_fiel = x\n", HERE, {}, "conf:2: unknown option \"auth_fiel\", did you mean \"auth_file\""),
    "twice": ("verbose = 0\nverbose = 0\n", HERE, {}, "conf:3: verbose is already set in line 2"),
    "no database": ("", "", {}, "conf:2: .databases. is empty"),
    "a password in a line": ("", "a = host=10.0.0.1 password=x\n", {}, "conf:3: database \"a\" has \"password\""),
    "unknown section": ("[users]\n", HERE, {}, "conf:2: unknown section"),
}


class Names:
    """{name.cert} and {name.key} of a text."""

    def __init__(self, certificates, name):
        self.certificates, self.name = certificates, name

    cert = property(lambda self: self.certificates[self.name].cert)
    key = property(lambda self: self.certificates[self.name].key)


def fill(text, certificates, directory):
    names = set(re.findall(r"{(\w+)\.", text))
    lists = {"lists": certificates.revoke("lists", {"ca": []}), "other_lists": certificates.revoke("other_lists", {"other_ca": []})}
    return text.format(d=directory, **lists, **{name: Names(certificates, name) for name in names})


@pytest.fixture(scope="module")
def write(run_dir, certificates):
    """write(settings, databases, files): a configuration in a folder of its own; returns its path."""
    numbers = itertools.count()

    def make(settings, databases, files):
        directory = run_dir / f"fault{next(numbers)}"
        directory.mkdir()
        for name, content in files.items():
            if isinstance(content, int):  # a good key with that mode
                content = (open(certificates["proxy"].key).read(), content)
            text, mode = content if isinstance(content, tuple) else (content, 0o644)
            (directory / name).write_text(text)
            (directory / name).chmod(mode)
        text = f"[pgseek]\n{settings}[databases]\n{databases}"
        (directory / "conf").write_text(fill(text, certificates, directory))
        return directory / "conf"

    return make


@pytest.fixture(scope="module")
def running(server, run_dir):
    """A proxy that every faulty configuration is given to, and that must not take one of them."""
    directory = run_dir / "steadfast"
    directory.mkdir()
    proxy = clusters.Proxy(directory, server).start()
    yield proxy
    proxy.stop()


def run(*args):
    return subprocess.run([clusters.pgseek_bin(), *map(str, args)], capture_output=True, text=True, timeout=60)


def says(output, conf, expected):
    """One line of the output is the complaint, from its beginning, or behind the log's own prefix."""
    pattern = re.compile(re.escape(f"{conf.parent}/") + expected)
    return any(pattern.search(line) for line in output.splitlines())


@pytest.mark.parametrize("case", CASES)
def test_fault_is_refused_everywhere(case, write, running):
    settings, databases, files, expected = CASES[case]
    conf = write(settings, databases, files)
    check = run("-t", conf)
    assert check.returncode == 1 and "configuration ok" not in check.stdout
    assert says(check.stderr, conf, expected), check.stderr
    start = run(conf)
    assert start.returncode == 1
    assert says(start.stdout + start.stderr, conf, expected), start.stderr
    reloaded = reload_with(running, conf)
    assert says(reloaded.replace(str(running.directory), str(conf.parent)), conf, expected.replace("conf:", "proxy.conf:")), reloaded
    with running.connect() as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


def reload_with(proxy, conf):
    """What the log says of a reload that must fail."""
    before = len(proxy.log())
    proxy.conf.write_text(conf.read_text())
    proxy.reload()
    failed = lambda: "the old settings stay in force" in proxy.log()[before:]
    clusters.wait_until(failed, f"the reload does not fail: {proxy.log()[before:]}")
    return proxy.log()[before:]


def test_all_faults_are_told_at_once(write):
    conf = write(HBA + "auth_file = {d}/users\nclient_tls_sslmode = require\nclient_tls_cert_file = {d}/a\nclient_tls_key_file = {d}/b\n",
                 "a = host=10.0.0.1 sslmode=verify-full sslrootcert={d}/c\n", {"hba": "local all all trust\n", "users": ("x\n", 0o600)})
    said = run("-t", conf).stderr
    for expected in ("conf:6: ", "conf:7: ", "conf:9: ", "hba:1: ", "users:1: "):
        assert says(said, conf, expected), said


def test_good_configuration_is_taken(write, running, certificates):
    """The same settings without a fault: what the cases above fail for is their fault, not their company."""
    files = {"hba": "local all all scram-sha-256\nhost all all all relay\nhostssl all all all cert map=m\n", "map": "m /^(.*)@x$ \\1\n",
             "users": (USERS, 0o600)}
    settings = HBA + "auth_file = {d}/users\nauth_ident_file = {d}/map\n" + TLS + CA + "client_tls_crl_file = {lists}\n"
    conf = write(settings, "a = host=10.0.0.1 sslmode=verify-full sslrootcert={ca.cert} sslcrl={lists} sslcert={proxy_client.cert} sslkey={proxy_client.key}\n" + HERE, files)
    check = run("-t", conf)
    assert check.returncode == 0 and "configuration ok" in check.stdout, check.stderr


def test_secrets_are_never_said(write):
    conf = write(SCRAM, HERE, {"users": ('"web" "hunter2"\n"app" "SCRAM-SHA-256$4096:c2FsdA==$hunter3"\n', 0o600)})
    said = run("-t", conf).stderr
    assert "users:1" in said and "users:2" in said and "hunter" not in said


def test_documented_rules_load(write):
    """The example of OPERATIONS, as it stands there."""
    text = (clusters.REPOSITORY / "docs" / "OPERATIONS.md").read_text()
    part = text[text.index("## Who may connect"):]
    blocks = ["".join(line[4:] + "\n" for line in block.split("\n")) for block in re.findall(r"\n\n((?:    .*(?:\n|$))+)", part[:part.index("\n## ", 5)])]
    settings, rules, maps = blocks[:3]
    settings = settings.replace("/etc/pgseek/pg_hba.conf", "{d}/hba").replace("/etc/pgseek/pg_ident.conf", "{d}/map")
    settings = settings.replace("/etc/pgseek/userlist.txt", "{d}/users").replace("/etc/pgseek/clients.crt", "{ca.cert}")
    assert "/etc" not in settings
    conf = write(settings + TLS, HERE, {"hba": rules, "map": maps, "users": (USERS, 0o600)})
    check = run("-t", conf)
    assert check.returncode == 0, check.stderr
