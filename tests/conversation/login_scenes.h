/* login_scenes.h - who meets whom at a log-in, under which rules, and what each is to hear.
 *
 * It is a table; it must not know how a scene is played. */
#ifndef LOGIN_SCENES_H
#define LOGIN_SCENES_H

#include "login_peer.h"

#define OURS 7   /* the certificate that we show to clients ... */
#define THEIRS 9 /* ... and the server's */

enum lookup { LOOKUP_NEVER, LOOKUP_FINDS, LOOKUP_FINDS_NONE, LOOKUP_FAILS };

struct scene {
    const char *name;
    struct login_client client;
    struct login_server server;
    const char *rules;  /* auth_hba_file; NULL: `relays`, or SCRAM for everybody */
    const char *ident;  /* auth_ident_file */
    const char *common; /* common name of the client's certificate */
    bool relays;
    enum lookup lookup;
    const char *as_user; /* the line of [databases] has user= */
    const char *heard;   /* by the client ... */
    const char *asked;   /* ... and by the server */
};

extern const struct scene login_scenes[];
extern const size_t login_scene_count;

#endif
