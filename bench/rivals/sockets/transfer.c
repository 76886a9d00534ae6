/* A program written for the SCTP of Linux: one-to-one sockets, and nothing of eyas. What
 * src/command.rs of the rivals in Rust says of the command line and the answer holds here too, for
 * `receive` and `send`; the other words are in the usage. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sctp.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 2 << 20, ASKED = 64 };

static void fail(const char *what) {
    fprintf(stderr, "sockets: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double wall_start, cpu_start;

static void start(void) {
    wall_start = seconds(CLOCK_MONOTONIC);
    cpu_start = seconds(CLOCK_PROCESS_CPUTIME_ID);
}

static void answer(uint64_t messages, uint64_t bytes) {
    printf("{\"messages\": %llu, \"bytes\": %llu, \"cpu\": %.6f, \"wall\": %.6f, \"memory\": 0}\n",
           (unsigned long long)messages, (unsigned long long)bytes,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start, seconds(CLOCK_MONOTONIC) - wall_start);
    fflush(stdout);
}

static void ready(void) {
    puts("ready");
    fflush(stdout);
}

/* Whoever started this has seen what it wanted to once it closes our standard input. */
static void wait_for_end(void) {
    char byte;
    while (read(0, &byte, 1) > 0) continue;
}

static struct sockaddr_in parse(const char *text) {
    char host[64];
    uint16_t port;
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (sscanf(text, "%63[^:]:%hu", host, &port) != 2 || inet_pton(AF_INET, host, &address.sin_addr) != 1)
        fail("the address is not HOST:PORT");
    address.sin_port = htons(port);
    return address;
}

static int new_socket(void) {
    int made = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), size = WINDOW, on = 1;
    if (made < 0) fail("socket");
    if (setsockopt(made, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) < 0 ||
        setsockopt(made, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) < 0 ||
        setsockopt(made, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) < 0)
        fail("setsockopt");
    return made;
}

static int listen_at(const char *where) {
    struct sockaddr_in local = parse(where);
    int listening = new_socket();
    if (bind(listening, (struct sockaddr *)&local, sizeof local) < 0) fail("bind");
    if (listen(listening, 4096) < 0) fail("listen");
    ready();
    return listening;
}

static int accept_one(int listening) {
    int peer = accept(listening, NULL, NULL);
    if (peer < 0) fail("accept");
    return peer;
}

static int connect_to(const char *where) {
    struct sockaddr_in remote = parse(where);
    int made = new_socket();
    if (connect(made, (struct sockaddr *)&remote, sizeof remote) < 0) fail("connect");
    return made;
}

static uint8_t *message_of(size_t size) {
    uint8_t *message = malloc(size);
    if (message == NULL) fail("memory");
    memset(message, 0x5a, size);
    return message;
}

/* One message; false at the end. */
static bool receive_one(int from, uint8_t *buffer, size_t size) {
    for (size_t length = 0;;) {
        struct iovec part = {buffer + length, size - length};
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t got = recvmsg(from, &header, 0);
        if (got == 0 && length == 0) return false;
        if (got <= 0) fail("recvmsg");
        length += (size_t)got;
        if (header.msg_flags & MSG_EOR) {
            if (length != size) fail("length");
            return true;
        }
    }
}

static void send_one(int to, const uint8_t *message, size_t size) {
    if (send(to, message, size, MSG_NOSIGNAL) != (ssize_t)size) fail("send");
}

static void receive(const char *where, size_t size, uint64_t bytes) {
    int peer = accept_one(listen_at(where));
    uint8_t *buffer = message_of(size);
    uint64_t count = (bytes + size - 1) / size;
    for (uint64_t received = 0; received < count; received++) {
        if (!receive_one(peer, buffer, size)) fail("the peer has closed");
        if (received == 0) start();
    }
    answer(count, count * size);
}

static void transmit(const char *where, size_t size, uint64_t bytes) {
    int to = connect_to(where);
    uint8_t *message = message_of(size);
    uint64_t count = (bytes + size - 1) / size;
    start();
    for (uint64_t sent = 0; sent < count; sent++) send_one(to, message, size);
    for (;;) {
        struct sctp_status status = {0};
        socklen_t length = sizeof status;
        if (getsockopt(to, IPPROTO_SCTP, SCTP_STATUS, &status, &length) < 0) break;
        if (status.sstat_unackdata == 0 && status.sstat_penddata == 0) break;
        usleep(2000);
    }
    answer(count, count * size);
}

static void echo(const char *where, uint64_t count) {
    int peer = accept_one(listen_at(where));
    uint8_t *buffer = message_of(ASKED);
    start();
    for (uint64_t answered = 0; answered < count; answered++) {
        if (!receive_one(peer, buffer, ASKED)) fail("the peer has closed");
        send_one(peer, buffer, ASKED);
    }
    answer(count, count * ASKED);
}

static void ping(const char *where, uint64_t count) {
    int to = connect_to(where);
    uint8_t *buffer = message_of(ASKED);
    start();
    for (uint64_t asked = 0; asked < count; asked++) {
        send_one(to, buffer, ASKED);
        if (!receive_one(to, buffer, ASKED)) fail("the peer has closed");
    }
    answer(count, count * ASKED);
}

static void no_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) fail("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) fail("setrlimit");
}

/* Accepts so many, and has all of them; an end of one is read at the end of all. */
static void hold(const char *where, uint64_t count) {
    no_limit();
    int listening = listen_at(where);
    for (uint64_t i = 0; i < count; i++) {
        int peer = accept_one(listening);
        if (i == 0) start();
        (void)peer;
    }
    answer(count, 0);
    wait_for_end();
}

static void open_all(const char *where, uint64_t count) {
    no_limit();
    start();
    for (uint64_t i = 0; i < count; i++) connect_to(where);
    answer(count, 0);
    wait_for_end();
}

/* Accepts one after the other, reads each to its end and closes it, until it is killed. */
static void take_turns(const char *where) {
    int listening = listen_at(where);
    uint8_t *buffer = message_of(ASKED);
    for (;;) {
        int peer = accept_one(listening);
        while (receive_one(peer, buffer, ASKED)) continue;
        close(peer);
    }
}

/* Opens and closes so many, for each line of standard input. */
static void open_and_close(const char *where, uint64_t count) {
    char line[64];
    uint8_t *buffer = message_of(ASKED);
    while (fgets(line, sizeof line, stdin) != NULL) {
        start();
        for (uint64_t i = 0; i < count; i++) {
            int to = connect_to(where);
            send_one(to, buffer, ASKED);
            close(to);
        }
        answer(count, 0);
    }
}

/* sendmsg and recvmsg on TCP, both ends here: what a program without SCTP pays for the library. */
static void tcp(uint64_t count) {
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof local;
    int listening = socket(AF_INET, SOCK_STREAM, 0), to = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (listening < 0 || to < 0) fail("socket");
    if (bind(listening, (struct sockaddr *)&local, sizeof local) < 0 || listen(listening, 1) < 0 ||
        getsockname(listening, (struct sockaddr *)&local, &length) < 0 ||
        connect(to, (struct sockaddr *)&local, sizeof local) < 0 ||
        setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        fail("TCP");
    int peer = accept_one(listening);
    uint8_t *buffer = message_of(ASKED);
    struct iovec part = {buffer, ASKED};
    start();
    for (uint64_t i = 0; i < count; i++) {
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
        if (sendmsg(to, &header, 0) != ASKED) fail("sendmsg");
        if (recvmsg(peer, &header, MSG_WAITALL) != ASKED) fail("recvmsg");
    }
    answer(count, count * ASKED);
}

static uint64_t number(const char *word) {
    return strtoull(word, NULL, 10);
}

int main(int count, char **words) {
    const char *word = count > 1 ? words[1] : "";
    if (count == 5 && strcmp(word, "receive") == 0)
        receive(words[2], number(words[3]), number(words[4]));
    else if (count == 5 && strcmp(word, "send") == 0)
        transmit(words[2], number(words[3]), number(words[4]));
    else if (count == 4 && strcmp(word, "echo") == 0)
        echo(words[2], number(words[3]));
    else if (count == 4 && strcmp(word, "ping") == 0)
        ping(words[2], number(words[3]));
    else if (count == 4 && strcmp(word, "hold") == 0)
        hold(words[2], number(words[3]));
    else if (count == 4 && strcmp(word, "open") == 0)
        open_all(words[2], number(words[3]));
    else if (count == 3 && strcmp(word, "turns") == 0)
        take_turns(words[2]);
    else if (count == 4 && strcmp(word, "churn") == 0)
        open_and_close(words[2], number(words[3]));
    else if (count == 3 && strcmp(word, "tcp") == 0)
        tcp(number(words[2]));
    else {
        fputs("receive or send ADDRESS SIZE BYTES | turns ADDRESS | echo, ping, hold, open or "
              "churn ADDRESS COUNT | tcp COUNT\n", stderr);
        return 2;
    }
    return 0;
}
