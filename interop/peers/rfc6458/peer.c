/* An SCTP peer with the socket API of usrsctp, or with -DKERNEL with that of Linux.
 *
 *   peer connect|listen [OPTION]... STEP...
 *
 *   --local A,B, --remote A,B    addresses; two of them for two paths
 *   --port P, --local-port P     SCTP port of the listener, and of the connecting side
 *   --udp LOCAL,REMOTE           inside UDP (RFC 6951) with these ports
 *   --streams N                  streams to send on
 *   --echo                       sends everything back
 *   --interleave                 I-DATA (RFC 8260)
 *   --multipath                  data on all paths at once (CMT-SCTP); usrsctp
 *   --untuned                    the stack's default timers
 *   --buffer BYTES               send and receive buffer
 *   --arrivals                   prints a line with the number of received bytes after each message
 *   --stay SECONDS               answers packets for so long after the report; Linux does by itself
 *
 * Steps are executed in order; meanwhile everything that arrives is received
 * and checked.
 *
 *   send:COUNT:SIZES:STREAMS[:unordered|:lifetime=MS|:retransmit=N]   SIZES is N or N,N,...
 *   pour:SIZE:STREAMS   messages of this size, endlessly, until the association ends
 *   receive:COUNT    until that many messages have arrived in total
 *   dry              until everything is acknowledged
 *   reset:LIST       resets outgoing streams
 *   add:A, remove:A  an address of this host
 *   sleep:MS, shutdown, abort, wait (until the association ends)
 *
 * At the end it prints one line of JSON. Content of messages: README.md of the directory above. */
#include <pthread.h>

#include "sockets.h"

enum { MAX_STREAMS = 65536, MAX_MESSAGE = 4 << 20, BUFFER = 16 << 20, MAX_ADDRESSES = 8 };
/* A private value: Wireshark would decode the payload of an assigned one. */
enum { PPID = 0x65796173 };

struct arrival {
    uint8_t *data;
    size_t length, room;
    int64_t last;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t messages, bytes, bad, disordered;
    bool up, ended, echo, arrivals;
    char events[4096];
    struct arrival streams[MAX_STREAMS];
    sock socket;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static uint32_t next_index;

static void fail(const char *what) {
    printf("{\"error\": \"%s: %s\"}\n", what, strerror(errno));
    fflush(stdout);
    _exit(1);
}

static void event(const char *name) {
    pthread_mutex_lock(&state.lock);
    size_t used = strlen(state.events);
    if (used + strlen(name) + 5 < sizeof state.events)
        sprintf(state.events + used, "%s\"%s\"", used ? ", " : "", name);
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
}

static void event_of(const char *kind, const char *name) {
    char text[128];
    snprintf(text, sizeof text, "%s %s", kind, name);
    event(text);
}

/* ---- content ---- */

static uint8_t content(uint32_t index, size_t at) {
    return (uint8_t)(index + at * 7 + (at >> 8));
}

static void fill(uint8_t *data, size_t size, uint32_t index) {
    for (size_t at = 0; at < size; at++) data[at] = content(index, at);
    if (size >= 4) {
        uint32_t wire = htonl(index);
        memcpy(data, &wire, 4);
    }
}

static void check(const uint8_t *data, size_t size, struct arrival *stream, bool unordered) {
    uint32_t index = data[0];
    size_t at = 1;
    if (size >= 4) {
        memcpy(&index, data, 4);
        index = ntohl(index);
        at = 4;
        if (!unordered && (int64_t)index <= stream->last) state.disordered++;
        stream->last = index;
    }
    while (at < size && data[at] == content(index, at)) at++;
    if (at != size) state.bad++;
}

/* ---- receiving ---- */

static void end(const char *how) {
    event(how);
    pthread_mutex_lock(&state.lock);
    state.ended = true;
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
}

static void association_changed(const struct sctp_assoc_change *change) {
    switch (change->sac_state) {
    case SCTP_COMM_UP:
        event("up");
        pthread_mutex_lock(&state.lock);
        state.up = true;
        pthread_cond_broadcast(&state.changed);
        pthread_mutex_unlock(&state.lock);
        break;
    case SCTP_RESTART:
        event("restart");
        for (size_t at = 0; at < MAX_STREAMS; at++) {
            state.streams[at].last = -1;
            state.streams[at].length = 0;
        }
        break;
    case SCTP_COMM_LOST: end("lost"); break;
    case SCTP_SHUTDOWN_COMP: end("closed"); break;
    case SCTP_CANT_STR_ASSOC: end("cannot start"); break;
    }
}

static void notified(const void *data) {
    const union sctp_notification *it = data;
    static const char *const changes[] = {"available", "unreachable", "removed", "added", "primary", "confirmed", "potentially failed"};
    switch (it->sn_header.sn_type) {
    case SCTP_ASSOC_CHANGE: association_changed(&it->sn_assoc_change); break;
    case SCTP_PEER_ADDR_CHANGE: {
        unsigned state_now = (unsigned)it->sn_paddr_change.spc_state;
#ifndef KERNEL
        /* usrsctp numbers them from 1 and in another order. */
        static const char *const others[] = {"?", "available", "unreachable", "removed", "added", "primary", "confirmed"};
        event_of("path", state_now < 7 ? others[state_now] : "?");
        (void)changes;
#else
        event_of("path", state_now < 7 ? changes[state_now] : "?");
#endif
        break;
    }
    case SCTP_SHUTDOWN_EVENT: event("shutdown"); break;
    case SCTP_STREAM_RESET_EVENT: {
        uint16_t flags = it->sn_strreset_event.strreset_flags;
        bool failed = flags & (SCTP_STREAM_RESET_FAILED | SCTP_STREAM_RESET_DENIED);
        bool incoming = flags & SCTP_STREAM_RESET_INCOMING_SSN;
        event_of(incoming ? "reset incoming" : "reset outgoing", failed ? "failed" : "done");
        break;
    }
    }
}

static void arrived(const uint8_t *data, size_t length, const struct sctp_rcvinfo *info, bool whole) {
    struct arrival *stream = &state.streams[info->rcv_sid];
    if (stream->length + length > MAX_MESSAGE) fail("message too long");
    if (stream->room < stream->length + length) {
        stream->room = (stream->length + length) * 2;
        stream->data = realloc(stream->data, stream->room);
        if (stream->data == NULL) fail("realloc");
    }
    memcpy(stream->data + stream->length, data, length);
    stream->length += length;
    if (!whole) return;
    bool unordered = info->rcv_flags & SCTP_UNORDERED;
    pthread_mutex_lock(&state.lock);
    check(stream->data, stream->length, stream, unordered);
    state.messages++;
    state.bytes += stream->length;
    if (state.arrivals) {
        printf("%llu\n", (unsigned long long)state.bytes);
        fflush(stdout);
    }
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
    if (state.echo) {
        struct sctp_sndinfo out = {.snd_sid = info->rcv_sid, .snd_ppid = info->rcv_ppid};
        if (unordered) out.snd_flags = SCTP_UNORDERED;
        sock_send(state.socket, stream->data, stream->length, &out, sizeof out, SCTP_SENDV_SNDINFO);
    }
    stream->length = 0;
}

static void *receive_all(void *unused) {
    static uint8_t buffer[256 << 10];
    (void)unused;
    for (;;) {
        struct sctp_rcvinfo info = {0};
        int flags = 0;
        ssize_t length = sock_receive(state.socket, buffer, sizeof buffer, &info, &flags);
        if (length <= 0) {
            if (!state.ended) end(length == 0 ? "end" : strerror(errno));
            return NULL;
        }
        if (flags & MSG_NOTIFICATION)
            notified(buffer);
        else
            arrived(buffer, (size_t)length, &info, flags & MSG_EOR);
    }
}

/* ---- steps ---- */

static bool wait_for(bool (*condition)(uint64_t), uint64_t value) {
    pthread_mutex_lock(&state.lock);
    while (!condition(value) && !state.ended) pthread_cond_wait(&state.changed, &state.lock);
    bool met = condition(value);
    pthread_mutex_unlock(&state.lock);
    return met;
}

static bool is_up(uint64_t unused) { (void)unused; return state.up; }
static bool is_ended(uint64_t unused) { (void)unused; return state.ended; }
static bool has_received(uint64_t count) { return state.messages >= count; }

static void step_send(char *words) {
    unsigned long sizes[32], kinds = 0;
    unsigned long count = strtoul(strtok(words, ":"), NULL, 10);
    char *list = strtok(NULL, ":"), *streams = strtok(NULL, ":"), *how = strtok(NULL, ":");
    unsigned long across = strtoul(streams, NULL, 10);
    for (char *next = list; *next != 0 && kinds < 32;) {
        sizes[kinds++] = strtoul(next, &next, 10);
        if (*next == ',') next++;
    }
    struct sctp_sendv_spa info = {.sendv_flags = SCTP_SEND_SNDINFO_VALID};
    if (how != NULL && strcmp(how, "unordered") == 0) info.sendv_sndinfo.snd_flags = SCTP_UNORDERED;
    unsigned value;
    if (how != NULL && sscanf(how, "lifetime=%u", &value) == 1) {
        info.sendv_flags |= SCTP_SEND_PRINFO_VALID;
        info.sendv_prinfo.pr_policy = SCTP_PR_SCTP_TTL, info.sendv_prinfo.pr_value = value;
    }
    if (how != NULL && sscanf(how, "retransmit=%u", &value) == 1) {
        info.sendv_flags |= SCTP_SEND_PRINFO_VALID;
        info.sendv_prinfo.pr_policy = SCTP_PR_SCTP_RTX, info.sendv_prinfo.pr_value = value;
    }
    static uint8_t message[MAX_MESSAGE];
    for (unsigned long at = 0; at < count; at++, next_index++) {
        size_t size = sizes[at % kinds];
        fill(message, size, next_index);
        info.sendv_sndinfo.snd_sid = (uint16_t)(next_index % across);
        info.sendv_sndinfo.snd_ppid = htonl(PPID);
        ssize_t sent = sock_send(state.socket, message, size, &info, sizeof info, SCTP_SENDV_SPA);
        if (sent != (ssize_t)size) fail("send");
    }
}

static void step_pour(char *words) {
    size_t size = strtoul(strtok(words, ":"), NULL, 10);
    unsigned long across = strtoul(strtok(NULL, ":"), NULL, 10);
    static uint8_t message[MAX_MESSAGE];
    if (size > MAX_MESSAGE || across == 0) fail("pour");
    for (; !state.ended; next_index++) {
        struct sctp_sndinfo info = {.snd_sid = (uint16_t)(next_index % across), .snd_ppid = htonl(PPID)};
        fill(message, size, next_index);
        ssize_t sent = sock_send(state.socket, message, size, &info, sizeof info, SCTP_SENDV_SNDINFO);
        if (sent != (ssize_t)size && !state.ended) fail("send");
    }
}

/* An association that has ended has no status; its end is one of the events. */
static void step_dry(void) {
    for (;;) {
        struct sctp_status status;
        memset(&status, 0, sizeof status);
        socklen_t length = sizeof status;
        if (sock_get_option(state.socket, SCTP_STATUS, &status, &length) < 0) return;
        if (status.sstat_unackdata == 0 && status.sstat_penddata == 0) return;
        usleep(5000);
    }
}

static void step_reset(char *list) {
    struct {
        struct sctp_reset_streams head;
        uint16_t streams[64];
    } request;
    memset(&request, 0, sizeof request);
    request.head.srs_flags = SCTP_STREAM_RESET_OUTGOING;
    uint16_t *streams = (uint16_t *)((char *)&request + sizeof request.head);
    for (char *next = strtok(list, ","); next != NULL; next = strtok(NULL, ","))
        streams[request.head.srs_number_streams++] = (uint16_t)atoi(next);
    socklen_t length = (socklen_t)(sizeof request.head + 2u * request.head.srs_number_streams);
    if (sock_option(state.socket, SCTP_RESET_STREAMS, &request, length) < 0) fail("SCTP_RESET_STREAMS");
}

/* Packs addresses one after another, as the socket API expects them. */
static int parse(char *list, uint16_t port, uint8_t *packed) {
    int count = 0;
    for (char *next = strtok(list, ","); next != NULL; next = strtok(NULL, ",")) {
        struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(port)};
        struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        if (inet_pton(AF_INET, next, &ipv4.sin_addr) == 1) {
            memcpy(packed, &ipv4, sizeof ipv4);
            packed += sizeof ipv4;
        } else if (inet_pton(AF_INET6, next, &ipv6.sin6_addr) == 1) {
            memcpy(packed, &ipv6, sizeof ipv6);
            packed += sizeof ipv6;
        } else
            fail(next);
        if (++count > MAX_ADDRESSES) fail("too many addresses");
    }
    return count;
}

static void step_address(char *text, uint16_t port, int how) {
    uint8_t packed[MAX_ADDRESSES * sizeof(struct sockaddr_in6)];
    int count = parse(text, port, packed);
    if (sock_bindx(state.socket, (struct sockaddr *)packed, count, how) < 0) fail("bindx");
}

static void step_abort(void) {
#ifdef KERNEL
    /* Linux supports SCTP_ABORT only on one-to-many sockets; here the end of the process aborts. */
    end("aborted");
    return;
#endif
    struct sctp_sndinfo info = {.snd_flags = SCTP_ABORT};
    if (sock_send(state.socket, "away", 4, &info, sizeof info, SCTP_SENDV_SNDINFO) < 0) fail("abort");
    end("aborted");
}

static void step(char *text, uint16_t port) {
    char *rest = strchr(text, ':');
    if (rest != NULL) *rest++ = 0;
    if (strcmp(text, "send") == 0) step_send(rest);
    else if (strcmp(text, "pour") == 0) step_pour(rest);
    else if (strcmp(text, "receive") == 0) wait_for(has_received, strtoull(rest, NULL, 10));
    else if (strcmp(text, "dry") == 0) step_dry();
    else if (strcmp(text, "reset") == 0) step_reset(rest);
    else if (strcmp(text, "add") == 0) step_address(rest, port, SCTP_BINDX_ADD_ADDR);
    else if (strcmp(text, "remove") == 0) step_address(rest, port, SCTP_BINDX_REM_ADDR);
    else if (strcmp(text, "sleep") == 0) usleep((useconds_t)atoi(rest) * 1000);
    else if (strcmp(text, "shutdown") == 0) {
        sock_shutdown(state.socket);
        wait_for(is_ended, 0);
    } else if (strcmp(text, "abort") == 0) step_abort();
    else if (strcmp(text, "wait") == 0) wait_for(is_ended, 0);
    else fail(text);
}

/* ---- setting up ---- */

static struct {
    bool listens, interleave, multipath, untuned;
    int buffer, stay;
    char *local, *remote;
    uint16_t port, local_port, udp_local, udp_remote, streams;
} options = {.port = 5000, .streams = 16, .buffer = BUFFER};

static void enable(sock s, int name, uint32_t value, const char *what) {
    struct sctp_assoc_value on = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = value};
    if (sock_option(s, name, &on, sizeof on) < 0) fail(what);
}

/* Aborts an association that is still open when the process ends, with one packet. */
static void abort_at_end(sock s) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (sock_general(s, SO_LINGER, &linger, sizeof linger) < 0) fail("SO_LINGER");
}

static sock prepare(void) {
    bool is_ipv6 = strchr(options.local != NULL ? options.local : options.remote, ':') != NULL;
    sock s = sock_new(is_ipv6 ? AF_INET6 : AF_INET);
    if (s == NO_SOCK) fail("socket");
    int size = options.buffer, on = 1;
    sock_general(s, SO_RCVBUF, &size, sizeof size);
    sock_general(s, SO_SNDBUF, &size, sizeof size);
    struct sctp_initmsg init = {.sinit_num_ostreams = options.streams, .sinit_max_instreams = 65535};
    if (sock_option(s, SCTP_INITMSG, &init, sizeof init) < 0) fail("SCTP_INITMSG");
    if (sock_option(s, SCTP_NODELAY, &on, sizeof on) < 0) fail("SCTP_NODELAY");
    if (sock_option(s, SCTP_RECVRCVINFO, &on, sizeof on) < 0) fail("SCTP_RECVRCVINFO");
    /* Short timers for fast cases; measurements use --untuned. */
    struct sctp_rtoinfo rto = {.srto_initial = 500, .srto_min = 200, .srto_max = 2000};
    if (!options.untuned && sock_option(s, SCTP_RTOINFO, &rto, sizeof rto) < 0) fail("SCTP_RTOINFO");
    static const uint16_t events[] = {SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_SHUTDOWN_EVENT, SCTP_STREAM_RESET_EVENT};
    for (size_t at = 0; at < sizeof events / sizeof *events; at++) {
        struct sctp_event subscription = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = events[at], .se_on = 1};
        if (sock_option(s, SCTP_EVENT, &subscription, sizeof subscription) < 0) fail("SCTP_EVENT");
    }
    enable(s, SCTP_ENABLE_STREAM_RESET, SCTP_ENABLE_RESET_STREAM_REQ, "SCTP_ENABLE_STREAM_RESET");
    if (options.interleave) {
        int level = 2;
        if (sock_option(s, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level) < 0) fail("SCTP_FRAGMENT_INTERLEAVE");
        enable(s, SCTP_INTERLEAVING_SUPPORTED, 1, "SCTP_INTERLEAVING_SUPPORTED");
    }
    if (options.udp_remote != 0) {
        struct sctp_udpencaps udp = {.sue_port = htons(options.udp_remote)};
        udp.sue_address.ss_family = is_ipv6 ? AF_INET6 : AF_INET;
        if (sock_option(s, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) < 0) fail("SCTP_REMOTE_UDP_ENCAPS_PORT");
    }
    struct sctp_paddrparams path = {.spp_hbinterval = 500, .spp_pathmaxrxt = 2, .spp_flags = SPP_HB_ENABLE};
    path.spp_address.ss_family = is_ipv6 ? AF_INET6 : AF_INET;
    if (!options.untuned && sock_option(s, SCTP_PEER_ADDR_PARAMS, &path, sizeof path) < 0) fail("SCTP_PEER_ADDR_PARAMS");
    if (options.local != NULL) {
        uint8_t packed[MAX_ADDRESSES * sizeof(struct sockaddr_in6)];
        int count = parse(options.local, options.local_port, packed);
        if (sock_bindx(s, (struct sockaddr *)packed, count, SCTP_BINDX_ADD_ADDR) < 0) fail("bindx");
    }
    return s;
}

static void establish(void) {
    sock s = prepare();
    if (options.listens) {
        if (sock_listen(s) < 0) fail("listen");
        puts("ready");
        fflush(stdout);
        state.socket = sock_accept(s);
        if (state.socket == NO_SOCK) fail("accept");
        abort_at_end(state.socket);
        /* Not every implementation reports COMM_UP on an accepted socket. */
        state.up = true;
        return;
    }
    uint8_t packed[MAX_ADDRESSES * sizeof(struct sockaddr_in6)];
    int count = parse(options.remote, options.port, packed);
    state.socket = s;
    abort_at_end(s);
    if (sock_connectx(s, (struct sockaddr *)packed, count) < 0) fail("connect");
}

static int parse_options(int count, char **words) {
    options.listens = strcmp(words[1], "listen") == 0;
    int at = 2;
    for (; at < count && strncmp(words[at], "--", 2) == 0; at++) {
        const char *name = words[at] + 2;
        if (strcmp(name, "echo") == 0) state.echo = true;
        else if (strcmp(name, "arrivals") == 0) state.arrivals = true;
        else if (strcmp(name, "untuned") == 0) options.untuned = true;
        else if (strcmp(name, "interleave") == 0) options.interleave = true;
        else if (strcmp(name, "multipath") == 0) options.multipath = true;
        else if (at + 1 == count) fail(name);
        else if (strcmp(name, "local") == 0) options.local = words[++at];
        else if (strcmp(name, "remote") == 0) options.remote = words[++at];
        else if (strcmp(name, "buffer") == 0) options.buffer = atoi(words[++at]);
        else if (strcmp(name, "stay") == 0) options.stay = atoi(words[++at]);
        else if (strcmp(name, "port") == 0) options.port = (uint16_t)atoi(words[++at]);
        else if (strcmp(name, "local-port") == 0) options.local_port = (uint16_t)atoi(words[++at]);
        else if (strcmp(name, "streams") == 0) options.streams = (uint16_t)atoi(words[++at]);
        else if (strcmp(name, "udp") == 0) sscanf(words[++at], "%hu,%hu", &options.udp_local, &options.udp_remote);
        else fail(name);
    }
    if (options.listens) options.local_port = options.port;
    return at;
}

int main(int count, char **words) {
    if (count < 3) {
        fputs("peer connect|listen [OPTION]... STEP... (see peer.c)\n", stderr);
        return 2;
    }
    int at = parse_options(count, words);
#ifndef KERNEL
    usrsctp_init(options.udp_local, NULL, NULL);
    usrsctp_sysctl_set_sctp_ecn_enable(0);
    usrsctp_sysctl_set_sctp_blackhole(2);
    usrsctp_sysctl_set_sctp_asconf_enable(1);
    usrsctp_sysctl_set_sctp_auth_enable(1);
    if (options.multipath) {
        usrsctp_sysctl_set_sctp_cmt_on_off(1);
        usrsctp_sysctl_set_sctp_cmt_use_dac(1);
        usrsctp_sysctl_set_sctp_nrsack_enable(1);
    }
    if (options.untuned) {
        /* The default limit of queued chunks does not depend on the buffer size. */
        usrsctp_sysctl_set_sctp_max_chunks_on_queue(1 << 16);
    }
#endif
    for (size_t stream = 0; stream < MAX_STREAMS; stream++) state.streams[stream].last = -1;
    establish();
    pthread_t receiver;
    if (pthread_create(&receiver, NULL, receive_all, NULL) != 0) fail("thread");
    if (wait_for(is_up, 0))
        for (; at < count; at++) step(words[at], options.local_port);
    /* Packets of the last step may still be in flight. */
    usleep(200000);
    pthread_mutex_lock(&state.lock);
    printf("{\"messages\": %llu, \"bytes\": %llu, \"bad\": %llu, \"disordered\": %llu, \"events\": [%s]}\n",
           (unsigned long long)state.messages, (unsigned long long)state.bytes,
           (unsigned long long)state.bad, (unsigned long long)state.disordered, state.events);
    fflush(stdout);
#ifndef KERNEL
    /* The threads of usrsctp go on answering packets. */
    sleep((unsigned)options.stay);
#endif
    _exit(0);
}
