/*
 * A server and a client of one program: the client races QUIC against TCP, both under TLS, sends a
 * message and receives the echo.
 *
 *     cc -std=c11 -Wall -Wextra -Werror -pedantic echo.c $(pkg-config --cflags --libs eyas) -o echo
 */
#include <eyas.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A generous timeout, because both ends are in the same program. */
#define PATIENCE 20000

static void check(eyas_code code, eyas_error *error, const char *what)
{
    if (code == EYAS_OK)
        return;
    fprintf(stderr, "%s: code %d: %s\n", what, (int)code, eyas_error_message(error));
    eyas_error_free(error);
    exit(1);
}

/* A server of QUIC and TCP on one port, and the certificate that clients must trust. */
static eyas_listener *serve(eyas_endpoint *endpoint, char **certificate)
{
    eyas_error *error;
    eyas_listen_options *options;
    eyas_listener *listener;

    check(eyas_listen_options_new("127.0.0.1:0", &options, &error), error, "options");
    check(eyas_listen_options_set_transports(options, "quic,tcp", &error), error, "transports");
    check(eyas_listen_options_set_self_signed(options, "localhost", &error), error, "certificate");
    check(eyas_listen_options_add_alpn(options, "echo", &error), error, "protocol");
    check(eyas_listen_options_certificate_pem(options, certificate, &error), error, "certificate");
    check(eyas_listen(endpoint, options, &listener, &error), error, "listen");
    eyas_listen_options_free(options);
    return listener;
}

static eyas_endpoint *client_that_trusts(const char *certificate)
{
    eyas_error *error;
    eyas_endpoint_options *options;
    eyas_endpoint *endpoint;

    check(eyas_endpoint_options_new(&options, &error), error, "options");
    check(eyas_endpoint_options_set_roots(options, certificate, strlen(certificate), &error), error,
          "roots");
    check(eyas_endpoint_new(options, &endpoint, &error), error, "endpoint");
    eyas_endpoint_options_free(options);
    return endpoint;
}

/* Reads until the peer ends its side. */
static size_t read_all(eyas_connection *connection, char *buffer, size_t size)
{
    eyas_error *error;
    size_t total = 0, length;
    eyas_code code;

    while ((code = eyas_connection_read(connection, buffer + total, size - total, &length, PATIENCE,
                                        &error)) == EYAS_OK && total < size)
        total += length;
    if (code != EYAS_END)
        check(code, error, "read");
    return total;
}

/*
 * Accepts the client's connection and reads its first message. A race may open more than one connection: those
 * that lose end without data.
 */
static eyas_connection *accept_speaker(eyas_listener *listener, char *buffer, size_t size,
                                       size_t *length)
{
    eyas_error *error;
    eyas_connection *connection;

    for (;;) {
        check(eyas_listener_accept(listener, PATIENCE, &connection, &error), error, "accept");
        if (eyas_connection_read(connection, buffer, size, length, PATIENCE, NULL) == EYAS_OK)
            return connection;
        eyas_connection_free(connection);
    }
}

int main(void)
{
    const char greeting[] = "hello over whatever gets through";
    char buffer[256], *certificate, *json;
    eyas_error *error;
    eyas_endpoint *server, *client;
    eyas_listener *listener;
    eyas_target *target;
    eyas_connection *here, *there;
    size_t length;
    uint16_t port;

    printf("eyas %s\n", eyas_version_text());
    check(eyas_endpoint_new(NULL, &server, &error), error, "endpoint");
    listener = serve(server, &certificate);
    check(eyas_listener_port(listener, &port, &error), error, "port");

    client = client_that_trusts(certificate);
    eyas_text_free(certificate);
    check(eyas_target_new("localhost", port, &target, &error), error, "target");
    check(eyas_target_add_alpn(target, "echo", &error), error, "protocol");
    check(eyas_connect(client, target, PATIENCE, &here, &error), error, "connect");

    check(eyas_connection_write(here, greeting, strlen(greeting), NULL, PATIENCE, &error), error,
          "write");
    check(eyas_connection_shutdown(here, PATIENCE, &error), error, "shutdown");
    there = accept_speaker(listener, buffer, sizeof buffer, &length);
    length += read_all(there, buffer + length, sizeof buffer - length);
    check(eyas_connection_write(there, buffer, length, NULL, PATIENCE, &error), error, "write");
    check(eyas_connection_shutdown(there, PATIENCE, &error), error, "shutdown");
    length = read_all(here, buffer, sizeof buffer);
    printf("%.*s\n", (int)length, buffer);
    if (length != strlen(greeting) || memcmp(buffer, greeting, length) != 0)
        return 1;

    check(eyas_connection_info_json(here, &json, &error), error, "info");
    printf("%s\n", json);
    eyas_text_free(json);
    check(eyas_connection_race_json(here, &json, &error), error, "race");
    printf("%s\n", json);
    eyas_text_free(json);
    check(eyas_memory_json(client, NULL, &json, &error), error, "memory");
    printf("%s\n", json);
    eyas_text_free(json);

    eyas_connection_free(there);
    eyas_connection_free(here);
    eyas_target_free(target);
    eyas_listener_free(listener);
    eyas_endpoint_free(client);
    eyas_endpoint_free(server);
    return 0;
}
