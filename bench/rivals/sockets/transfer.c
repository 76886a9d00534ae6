/* A program for Linux's SCTP: it uses one-to-one sockets and knows nothing of eyas. The arguments and the
 * output of `receive` and `send` are those of src/command.rs of the programs in Rust; for the others see the
 * usage message. */
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

enum { WINDOW = 2 << 20, PING_SIZE = 64 };

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

static void report(uint64_t messages, uint64_t bytes) {
    printf("{\"messages\": %llu, \"bytes\": %llu, \"cpu\": %.6f, \"wall\": %.6f, \"memory\": 0}\n",
           (unsigned long long)messages, (unsigned long long)bytes,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start, seconds(CLOCK_MONOTONIC) - wall_start);
    fflush(stdout);
}

static void ready(void) {
    puts("ready");
    fflush(stdout);
}

/* The parent process closes our standard input when it has finished its measurements. */
static void wait_for_eof(void) {
    char byte;
    while (read(0, &byte, 1) > 0) continue;
}

static struct sockaddr_in parse(const char *text) {
    char host[64];
    uint16_t port;
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (sscanf(text, "%63[^:]:%hu", host, &port) != 2 || inet_pton(AF_INET, host, &address.sin_addr) != 1)
        fail("address must be HOST:PORT");
    address.sin_port = htons(port);
    return address;
}

static int new_socket(void) {
    int sock = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), size = WINDOW, on = 1;
    if (sock < 0) fail("socket");
    if (setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) < 0 ||
        setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) < 0 ||
        setsockopt(sock, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) < 0)
        fail("setsockopt");
    return sock;
}

static int listen_at(const char *address) {
    struct sockaddr_in local = parse(address);
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

static int connect_to(const char *address) {
    struct sockaddr_in remote = parse(address);
    int sock = new_socket();
    if (connect(sock, (struct sockaddr *)&remote, sizeof remote) < 0) fail("connect");
    return sock;
}

static uint8_t *new_message(size_t size) {
    uint8_t *message = malloc(size);
    if (message == NULL) fail("memory");
    memset(message, 0x5a, size);
    return message;
}

/* Receives a message; returns false at the end. */
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

static void receive(const char *address, size_t size, uint64_t bytes) {
    int peer = accept_one(listen_at(address));
    uint8_t *buffer = new_message(size);
    uint64_t count = (bytes + size - 1) / size;
    for (uint64_t received = 0; received < count; received++) {
        if (!receive_one(peer, buffer, size)) fail("closed by the peer");
        if (received == 0) start();
    }
    report(count, count * size);
}

static void transmit(const char *address, size_t size, uint64_t bytes) {
    int to = connect_to(address);
    uint8_t *message = new_message(size);
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
    report(count, count * size);
}

static void echo(const char *address, uint64_t count) {
    int peer = accept_one(listen_at(address));
    uint8_t *buffer = new_message(PING_SIZE);
    start();
    for (uint64_t echoed = 0; echoed < count; echoed++) {
        if (!receive_one(peer, buffer, PING_SIZE)) fail("closed by the peer");
        send_one(peer, buffer, PING_SIZE);
    }
    report(count, count * PING_SIZE);
}

static void ping(const char *address, uint64_t count) {
    int to = connect_to(address);
    uint8_t *buffer = new_message(PING_SIZE);
    start();
    for (uint64_t sent = 0; sent < count; sent++) {
        send_one(to, buffer, PING_SIZE);
        if (!receive_one(to, buffer, PING_SIZE)) fail("closed by the peer");
    }
    report(count, count * PING_SIZE);
}

static void raise_fd_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) fail("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) fail("setrlimit");
}

/* Accepts that many associations and keeps them open. */
static void hold(const char *address, uint64_t count) {
    raise_fd_limit();
    int listening = listen_at(address);
    for (uint64_t i = 0; i < count; i++) {
        int peer = accept_one(listening);
        if (i == 0) start();
        (void)peer;
    }
    report(count, 0);
    wait_for_eof();
}

static void open_all(const char *address, uint64_t count) {
    raise_fd_limit();
    start();
    for (uint64_t i = 0; i < count; i++) connect_to(address);
    report(count, 0);
    wait_for_eof();
}

/* Accepts associations one after another, reads each to its end and closes it, until it is killed. */
static void accept_in_turn(const char *address) {
    int listening = listen_at(address);
    uint8_t *buffer = new_message(PING_SIZE);
    for (;;) {
        int peer = accept_one(listening);
        while (receive_one(peer, buffer, PING_SIZE)) continue;
        close(peer);
    }
}

/* Opens and closes that many associations for each line of standard input. */
static void open_and_close(const char *address, uint64_t count) {
    char line[64];
    uint8_t *buffer = new_message(PING_SIZE);
    while (fgets(line, sizeof line, stdin) != NULL) {
        start();
        for (uint64_t i = 0; i < count; i++) {
            int to = connect_to(address);
            send_one(to, buffer, PING_SIZE);
            close(to);
        }
        report(count, 0);
    }
}

/* sendmsg and recvmsg on TCP, with both ends in this process: the overhead of the library without SCTP. */
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
    uint8_t *buffer = new_message(PING_SIZE);
    struct iovec part = {buffer, PING_SIZE};
    start();
    for (uint64_t i = 0; i < count; i++) {
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
        if (sendmsg(to, &header, 0) != PING_SIZE) fail("sendmsg");
        if (recvmsg(peer, &header, MSG_WAITALL) != PING_SIZE) fail("recvmsg");
    }
    report(count, count * PING_SIZE);
}

static uint64_t number(const char *word) {
    return strtoull(word, NULL, 10);
}

int main(int count, char **args) {
    const char *word = count > 1 ? args[1] : "";
    if (count == 5 && strcmp(word, "receive") == 0)
        receive(args[2], number(args[3]), number(args[4]));
    else if (count == 5 && strcmp(word, "send") == 0)
        transmit(args[2], number(args[3]), number(args[4]));
    else if (count == 4 && strcmp(word, "echo") == 0)
        echo(args[2], number(args[3]));
    else if (count == 4 && strcmp(word, "ping") == 0)
        ping(args[2], number(args[3]));
    else if (count == 4 && strcmp(word, "hold") == 0)
        hold(args[2], number(args[3]));
    else if (count == 4 && strcmp(word, "open") == 0)
        open_all(args[2], number(args[3]));
    else if (count == 3 && strcmp(word, "turns") == 0)
        accept_in_turn(args[2]);
    else if (count == 4 && strcmp(word, "churn") == 0)
        open_and_close(args[2], number(args[3]));
    else if (count == 3 && strcmp(word, "tcp") == 0)
        tcp(number(args[2]));
    else {
        fputs("receive or send ADDRESS SIZE BYTES | turns ADDRESS | echo, ping, hold, open or "
              "churn ADDRESS COUNT | tcp COUNT\n", stderr);
        return 2;
    }
    return 0;
}
