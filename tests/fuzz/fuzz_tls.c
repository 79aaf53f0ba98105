/* fuzz_tls.c - ciphertext that nobody good has sent, to both roles of ours, before, within and behind a real handshake.
 *
 * An input is a head of three bytes (which role, what it disturbs, how bytes are cut), then steps that disturb the
 * stream from a real peer of ours: a byte that says what, and what it needs.
 *
 * What must hold: plaintext is a prefix of what the peer has said, and none comes before the handshake is over; who has
 * failed stays so, is given no more plaintext and has no more to say, and can say why in one printable line; what TLS
 * says of itself is bounded by what came. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/io/tls.h"
#include "../../proxy/io/tls_context.h"
#include "certificate.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FLIGHT_MAX ((size_t)16 * 1024) /* what a handshake may say by itself */

/* ---- what all inputs share ---- */

enum version { VERSION_ANY, VERSION_OLD, VERSIONS };
static struct tls_context *servers[VERSIONS];
static struct tls_context *client;

static struct conf *load(const char *protocols)
{
    const char *folder = certificate_folder();
    char path[64];
    snprintf(path, sizeof path, "%s/tls.conf", folder);
    FILE *out = fopen(path, "w");
    require(out != NULL);
    fprintf(out, "[pgseek]\nclient_tls_sslmode = require\nclient_tls_cert_file = %s/fuzz.crt\n", folder);
    fprintf(out, "client_tls_key_file = %s/fuzz.key\nclient_tls_ca_file = %s/fuzz.crt\n", folder, folder);
    fprintf(out, "client_tls_protocols = %s\n[databases]\n* = host=10.0.0.1 sslmode=verify-ca ", protocols);
    fprintf(out, "sslrootcert=%s/fuzz.crt sslcert=%s/fuzz.crt sslkey=%s/fuzz.key\n", folder, folder, folder);
    fclose(out);
    struct conf *conf = conf_load(path, stderr);
    require(conf != NULL);
    return conf;
}

static void set_up(void)
{
    static const char *const protocols[] = {"secure", "tlsv1.2"};
    for (size_t i = 0; i < VERSIONS; i++) {
        struct conf *conf = load(protocols[i]);
        require(tls_context_for_clients(conf, &servers[i], stderr));
        if (!client)
            require(tls_context_for_server(conf, &conf->databases[0], &client, stderr));
        conf_unref(conf);
    }
}

/* ---- one conversation ---- */

struct talk {
    struct tls *good; /* the peer */
    struct tls *ours; /* who is disturbed */
    struct buf wire;  /* to ours, undisturbed so far */
    struct buf back;  /* to the peer */
    struct buf said;  /* all that the peer has said: plaintext */
    struct buf heard; /* by ours */
    size_t came;      /* ciphertext that reached ours */
    size_t spoken;    /* that ours has made by itself */
    size_t cut;       /* bytes of a delivery at most */
};

static void check_why(const char *why)
{
    require(why[0] != '\0');
    for (; *why; why++)
        require(*why >= ' ' && *why < 0x7f);
}

static size_t read_all(struct tls *tls, struct span cipher, struct buf *heard)
{
    size_t room = cipher.len + TLS_RECORD_MAX;
    uint8_t *plain = malloc(room); /* exactly that much, for the sanitizer */
    require(plain != NULL);
    size_t got = tls_read(tls, cipher, plain, room);
    require(got <= room);
    buf_put(heard, plain, got);
    free(plain);
    return got;
}

/* Gives some bytes to ours, and checks what that has done. */
static void feed(struct talk *talk, struct span cipher)
{
    enum tls_state before = tls_state(talk->ours);
    size_t waiting = tls_output(talk->ours)->len;
    size_t got = read_all(talk->ours, cipher, &talk->heard);
    enum tls_state after = tls_state(talk->ours);
    size_t more = tls_output(talk->ours)->len - waiting;
    talk->came += cipher.len;
    talk->spoken += more;
    require(got == 0 || (before != TLS_FAILED && before != TLS_ENDED && after != TLS_HANDSHAKE));
    require(before != TLS_FAILED || (after == TLS_FAILED && more == 0));
    require(before != TLS_ENDED || after == TLS_ENDED);
    require(before == TLS_HANDSHAKE || after != TLS_HANDSHAKE);
    require((after == TLS_FAILED) == (tls_why(talk->ours)[0] != '\0'));
    require(talk->heard.len <= talk->said.len &&
            span_equal(buf_span(&talk->heard), span_of(talk->said.ptr, talk->heard.len)));
    require(talk->spoken <= FLIGHT_MAX + talk->came);
    if (after == TLS_FAILED)
        check_why(tls_why(talk->ours));
}

static void feed_in_pieces(struct talk *talk, struct span cipher)
{
    while (cipher.len > 0) {
        size_t len = cipher.len < talk->cut ? cipher.len : talk->cut;
        feed(talk, span_of(cipher.ptr, len));
        cipher = span_of(cipher.ptr + len, cipher.len - len);
    }
}

static void take_output(struct tls *tls, struct buf *wire)
{
    buf_put_span(wire, buf_span(tls_output(tls)));
    buf_fini(tls_output(tls));
}

/* What ours has made reaches the peer, who answers. */
static void let_peer_answer(struct talk *talk)
{
    struct buf ignored = {0};
    take_output(talk->ours, &talk->back);
    read_all(talk->good, buf_span(&talk->back), &ignored);
    buf_fini(&talk->back);
    take_output(talk->good, &talk->wire);
    buf_fini(&ignored);
}

/* ---- steps ---- */

static void step_deliver(struct talk *talk, struct reader *in)
{
    size_t len = rd_u8(in) * (size_t)8;
    if (len == 0 || len > talk->wire.len)
        len = talk->wire.len;
    feed_in_pieces(talk, span_of(talk->wire.ptr, len));
    buf_consume(&talk->wire, len);
    let_peer_answer(talk);
}

static void step_alter(struct talk *talk, struct reader *in)
{
    size_t at = rd_u16(in);
    uint8_t change = rd_u8(in);
    if (at < talk->wire.len)
        talk->wire.ptr[at] ^= change;
}

static void step_lose(struct talk *talk, struct reader *in)
{
    size_t len = rd_u8(in);
    buf_consume(&talk->wire, len < talk->wire.len ? len : talk->wire.len);
}

static void step_insert(struct talk *talk, struct reader *in)
{
    size_t len = rd_u8(in);
    feed_in_pieces(talk, rd_bytes(in, len < rd_left(in) ? len : rd_left(in)));
}

/* A record with a true length, of whatever kind. */
static void step_insert_record(struct talk *talk, struct reader *in)
{
    struct buf record = {0};
    buf_put_u8(&record, rd_u8(in));
    buf_put_u16(&record, 0x0303);
    size_t len = rd_u8(in);
    struct span body = rd_bytes(in, len < rd_left(in) ? len : rd_left(in));
    buf_put_u16(&record, (uint16_t)body.len);
    buf_put_span(&record, body);
    feed_in_pieces(talk, buf_span(&record));
    buf_fini(&record);
}

static void step_say(struct talk *talk, struct reader *in)
{
    size_t len = rd_u8(in);
    struct span text = rd_bytes(in, len < rd_left(in) ? len : rd_left(in));
    struct buf copy = {0};
    buf_put_span(&copy, text);
    struct iovec piece = {.iov_base = copy.ptr, .iov_len = copy.len};
    if (copy.len > 0 && tls_write(talk->good, &piece, 1, &talk->wire))
        buf_put_span(&talk->said, text);
    buf_fini(&copy);
}

static void step_finish(struct talk *talk, struct reader *in)
{
    struct tls *who = rd_u8(in) % 2 ? talk->ours : talk->good;
    size_t before = tls_output(talk->ours)->len;
    tls_finish(who);
    talk->spoken += tls_output(talk->ours)->len - before;
    take_output(talk->good, &talk->wire);
}

/* The last bytes come again. */
static void step_repeat(struct talk *talk, struct reader *in)
{
    size_t len = rd_u8(in);
    struct buf copy = {0};
    buf_put(&copy, talk->wire.ptr, len < talk->wire.len ? len : talk->wire.len);
    feed_in_pieces(talk, buf_span(&copy));
    buf_fini(&copy);
}

static void (*const steps[])(struct talk *talk, struct reader *in) = {
    step_deliver, step_alter, step_lose, step_insert, step_insert_record, step_say, step_finish, step_repeat,
};

static void begin(struct talk *talk, uint8_t head, uint8_t cut)
{
    struct tls_context *server = servers[head / 4 % VERSIONS];
    bool is_direct = head / 2 % 2;
    struct tls *ends[2] = {tls_accept(server, is_direct), tls_connect(client, "localhost", is_direct)};
    require(ends[0] && ends[1]);
    *talk = (struct talk){.ours = ends[head % 2], .good = ends[1 - head % 2]};
    talk->cut = cut ? cut : SIZE_MAX;
    talk->spoken = tls_output(talk->ours)->len;
    let_peer_answer(talk);
}

static void end(struct talk *talk)
{
    tls_free(talk->good);
    tls_free(talk->ours);
    buf_fini(&talk->wire);
    buf_fini(&talk->back);
    buf_fini(&talk->said);
    buf_fini(&talk->heard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader in = rd_init(span_of(data, size));
    struct talk talk;
    if (!client)
        set_up();
    uint8_t head = rd_u8(&in);
    uint8_t cut = rd_u8(&in);
    begin(&talk, head, cut);
    for (uint8_t undisturbed = rd_u8(&in) % 5; undisturbed > 0; undisturbed--) {
        feed_in_pieces(&talk, buf_span(&talk.wire));
        buf_clear(&talk.wire);
        let_peer_answer(&talk);
    }
    while (rd_left(&in) > 0)
        steps[rd_u8(&in) % (sizeof steps / sizeof *steps)](&talk, &in);
    end(&talk);
    return 0;
}
