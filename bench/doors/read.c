/*
 * Reads what a peer sends until it ends, for `cargo eyas-bench bulk`.
 *
 *     read TRANSPORT PORT CERTIFICATE
 */
#include <eyas.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 60000

static char buffer[256 * 1024], certificate[64 * 1024];

static void check(eyas_code code, eyas_error *error, const char *what)
{
    if (code == EYAS_OK)
        return;
    fprintf(stderr, "%s: code %d: %s\n", what, (int)code, eyas_error_message(error));
    exit(1);
}

int main(int count, char **arguments)
{
    eyas_error *error;
    eyas_endpoint_options *options;
    eyas_endpoint *endpoint;
    eyas_target *target;
    eyas_connection *connection;
    eyas_code code;
    size_t length;
    FILE *file;

    if (count != 4)
        return 2;
    file = fopen(arguments[3], "r");
    if (file == NULL)
        return 2;
    length = fread(certificate, 1, sizeof certificate, file);
    check(eyas_endpoint_options_new(&options, &error), error, "options");
    check(eyas_endpoint_options_set_roots(options, certificate, length, &error), error, "roots");
    check(eyas_endpoint_new(options, &endpoint, &error), error, "endpoint");
    check(eyas_target_new("localhost", (uint16_t)atoi(arguments[2]), &target, &error), error, "target");
    check(eyas_target_set_transports(target, arguments[1], &error), error, "transports");
    check(eyas_connect(endpoint, target, PATIENCE, &connection, &error), error, "connect");
    check(eyas_connection_shutdown(connection, PATIENCE, &error), error, "shutdown");
    do
        code = eyas_connection_read(connection, buffer, sizeof buffer, &length, PATIENCE, &error);
    while (code == EYAS_OK);
    if (code != EYAS_END)
        check(code, error, "read");
    return 0;
}
