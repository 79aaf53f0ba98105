/* hba_fixture.h - rules from texts. */
#ifndef HBA_FIXTURE_H
#define HBA_FIXTURE_H

#include "../../proxy/auth/hba.h"

/* The rules of a file "hba" with this text; NULL where it is refused. *complaints is to be freed. */
struct hba *hba_of(const char *text, size_t len, char **complaints);

#endif
