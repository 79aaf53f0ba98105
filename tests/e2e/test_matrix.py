"""TLS x authentication x drivers: every login ends as the table says, and every one that succeeds pages to the end.

By default every pair of values occurs; PGSEEK_MATRIX=whole tries all combinations. The ways a certificate can be wrong
are in test_matrix_certificates.py.
"""
import os

import pytest

import clients
import matrix
import secure

COMBINATIONS = matrix.whole() if os.environ.get("PGSEEK_MATRIX") == "whole" else matrix.pairwise(matrix.whole())


def attempt_of(combination, endpoint, certificates, database, **more):
    wrong = {} if combination.is_right else {"password": "wrong"}
    shows = combination.is_client_tls and combination.user == "alice"
    return secure.attempt_at(endpoint, combination.user, database, combination.leg, binding=combination.binding, ca=certificates.ca,
                             client=certificates["alice"] if shows else None, pkcs12=certificates.pkcs12("alice") if shows else None, **wrong, **more)


def skip_if_missing(client):
    reason = clients.CLIENTS[client].missing()
    if reason:
        pytest.skip(reason)


@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
def test_login(proxies, certificates, combination):
    skip_if_missing(combination.client)
    proxy = proxies[combination.kind]
    outcome = clients.CLIENTS[combination.client].login(attempt_of(combination, proxy, certificates, combination.server_leg))
    assert matrix.is_as_expected(outcome, combination, proxies.expected), f"expected {matrix.expect(combination)}, got {outcome}\n{proxy.log()[-2000:]}"
    assert proxy.is_alive()


DIRECT = [matrix.Combination("shared", user, client.name, binding, leg, secure.REQUIRE if leg == clients.TLS else secure.PLAIN, is_right)
          for user in secure.METHODS for client in clients.CLIENTS.values() for binding in clients.ALL_BINDINGS
          for leg in (clients.PLAIN, clients.TLS) for is_right in (True, False) if client.can(leg, binding)]


@pytest.mark.parametrize("client", clients.CLIENTS)
def test_the_server_itself(secure_server, proxies, certificates, client):
    """The control: each driver does with PostgreSQL itself what the table takes for granted."""
    skip_if_missing(client)
    for combination in DIRECT:
        if combination.client == client:
            outcome = clients.CLIENTS[client].login(attempt_of(combination, secure_server, certificates, "e2e", is_paged=False))
            assert matrix.is_as_expected(outcome, combination, proxies.expected[:clients.SIZE]), f"{combination}: {outcome}"


def test_pairs_are_all_there():
    """The default choice is small and leaves no pair of values out."""
    combinations = matrix.whole()
    chosen = matrix.pairwise(combinations)
    assert len(chosen) < 500
    wanted = set().union(*map(matrix._pairs, combinations))
    assert not wanted - set().union(*map(matrix._pairs, chosen))
