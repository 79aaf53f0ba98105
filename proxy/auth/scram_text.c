/* scram_text.c - attribute by attribute, in the order that the grammar gives: "n=...,r=...". */
#include "scram_text.h"

#include <string.h>

/* What is left of a text. A comma promises another attribute, so an empty rest is not yet the end. */
struct scram_rest {
    struct span left;
    bool is_over;
};

/* ---- attributes ---- */

static const char *scram_rest_init(struct scram_rest *rest, struct span text)
{
    *rest = (struct scram_rest){.left = text};
    if (text.len > SCRAM_MESSAGE_MAX)
        return "the text is longer than any exchange needs";
    if (text.len == 0)
        return "the text is empty";
    return memchr(text.ptr, 0, text.len) ? "a NUL in the text" : NULL;
}

static bool scram_rest_begins(const struct scram_rest *rest, char c)
{
    return !rest->is_over && rest->left.len > 0 && rest->left.ptr[0] == (uint8_t)c;
}

/* All up to the next comma. */
static struct span scram_rest_field(struct scram_rest *rest)
{
    struct span left = rest->left;
    const uint8_t *comma = left.len ? memchr(left.ptr, ',', left.len) : NULL;
    size_t len = comma ? (size_t)(comma - left.ptr) : left.len;
    rest->is_over = !comma;
    rest->left = span_of(left.ptr + len + (comma ? 1 : 0), left.len - len - (comma ? 1 : 0));
    return span_of(left.ptr, len);
}

/* The value of the next attribute, which must have this name. */
static bool scram_rest_value(struct scram_rest *rest, char name, struct span *value)
{
    if (!scram_rest_begins(rest, name))
        return false;
    struct span field = scram_rest_field(rest);
    if (field.len < 2 || field.ptr[1] != '=')
        return false;
    *value = span_of(field.ptr + 2, field.len - 2);
    return true;
}

/* The next attribute, whichever it is; 0 when it is none. */
static uint8_t scram_rest_any(struct scram_rest *rest, struct span *value)
{
    uint8_t name = rest->left.len > 0 ? rest->left.ptr[0] : 0;
    bool is_letter = (name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z');
    return is_letter && scram_rest_value(rest, (char)name, value) ? name : 0;
}

/* Extensions that nobody knows are allowed at the end, and mean nothing. */
static const char *scram_rest_extensions(struct scram_rest *rest)
{
    struct span ignored;
    while (!rest->is_over)
        if (!scram_rest_any(rest, &ignored))
            return "something behind the last attribute";
    return NULL;
}

/* ---- values ---- */

/* "," and "=" are written as "=2C" and "=3D". */
static bool scram_text_is_name(struct span name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] != '=')
            continue;
        if (name.len - i < 3)
            return false;
        uint8_t high = name.ptr[i + 1];
        uint8_t low = name.ptr[i + 2] & 0xdf; /* ABNF knows no case */
        if (!(high == '2' && low == 'C') && !(high == '3' && low == 'D'))
            return false;
    }
    return true;
}

static const char *scram_text_nonce(struct scram_rest *rest, size_t max, struct span *nonce)
{
    if (!scram_rest_value(rest, 'r', nonce))
        return "the nonce (r=) is not where it belongs";
    if (nonce->len == 0)
        return "the nonce is empty";
    if (nonce->len > max)
        return "the nonce is too long";
    for (size_t i = 0; i < nonce->len; i++)
        if (nonce->ptr[i] < 0x21 || nonce->ptr[i] > 0x7e)
            return "the nonce holds a character that is not printable";
    return NULL;
}

/* ---- the texts ---- */

/* gs2-header: a flag, perhaps an identity to act as, two commas. */
static const char *scram_text_header(struct scram_rest *rest, struct scram_client_first *out)
{
    struct span flag = scram_rest_field(rest);
    out->flag = flag.len > 0 ? flag.ptr[0] : 0;
    if (out->flag == 'p') {
        if (flag.len < 3 || flag.ptr[1] != '=')
            return "the channel binding has no name";
        out->binding = span_of(flag.ptr + 2, flag.len - 2);
    } else if (flag.len != 1 || (out->flag != 'n' && out->flag != 'y')) {
        return "the channel binding flag is none of n, y, p";
    }
    if (scram_rest_begins(rest, 'a'))
        return "an authorization identity (a=), which PostgreSQL does not have";
    if (scram_rest_field(rest).len > 0 || rest->is_over)
        return "the header does not end in two commas";
    return NULL;
}

const char *scram_text_client_first(struct span text, struct scram_client_first *out)
{
    struct scram_rest rest;
    struct span name;
    *out = (struct scram_client_first){0};
    const char *why = scram_rest_init(&rest, text);
    if (!why)
        why = scram_text_header(&rest, out);
    if (why)
        return why;
    out->bare = rest.left;
    out->header = span_of(text.ptr, text.len - rest.left.len);
    if (scram_rest_begins(&rest, 'm'))
        return "an extension that must be understood (m=)";
    /* The user is the start-up packet's: this one is empty with libpq, and "*" with others. */
    if (!scram_rest_value(&rest, 'n', &name) || !scram_text_is_name(name))
        return "the user name (n=) is missing or malformed";
    why = scram_text_nonce(&rest, SCRAM_NONCE_MAX / 2, &out->nonce);
    return why ? why : scram_rest_extensions(&rest);
}

const char *scram_text_server_first(struct span text, struct scram_server_first *out)
{
    struct scram_rest rest;
    struct span value;
    *out = (struct scram_server_first){0};
    const char *why = scram_rest_init(&rest, text);
    if (why)
        return why;
    if (scram_rest_begins(&rest, 'm'))
        return "an extension that must be understood (m=)";
    why = scram_text_nonce(&rest, SCRAM_NONCE_MAX, &out->nonce);
    if (why)
        return why;
    if (!scram_rest_value(&rest, 's', &value) || !secret_read_salt(value, out->salt, &out->salt_len))
        return "the salt (s=) is missing, too long or no base64";
    if (!scram_rest_value(&rest, 'i', &value) || !secret_read_iterations(value, &out->iterations))
        return "the iteration count (i=) is missing or no reasonable number";
    return scram_rest_extensions(&rest);
}

const char *scram_text_client_final(struct span text, struct scram_client_final *out)
{
    struct scram_rest rest;
    struct span value;
    *out = (struct scram_client_final){0};
    const char *why = scram_rest_init(&rest, text);
    if (why)
        return why;
    if (!scram_rest_value(&rest, 'c', &out->binding))
        return "the channel binding (c=) is not where it belongs";
    why = scram_text_nonce(&rest, SCRAM_NONCE_MAX, &out->nonce);
    if (why)
        return why;
    /* Extensions stand in front of the proof, which is the last. */
    for (uint8_t name = 0; name != 'p';) {
        out->without_proof = span_of(text.ptr, text.len - rest.left.len - (rest.is_over ? 0 : 1));
        name = rest.is_over ? 0 : scram_rest_any(&rest, &value);
        if (name == 0)
            return "the proof (p=) is missing";
    }
    if (!rest.is_over)
        return "something behind the proof";
    return secret_read_key(value, out->proof) ? NULL : "the proof is not 32 bytes in base64";
}

const char *scram_text_server_final(struct span text, struct scram_server_final *out)
{
    struct scram_rest rest;
    struct span value;
    *out = (struct scram_server_final){0};
    const char *why = scram_rest_init(&rest, text);
    if (why)
        return why;
    out->is_error = scram_rest_begins(&rest, 'e');
    if (!scram_rest_value(&rest, out->is_error ? 'e' : 'v', &value))
        return "neither a signature (v=) nor an error (e=)";
    if (!out->is_error && !secret_read_key(value, out->signature))
        return "the signature is not 32 bytes in base64";
    return scram_rest_extensions(&rest);
}
