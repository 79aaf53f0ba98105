/* routes.h - what the configuration means for log-ins, line by line of [databases], for a person.
 *
 * It knows which mode a host is reached in; the words are auth/route.h's. */
#ifndef ROUTES_H
#define ROUTES_H

struct conf;

/* One sentence for each line, or for each mode that its hosts are reached in. */
void routes_tell(const struct conf *conf, void (*tell)(const char *sentence));

#endif
