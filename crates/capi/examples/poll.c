/*
 * One thread and poll(2): a race, a listener and two connections, all waited for at the same time.
 * At the end the connection is converted to its plain TCP socket.
 */
#include <eyas.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 20000
/* More than a socket buffers, so that writing has to wait for reading. */
#define SIZE (4 * 1024 * 1024)

static void check(eyas_code code, eyas_error *error, const char *what)
{
    if (code == EYAS_OK || code == EYAS_WOULD_BLOCK)
        return;
    fprintf(stderr, "%s: code %d: %s\n", what, (int)code, eyas_error_message(error));
    eyas_error_free(error);
    exit(1);
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void wait_for(struct pollfd *waiting, nfds_t count)
{
    if (poll(waiting, count, PATIENCE) <= 0)
        fail("nothing became ready");
}

/* Connects and accepts at the same time. */
static void meet(eyas_endpoint *endpoint, eyas_listener *listener, const eyas_target *target,
                 eyas_connection **here, eyas_connection **there)
{
    eyas_error *error;
    eyas_race *race;
    struct pollfd waiting[2];

    memset(waiting, 0, sizeof waiting);
    check(eyas_race_start(endpoint, target, &race, &error), error, "race");
    check(eyas_race_fd(race, &waiting[0].fd, &error), error, "descriptor");
    check(eyas_listener_fd(listener, &waiting[1].fd, &error), error, "descriptor");
    waiting[0].events = waiting[1].events = POLLIN;
    *here = *there = NULL;
    while (*here == NULL || *there == NULL) {
        wait_for(waiting, 2);
        if (*here == NULL && waiting[0].revents) {
            check(eyas_race_finish(race, 0, here, &error), error, "connect");
            if (*here != NULL)
                waiting[0].fd = -1;
        }
        if (*there == NULL && waiting[1].revents) {
            check(eyas_listener_accept(listener, 0, there, &error), error, "accept");
            if (*there != NULL)
                waiting[1].fd = -1;
        }
    }
    eyas_race_free(race);
}

/* A race may open more than one connection: those that lose end without data, and another one follows. */
static void take_next(eyas_listener *listener, eyas_connection **there, struct pollfd *reading)
{
    eyas_error *error;

    eyas_connection_free(*there);
    check(eyas_listener_accept(listener, PATIENCE, there, &error), error, "accept");
    check(eyas_connection_read_fd(*there, &reading->fd, &error), error, "descriptor");
}

/* Writes at one end while it reads at the other, in one thread. */
static void transfer(eyas_connection *from, eyas_connection **to, eyas_listener *listener)
{
    static char data[SIZE], buffer[64 * 1024];
    eyas_error *error;
    struct pollfd waiting[2];
    size_t written = 0, total = 0, blocked = 0, length;
    eyas_code code;

    memset(data, 'x', sizeof data);
    memset(waiting, 0, sizeof waiting);
    check(eyas_connection_write_fd(from, &waiting[0].fd, &error), error, "descriptor");
    check(eyas_connection_read_fd(*to, &waiting[1].fd, &error), error, "descriptor");
    waiting[0].events = waiting[1].events = POLLIN;
    while (total < SIZE) {
        wait_for(waiting, 2);
        if (waiting[0].revents) {
            code = eyas_connection_write(from, data + written, SIZE - written, &length, 0, &error);
            check(code, error, "write");
            blocked += code == EYAS_WOULD_BLOCK;
            written += length;
            if (written == SIZE)
                waiting[0].fd = -1;
        }
        if (waiting[1].revents) {
            code = eyas_connection_read(*to, buffer, sizeof buffer, &length, 0, &error);
            if (code == EYAS_END && total == 0)
                take_next(listener, to, &waiting[1]);
            else
                check(code, error, "read");
            total += length;
        }
    }
    printf("%lu bytes, %lu times without room\n", (unsigned long)total, (unsigned long)blocked);
}

/* The sockets themselves, with the usual calls. */
static void as_descriptors(eyas_connection *here, eyas_connection *there)
{
    eyas_error *error;
    char buffer[16];
    int client, server;

    check(eyas_connection_into_fd(here, &client, &error), error, "take out");
    check(eyas_connection_into_fd(there, &server, &error), error, "take out");
    if (write(client, "plain", 5) != 5 || read(server, buffer, sizeof buffer) != 5)
        fail("the descriptors carry nothing");
    close(client);
    close(server);
    /* The handle reports that it was converted. */
    if (eyas_connection_write(here, "x", 1, NULL, 0, &error) != EYAS_MISUSE)
        fail("a connection that was taken out can be written to");
    printf("%s\n", eyas_error_message(error));
    eyas_error_free(error);
}

int main(void)
{
    eyas_error *error;
    eyas_endpoint *endpoint;
    eyas_listen_options *options;
    eyas_listener *listener;
    eyas_target *target;
    eyas_connection *here, *there;
    uint16_t port;

    check(eyas_endpoint_new(NULL, &endpoint, &error), error, "endpoint");
    check(eyas_listen_options_new("127.0.0.1:0", &options, &error), error, "options");
    check(eyas_listen(endpoint, options, &listener, &error), error, "listen");
    eyas_listen_options_free(options);
    check(eyas_listener_port(listener, &port, &error), error, "port");
    check(eyas_target_new("127.0.0.1", port, &target, &error), error, "target");
    check(eyas_target_set_transports(target, "tcp", &error), error, "transports");
    check(eyas_target_set_security(target, "none", &error), error, "security");

    meet(endpoint, listener, target, &here, &there);
    transfer(here, &there, listener);
    as_descriptors(here, there);

    eyas_connection_free(here);
    eyas_connection_free(there);
    eyas_target_free(target);
    eyas_listener_free(listener);
    eyas_endpoint_free(endpoint);
    return 0;
}
