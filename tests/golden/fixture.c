/* fixture.c - facts without a server, shared with the unit tests: this folder's programs link what it holds. */
#include "../unit/fixture.c"
