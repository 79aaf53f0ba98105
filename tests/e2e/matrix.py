"""What should come of a login: the table of docs/OPERATIONS.md as one function, and the combinations to try it on.

It knows rows and must not know how anything is started or asked. A combination says who logs in, by which driver, over
which two legs, with which channel binding and with which password.
"""
import itertools
import random
from typing import NamedTuple

import clients
import secure
from clients import DISABLE, REQUIRE

# How it ends. A refusal by the driver itself has no SQLSTATE.
OK, CLIENT_REFUSES, WRONG_PASSWORD, CANNOT_BIND, SERVER_METHOD, NO_RULE = "ok", "client refuses", "28P01", "cannot bind", "server's method", "no rule"


class Combination(NamedTuple):
    kind: str  # of proxy, see secure.Proxies
    user: str
    client: str
    binding: str
    leg: str  # client leg
    server_leg: str
    is_right: bool  # the password

    def __str__(self):
        words = [f"{self.kind}-{self.user}", self.client, self.leg, f"to_{self.server_leg}"]
        words += [f"bind_{self.binding}"] if self.binding != DISABLE else []
        return "-".join(words + ([] if self.is_right else ["wrong"]))

    @property
    def is_client_tls(self):
        return self.leg in (clients.TLS, clients.DIRECT)

    @property
    def is_server_tls(self):
        return self.server_leg not in (secure.PLAIN, secure.UNIX)


# Proxies and users: each pair is a row of the table, or one of the ways it can go wrong.
ROWS = [("relay", "by_trust"), ("relay", "by_password"), ("relay", "by_md5"), ("relay", "by_scram"), ("relay", secure.NOBODY),
        ("shared", "by_scram"), ("file", "by_scram"), ("file", "by_trust"), ("file", "by_md5"), ("file", "by_password"), ("file", "no_verifier"),
        ("query", "by_scram"), ("query", "by_trust"), ("query", "by_md5"), ("query", "expired"), ("query", "no_verifier"), ("query", secure.NOBODY),
        ("hba", "alice"), ("hba", "by_scram"), ("hba", "by_md5"), ("hba", "by_password")]

# Whose proof can be right at all where the proxy verifies it.
VERIFIED = {"file": {"by_scram", "by_trust", "by_md5", "by_password"}, "query": {"by_scram", "by_trust", "by_password"}, "hba": {"by_scram"}}


def is_terminated(combination):
    return combination.kind in ("file", "query") or (combination.kind == "hba" and combination.user == "by_scram")


def expect(combination):
    """The end that the documents promise. A direct connection is a `shared` one whose legs are alike."""
    if combination.kind == "hba" and combination.user == "alice" and not combination.is_client_tls:
        return NO_RULE
    return _expect_terminated(combination) if is_terminated(combination) else _expect_relayed(combination)


def _expect_terminated(combination):
    """The proxy offers SCRAM, with PLUS inside TLS; then it logs in with what it has learned."""
    if combination.binding == REQUIRE and not combination.is_client_tls:
        return CLIENT_REFUSES
    if not combination.is_right or combination.user not in VERIFIED[combination.kind]:
        return WRONG_PASSWORD
    return SERVER_METHOD if combination.user in ("by_md5", "by_password") else OK


def _expect_relayed(combination):
    method = {"alice": "trust"}.get(combination.user) or secure.METHODS.get(combination.user, "scram-sha-256")
    is_plus_offered = method == "scram-sha-256" and combination.is_server_tls and combination.is_client_tls
    if combination.binding == REQUIRE and not is_plus_offered:
        return CLIENT_REFUSES
    if is_plus_offered and combination.binding != DISABLE and combination.kind != "shared":
        return CANNOT_BIND
    # node-postgres says "could bind" without TLS, too, which a server inside TLS takes for an attack.
    if method == "scram-sha-256" and combination.is_server_tls and combination.client == "node-postgres" and combination.binding != DISABLE and not is_plus_offered:
        return CANNOT_BIND
    if method == "trust":
        return OK
    return OK if combination.is_right and combination.user in secure.METHODS else WRONG_PASSWORD


def is_as_expected(outcome, combination, ids):
    """Compares what a driver says; libpq shows no SQLSTATE of a login, so its texts count."""
    end, text = expect(combination), outcome.text
    if end == OK:
        return outcome.ids == ids
    if outcome.ids is not None:
        return False
    is_libpq = clients.CLIENTS[combination.client].is_libpq
    code, words = {CLIENT_REFUSES: ("", ["channel binding", "required"]), CANNOT_BIND: ("28000", ["channel_binding=disable"]),
                   WRONG_PASSWORD: ("28P01", [f'password authentication failed for user "{combination.user}"']),
                   SERVER_METHOD: ("28000", ["scram-sha-256"]), NO_RULE: ("28000", ["alice"])}[end]
    if any(word.lower() not in text.lower() for word in words):
        return False
    if end == CLIENT_REFUSES:
        return "FATAL" not in text
    return "FATAL" in text if is_libpq else outcome.sqlstate == code


# ---- which to try -----------------------------------------------------------------------------------------------------


def whole(server_legs=secure.SERVER_LEGS):
    """Every combination that its driver can do."""
    combinations = []
    for (kind, user), client, binding, leg, server_leg, is_right in itertools.product(
            ROWS, clients.CLIENTS.values(), clients.ALL_BINDINGS, clients.LEGS, server_legs, (True, False)):
        if client.can(leg, binding):
            combinations.append(Combination(kind, user, client.name, binding, leg, server_leg, is_right))
    return combinations


def _pairs(combination):
    """Every two of its values; its row with both legs, which is what the table is about; and each end of each row by
    each driver."""
    row, rest, end = (combination.kind, combination.user), combination[2:], expect(combination)
    legs = (combination.is_client_tls, combination.is_server_tls)
    return {*itertools.combinations(enumerate([row, *rest]), 2), ("legs", row, legs, combination.binding, end), ("end", row, combination.client, end)}


def pairwise(combinations, seed=4):
    """Few that hold every pair of values that occurs in `combinations`; the same few each time."""
    rng = random.Random(seed)
    pool = [(combination, _pairs(combination)) for combination in combinations]
    missing = set().union(*(pairs for _, pairs in pool))
    chosen = []
    while missing:
        combination, pairs = max(rng.sample(pool, min(80, len(pool))), key=lambda item: len(item[1] & missing))
        if pairs & missing:
            chosen.append(combination)
            missing -= pairs
        else:
            pool = [item for item in pool if item[1] & missing]
    return sorted(chosen, key=lambda each: (secure.Proxies.KINDS.index(each.kind), str(each)))
