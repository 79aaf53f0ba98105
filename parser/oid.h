/* oid.h - the oids of built-in types that the parser knows by themselves; they are the same on every server.
 *
 * It holds numbers only; what a type can do is for facts to say. */
#ifndef PARSER_OID_H
#define PARSER_OID_H

enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_OID = 26,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_UNKNOWN = 705,
    OID_ACLITEM = 1033,
    OID_BPCHAR = 1042,
    OID_VARCHAR = 1043,
    OID_DATE = 1082,
    OID_TIMESTAMP = 1114,
    OID_TIMESTAMPTZ = 1184,
    OID_NUMERIC = 1700,
    OID_UUID = 2950,
    OID_FIRST_USER = 16384 /* from here on types are made by users */
};

#endif
