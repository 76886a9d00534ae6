/* usrsctp. The arguments and the output are those of src/command.rs of the programs in Rust. In memory, both
 * ends run in one thread (usrsctp_init_nothreads, AF_CONN); over UDP (RFC 6951), each end is a process with
 * the threads that usrsctp starts. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

enum { WINDOW = 4 << 20, PORT = 5000, QUEUE = 16384, PACKET = 2048, MTU = 1500 };

static void fail(const char *what) {
    fprintf(stderr, "usrsctp: %s: %s\n", what, strerror(errno));
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

static void report(uint64_t messages, uint64_t bytes, double cpu, double wall, double memory) {
    printf("{\"messages\": %llu, \"bytes\": %llu, \"cpu\": %.6f, \"wall\": %.6f, \"memory\": %.0f}\n",
           (unsigned long long)messages, (unsigned long long)bytes, cpu, wall, memory);
    fflush(stdout);
}

static void report_now(uint64_t messages, uint64_t bytes, double memory) {
    report(messages, bytes, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start,
           seconds(CLOCK_MONOTONIC) - wall_start, memory);
}

static double resident(void) {
    long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2) fail("statm");
    fclose(file);
    return (double)pages * 4096;
}

/* ---- in memory ---- */

struct queue {
    uint8_t (*packets)[PACKET];
    size_t *lengths;
    size_t head, tail;
};
static struct queue queues[2];
/* The AF_CONN addresses of the ends: an end uses that of its own queue for itself and for its peer. */
static char ends[2];

static int output(void *end, void *buffer, size_t length, uint8_t tos, uint8_t set_df) {
    (void)tos, (void)set_df;
    struct queue *queue = &queues[end == &ends[0] ? 1 : 0];
    if (queue->tail - queue->head == QUEUE || length > PACKET) return 0;
    size_t slot = queue->tail++ % QUEUE;
    memcpy(queue->packets[slot], buffer, length);
    queue->lengths[slot] = length;
    return 0;
}

static bool deliver_packets(void) {
    bool moved = false;
    for (int end = 1; end >= 0; end--) {
        struct queue *queue = &queues[end];
        while (queue->head != queue->tail) {
            size_t slot = queue->head++ % QUEUE;
            usrsctp_conninput(&ends[end], queue->packets[slot], queue->lengths[slot], 0);
            moved = true;
        }
    }
    return moved;
}

static struct sockaddr_conn address(int end, uint16_t port) {
    struct sockaddr_conn address = {.sconn_family = AF_CONN, .sconn_port = htons(port)};
    address.sconn_addr = &ends[end];
    return address;
}

static struct socket *new_socket(int family) {
    struct socket *socket = usrsctp_socket(family, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (socket == NULL) fail("socket");
    int size = WINDOW, on = 1;
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (usrsctp_setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) < 0 ||
        usrsctp_setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) < 0 ||
        usrsctp_setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) < 0 ||
        usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) < 0)
        fail("setsockopt");
    struct sctp_paddrparams params = {.spp_flags = SPP_PMTUD_DISABLE, .spp_pathmtu = MTU - 28};
    params.spp_address.ss_family = (sa_family_t)family;
    if (usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &params, sizeof params) < 0)
        fail("SCTP_PEER_ADDR_PARAMS");
    return socket;
}

static void init_memory(void) {
    for (int end = 0; end < 2; end++) {
        queues[end].packets = malloc((size_t)QUEUE * PACKET);
        queues[end].lengths = calloc(QUEUE, sizeof(size_t));
        if (queues[end].packets == NULL || queues[end].lengths == NULL) fail("memory");
        /* Made resident, so that they do not count as memory of the associations. */
        memset(queues[end].packets, 0, (size_t)QUEUE * PACKET);
    }
    usrsctp_init_nothreads(0, output, NULL);
    usrsctp_sysctl_set_sctp_ecn_enable(0);
    usrsctp_register_address(&ends[0]);
    usrsctp_register_address(&ends[1]);
}

static struct socket *listener(void) {
    struct socket *listening = new_socket(AF_CONN);
    struct sockaddr_conn local = address(1, PORT);
    if (usrsctp_bind(listening, (struct sockaddr *)&local, sizeof local) < 0) fail("bind");
    if (usrsctp_listen(listening, 128) < 0) fail("listen");
    usrsctp_set_non_blocking(listening, 1);
    return listening;
}

static void connect_pair(struct socket *listening, uint16_t port, struct socket *pair[2]) {
    pair[0] = new_socket(AF_CONN);
    usrsctp_set_non_blocking(pair[0], 1);
    struct sockaddr_conn local = address(0, port), remote = address(0, PORT);
    if (usrsctp_bind(pair[0], (struct sockaddr *)&local, sizeof local) < 0) fail("bind");
    if (usrsctp_connect(pair[0], (struct sockaddr *)&remote, sizeof remote) < 0 &&
        errno != EINPROGRESS)
        fail("connect");
    while (deliver_packets()) continue;
    pair[1] = usrsctp_accept(listening, NULL, NULL);
    if (pair[1] == NULL) fail("accept");
    usrsctp_set_non_blocking(pair[1], 1);
}

/* Receives a message; returns 0 if there is none. */
static ssize_t receive(struct socket *socket, uint8_t *buffer, size_t size) {
    size_t length = 0;
    for (;;) {
        struct sctp_rcvinfo info;
        socklen_t from_length = 0, info_length = sizeof info;
        unsigned int type = 0;
        int flags = 0;
        ssize_t part = usrsctp_recvv(socket, buffer + length, size - length, NULL, &from_length,
                                     &info, &info_length, &type, &flags);
        if (part < 0 && (errno == EWOULDBLOCK || errno == EAGAIN) && length == 0) return 0;
        if (part <= 0) fail("recv");
        length += (size_t)part;
        if (flags & MSG_EOR) return (ssize_t)length;
    }
}

static bool send_one(struct socket *socket, const uint8_t *message, size_t size) {
    struct sctp_sndinfo info = {.snd_sid = 0};
    ssize_t sent = usrsctp_sendv(socket, message, size, NULL, 0, &info, sizeof info,
                                 SCTP_SENDV_SNDINFO, 0);
    if (sent < 0 && errno != EWOULDBLOCK && errno != EAGAIN) fail("send");
    return sent == (ssize_t)size;
}

static void memory(size_t size, uint64_t bytes) {
    init_memory();
    struct socket *pair[2];
    connect_pair(listener(), PORT, pair);
    uint8_t *message = malloc(size), *buffer = malloc(size);
    if (message == NULL || buffer == NULL) fail("memory");
    memset(message, 0x5a, size);
    uint64_t count = (bytes + size - 1) / size, sent = 0, received = 0;
    start();
    double last_tick = wall_start;
    while (received < count) {
        while (sent < count && send_one(pair[0], message, size)) sent++;
        bool moved = deliver_packets();
        for (ssize_t length; received < sent && (length = receive(pair[1], buffer, size)) > 0;) {
            if ((size_t)length != size) fail("length");
            received++;
            moved = true;
        }
        double now = seconds(CLOCK_MONOTONIC);
        if (now - last_tick >= 0.01 || !moved) {
            /* If nothing was transferred, skip 10 ms ahead instead of waiting for a timer. */
            uint32_t elapsed = (uint32_t)((now - last_tick) * 1000);
            usrsctp_handle_timers(elapsed > 0 ? elapsed : 10);
            last_tick = now;
        }
    }
    report_now(count, count * size, 0);
}

static void associations(uint64_t count) {
    init_memory();
    struct socket *listening = listener(), *(*pairs)[2] = calloc(count, sizeof *pairs);
    if (pairs == NULL) fail("memory");
    memset(pairs, 1, count * sizeof *pairs);
    uint8_t message[64] = {0x5a};
    double before = resident();
    start();
    for (uint64_t i = 0; i < count; i++) connect_pair(listening, (uint16_t)(10000 + i), pairs[i]);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    double wall = seconds(CLOCK_MONOTONIC) - wall_start;
    for (uint64_t i = 0; i < count; i++) {
        if (!send_one(pairs[i][0], message, sizeof message)) fail("send");
        while (deliver_packets()) continue;
        if (receive(pairs[i][1], message, sizeof message) == 0) fail("a message was lost");
    }
    report(count, 0, cpu, wall, (resident() - before) / (double)count);
}

/* ---- over UDP ---- */

static struct sockaddr_in parse(const char *text, uint16_t *port) {
    char host[64];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (sscanf(text, "%63[^:]:%hu", host, port) != 2 || inet_pton(AF_INET, host, &address.sin_addr) != 1)
        fail("address must be HOST:PORT");
    return address;
}

static void init_udp(uint16_t port) {
    usrsctp_init(port, NULL, NULL);
    usrsctp_sysctl_set_sctp_ecn_enable(0);
    usrsctp_sysctl_set_sctp_blackhole(2);
}

static void serve(const char *text, size_t size, uint64_t bytes) {
    uint16_t port;
    struct sockaddr_in local = parse(text, &port);
    init_udp(port);
    struct socket *listening = new_socket(AF_INET);
    if (usrsctp_bind(listening, (struct sockaddr *)&local, sizeof local) < 0) fail("bind");
    if (usrsctp_listen(listening, 1) < 0) fail("listen");
    puts("ready");
    fflush(stdout);
    struct socket *peer = usrsctp_accept(listening, NULL, NULL);
    if (peer == NULL) fail("accept");
    uint8_t *buffer = malloc(size);
    if (buffer == NULL) fail("memory");
    uint64_t count = (bytes + size - 1) / size;
    for (uint64_t received = 0; received < count; received++) {
        if ((size_t)receive(peer, buffer, size) != size) fail("length");
        if (received == 0) start();
    }
    report_now(count, count * size, 0);
    /* To acknowledge the last data. */
    usleep(500000);
}

static void transmit(const char *text, size_t size, uint64_t bytes) {
    uint16_t port;
    struct sockaddr_in remote = parse(text, &port);
    init_udp((uint16_t)(port + 1));
    struct socket *socket = new_socket(AF_INET);
    struct sctp_udpencaps encapsulation = {.sue_port = htons(port)};
    encapsulation.sue_address.ss_family = AF_INET;
    if (usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation,
                           sizeof encapsulation) < 0)
        fail("SCTP_REMOTE_UDP_ENCAPS_PORT");
    if (usrsctp_connect(socket, (struct sockaddr *)&remote, sizeof remote) < 0) fail("connect");
    uint8_t *message = malloc(size);
    if (message == NULL) fail("memory");
    memset(message, 0x5a, size);
    uint64_t count = (bytes + size - 1) / size;
    start();
    for (uint64_t sent = 0; sent < count; sent++)
        if (!send_one(socket, message, size)) fail("send");
    for (;;) {
        struct sctp_status status;
        socklen_t length = sizeof status;
        memset(&status, 0, sizeof status);
        if (usrsctp_getsockopt(socket, IPPROTO_SCTP, SCTP_STATUS, &status, &length) < 0) break;
        if (status.sstat_unackdata == 0 && status.sstat_penddata == 0) break;
        usleep(2000);
    }
    report_now(count, count * size, 0);
}

int main(int count, char **args) {
    if (count == 4 && strcmp(args[1], "memory") == 0)
        memory(strtoul(args[2], NULL, 10), strtoull(args[3], NULL, 10));
    else if (count == 3 && strcmp(args[1], "associations") == 0)
        associations(strtoull(args[2], NULL, 10));
    else if (count == 5 && strcmp(args[1], "receive") == 0)
        serve(args[2], strtoul(args[3], NULL, 10), strtoull(args[4], NULL, 10));
    else if (count == 5 && strcmp(args[1], "send") == 0)
        transmit(args[2], strtoul(args[3], NULL, 10), strtoull(args[4], NULL, 10));
    else {
        fputs("memory SIZE BYTES | associations COUNT | receive or send ADDRESS SIZE BYTES\n", stderr);
        return 2;
    }
    /* Ends the threads of usrsctp as well. */
    fflush(stdout);
    _exit(0);
}
