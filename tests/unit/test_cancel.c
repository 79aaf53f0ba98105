/* test_cancel.c - a key leads to where its session is, as long as the session lives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/session/cancel.h"

static const uint8_t first_key[] = {0, 0, 0, 1, 1, 2, 3, 4};
static const uint8_t second_key[] = {0, 0, 0, 1, 1, 2, 3, 5}; /* of the same process number */

#define FIRST span_of(first_key, sizeof first_key)
#define SECOND span_of(second_key, sizeof second_key)

static struct cancel_route route_over(struct conf *conf, uint8_t last_byte)
{
    return (struct cancel_route){.conf = conf,
                                 .database = conf->databases,
                                 .address = {.len = 2, .bytes = {127, last_byte}},
                                 .is_tls = last_byte == 2};
}

/* The route's last byte; -1 where there is none. */
static int found(struct cancel_map *map, struct span key)
{
    struct cancel_route route;
    if (!cancel_map_find(map, key, &route))
        return -1;
    assert_int_equal(route.is_tls, route.address.bytes[1] == 2);
    assert_string_equal(route.database->hosts[0].host, "10.0.0.1");
    conf_unref(route.conf);
    return route.address.bytes[1];
}

static void keys_lead_to_their_sessions(void **state)
{
    struct cancel_map *map = cancel_map_new();
    struct conf *conf = conf_default("10.0.0.1", 5432);
    struct cancel_route one = route_over(conf, 1), two = route_over(conf, 2);
    (void)state;
    assert_int_equal(found(map, FIRST), -1);
    cancel_map_add(map, FIRST, &one);
    cancel_map_add(map, SECOND, &two);
    conf_unref(conf); /* as a reload does: the map's routes are good all the same */
    assert_int_equal(found(map, FIRST), 1);
    assert_int_equal(found(map, SECOND), 2);
    assert_int_equal(found(map, span_of(first_key, 7)), -1);
    cancel_map_remove(map, FIRST);
    assert_int_equal(found(map, FIRST), -1);
    assert_int_equal(found(map, SECOND), 2);
    cancel_map_free(map); /* with one in it */
}

static void the_newest_of_a_key_counts(void **state)
{
    struct cancel_map *map = cancel_map_new();
    struct conf *conf = conf_default("10.0.0.1", 5432);
    struct cancel_route one = route_over(conf, 1), two = route_over(conf, 2);
    (void)state;
    cancel_map_add(map, FIRST, &one);
    cancel_map_add(map, FIRST, &two);
    assert_int_equal(found(map, FIRST), 2);
    cancel_map_free(map);
    conf_unref(conf);
}

static void without_memory_there_is_no_route(void **state)
{
    struct cancel_map *map = cancel_map_new();
    struct conf *conf = conf_default("10.0.0.1", 5432);
    struct cancel_route one = route_over(conf, 1);
    (void)state;
    mem_fail_after(0);
    cancel_map_add(map, FIRST, &one);
    mem_fail_after(-1);
    assert_int_equal(found(map, FIRST), -1);
    cancel_map_add(NULL, FIRST, &one);
    assert_int_equal(found(NULL, FIRST), -1);
    cancel_map_free(map);
    conf_unref(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_lead_to_their_sessions),
        cmocka_unit_test(the_newest_of_a_key_counts),
        cmocka_unit_test(without_memory_there_is_no_route),
    };
    return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
