/*
 * Messages over SCTP over UDP, on separate streams, over two paths at once. Both ends are in this
 * program, and the two networks are two pairs of loopback addresses.
 */
#include <eyas.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 20000
#define MESSAGES 8

static void check(eyas_code code, eyas_error *error, const char *what)
{
    if (code == EYAS_OK)
        return;
    fprintf(stderr, "%s: code %d: %s\n", what, (int)code, eyas_error_message(error));
    eyas_error_free(error);
    exit(1);
}

static eyas_endpoint *endpoint_at(const char *first, const char *second)
{
    eyas_error *error;
    eyas_endpoint_options *options;
    eyas_endpoint *endpoint;

    check(eyas_endpoint_options_new(&options, &error), error, "options");
    check(eyas_endpoint_options_add_sctp_local_address(options, first, &error), error, "address");
    check(eyas_endpoint_options_add_sctp_local_address(options, second, &error), error, "address");
    check(eyas_endpoint_options_set_sctp_multipath(options, true, &error), error, "multipath");
    check(eyas_endpoint_new(options, &endpoint, &error), error, "endpoint");
    eyas_endpoint_options_free(options);
    return endpoint;
}

static eyas_listener *listen_at(eyas_endpoint *endpoint, const char *address, const char *further)
{
    eyas_error *error;
    eyas_listen_options *options;
    eyas_listener *listener;

    check(eyas_listen_options_new(address, &options, &error), error, "options");
    check(eyas_listen_options_set_transports(options, "sctp-udp", &error), error, "transports");
    check(eyas_listen_options_set_sctp_udp_port(options, 0, &error), error, "UDP port");
    check(eyas_listen_options_add_sctp_address(options, further, &error), error, "address");
    check(eyas_listen_options_set_sctp_multipath(options, true, &error), error, "multipath");
    check(eyas_listen(endpoint, options, &listener, &error), error, "listen");
    eyas_listen_options_free(options);
    return listener;
}

static eyas_association *connect_to(eyas_endpoint *endpoint, const char *host, uint16_t port,
                                    uint16_t udp_port)
{
    eyas_error *error;
    eyas_target *target;
    eyas_connection *connection;
    eyas_association *association;

    check(eyas_target_new(host, port, &target, &error), error, "target");
    check(eyas_target_set_transports(target, "sctp-udp", &error), error, "transports");
    check(eyas_target_set_security(target, "none", &error), error, "security");
    check(eyas_target_set_sctp_udp_port(target, udp_port, &error), error, "UDP port");
    check(eyas_connect(endpoint, target, PATIENCE, &connection, &error), error, "connect");
    check(eyas_connection_into_association(connection, &association, &error), error, "association");
    eyas_connection_free(connection);
    eyas_target_free(target);
    return association;
}

/* Waits for a notification of this name. */
static void expect(eyas_association *association, const char *name)
{
    eyas_error *error;
    eyas_event *event;
    int found = 0;

    while (!found) {
        check(eyas_association_event(association, PATIENCE, &event, &error), error, "event");
        printf("%s\n", eyas_event_json(event));
        found = strcmp(eyas_event_name(event), name) == 0;
        eyas_event_free(event);
    }
}

static void send_messages(eyas_association *association)
{
    char text[32];
    eyas_error *error;
    eyas_send_options *options;
    uint16_t number;

    check(eyas_send_options_new(&options, &error), error, "options");
    check(eyas_send_options_set_ppid(options, 51, &error), error, "PPID");
    check(eyas_send_options_set_lifetime(options, 60000, &error), error, "lifetime");
    for (number = 0; number < MESSAGES; number++) {
        /* Loss or delay on one stream does not delay another. */
        check(eyas_send_options_set_stream(options, number % 4, &error), error, "stream");
        check(eyas_send_options_set_unordered(options, number % 2 == 1, &error), error, "order");
        snprintf(text, sizeof text, "message %u", (unsigned)number);
        check(eyas_association_send(association, text, strlen(text), options, PATIENCE, &error),
              error, "send");
    }
    eyas_send_options_free(options);
}

static void receive_messages(eyas_association *association)
{
    eyas_error *error;
    eyas_message *message;
    const void *data;
    size_t size;
    int left;

    for (left = MESSAGES; left > 0; left--) {
        check(eyas_association_receive(association, PATIENCE, &message, &error), error, "receive");
        check(eyas_message_data(message, &data, &size, &error), error, "data");
        printf("stream %u, PPID %lu%s: %.*s\n", (unsigned)eyas_message_stream(message),
               (unsigned long)eyas_message_ppid(message),
               eyas_message_is_unordered(message) ? ", unordered" : "", (int)size,
               (const char *)data);
        if (eyas_message_ppid(message) != 51 || !eyas_message_ends(message))
            exit(1);
        eyas_message_free(message);
    }
}

int main(void)
{
    eyas_error *error;
    eyas_endpoint *server, *client;
    eyas_listener *listener;
    eyas_connection *accepted;
    eyas_association *here, *there;
    uint16_t port, udp_port;
    char *status;

    check(eyas_endpoint_new(NULL, &server, &error), error, "endpoint");
    listener = listen_at(server, "127.0.0.21:0", "127.0.0.22");
    check(eyas_listener_port(listener, &port, &error), error, "port");
    check(eyas_listener_sctp_udp_port(listener, &udp_port, &error), error, "UDP port");

    client = endpoint_at("127.0.0.23", "127.0.0.24");
    here = connect_to(client, "127.0.0.21", port, udp_port);
    check(eyas_listener_accept(listener, PATIENCE, &accepted, &error), error, "accept");
    check(eyas_connection_into_association(accepted, &there, &error), error, "association");
    eyas_connection_free(accepted);

    expect(here, "up");
    send_messages(here);
    receive_messages(there);
    check(eyas_association_status_json(here, &status, &error), error, "status");
    printf("%s\n", status);
    eyas_text_free(status);

    check(eyas_association_shutdown(here, PATIENCE, &error), error, "shutdown");
    expect(there, "peer-shutdown");
    eyas_association_free(here);
    eyas_association_free(there);
    eyas_listener_free(listener);
    eyas_endpoint_free(client);
    eyas_endpoint_free(server);
    return 0;
}
