/*
 * Tests the guarantees about signals and forks in a program that handles neither: writing to a connection that
 * the peer has reset returns a code and raises no SIGPIPE, over TCP and over TLS; a signal does not end a
 * waiting call; and a child can only free the handles of its parent.
 */
#include <eyas.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 60000

static volatile sig_atomic_t alarms;

static void check(eyas_code code, eyas_error *error, const char *what)
{
    if (code == EYAS_OK)
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

static void count(int number)
{
    (void)number;
    alarms++;
}

/* Opens both ends of a connection over TCP, with TLS if requested. */
struct pair {
    eyas_endpoint *server, *client;
    eyas_listener *listener;
    eyas_connection *here, *there;
};

static void serve(struct pair *pair, bool tls)
{
    eyas_error *error;
    eyas_listen_options *options;
    eyas_endpoint_options *trust;
    char *certificate;

    check(eyas_endpoint_new(NULL, &pair->server, &error), error, "endpoint");
    check(eyas_listen_options_new("127.0.0.1:0", &options, &error), error, "options");
    check(eyas_endpoint_options_new(&trust, &error), error, "options");
    if (tls) {
        check(eyas_listen_options_set_self_signed(options, "127.0.0.1", &error), error, "identity");
        check(eyas_listen_options_certificate_pem(options, &certificate, &error), error, "PEM");
        check(eyas_endpoint_options_set_roots(trust, certificate, strlen(certificate), &error),
              error, "roots");
        eyas_text_free(certificate);
    }
    check(eyas_listen(pair->server, options, &pair->listener, &error), error, "listen");
    check(eyas_endpoint_new(trust, &pair->client, &error), error, "endpoint");
    eyas_listen_options_free(options);
    eyas_endpoint_options_free(trust);
}

static void open_pair(struct pair *pair, bool tls)
{
    eyas_error *error;
    eyas_target *target;
    uint16_t port;
    char greeting;
    size_t length;

    serve(pair, tls);
    check(eyas_listener_port(pair->listener, &port, &error), error, "port");
    check(eyas_target_new("127.0.0.1", port, &target, &error), error, "target");
    check(eyas_target_set_transports(target, "tcp", &error), error, "transports");
    check(eyas_target_set_security(target, tls ? "tls" : "none", &error), error, "security");
    check(eyas_connect(pair->client, target, PATIENCE, &pair->here, &error), error, "connect");
    check(eyas_connection_write(pair->here, "!", 1, NULL, PATIENCE, &error), error, "write");
    eyas_target_free(target);
    for (;;) {
        check(eyas_listener_accept(pair->listener, PATIENCE, &pair->there, &error), error, "accept");
        if (eyas_connection_read(pair->there, &greeting, 1, &length, PATIENCE, NULL) == EYAS_OK)
            return;
        /* It has lost the race. */
        eyas_connection_free(pair->there);
    }
}

static void close_pair(struct pair *pair)
{
    eyas_connection_free(pair->here);
    eyas_connection_free(pair->there);
    eyas_listener_free(pair->listener);
    eyas_endpoint_free(pair->client);
    eyas_endpoint_free(pair->server);
}

static void write_after_reset(bool tls)
{
    struct pair pair;
    eyas_error *error;
    eyas_code code;
    int again;

    open_pair(&pair, tls);
    /* Closing with unread data causes a reset. */
    check(eyas_connection_write(pair.here, "unread", 6, NULL, PATIENCE, &error), error, "write");
    check(eyas_connection_abort(pair.there, &error), error, "abort");
    do {
        code = eyas_connection_write(pair.here, "x", 1, NULL, PATIENCE, NULL);
    } while (code == EYAS_OK);
    if (code != EYAS_CLOSED)
        fail("a connection that was reset is not closed");
    /* The kernel reports the reset once, and raises the signal from then on. */
    for (again = 0; again < 3; again++)
        if (eyas_connection_write(pair.here, "x", 1, NULL, PATIENCE, NULL) != EYAS_CLOSED)
            fail("a connection that was reset is open again");
    close_pair(&pair);
}

static void wait_through_signals(void)
{
    struct pair pair;
    struct sigaction action;
    char byte;
    size_t length;

    open_pair(&pair, false);
    memset(&action, 0, sizeof action);
    action.sa_handler = count;
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    if (eyas_connection_read(pair.here, &byte, 1, &length, 2000, NULL) != EYAS_TIMEOUT)
        fail("a call was over before its time");
    if (alarms != 1)
        fail("the program's handler has not run");
    close_pair(&pair);
}

static void free_in_a_child(void)
{
    struct pair pair;
    pid_t child;
    int status;

    open_pair(&pair, true);
    child = fork();
    if (child == 0) {
        if (eyas_connection_write(pair.here, "x", 1, NULL, -1, NULL) != EYAS_MISUSE)
            _exit(1);
        close_pair(&pair);
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0)
        fail("the child could not free what its parent has made");
    if (eyas_connection_write(pair.here, "x", 1, NULL, PATIENCE, NULL) != EYAS_OK)
        fail("what the child has freed is gone in the parent");
    close_pair(&pair);
}

int main(void)
{
    write_after_reset(false);
    write_after_reset(true);
    wait_through_signals();
    free_in_a_child();
    puts("signals and forks are as promised");
    return 0;
}
