/* The results of SCTP socket calls: one line for each call, to be compared between stacks.
 *
 * Everything happens on the loopback of one host. It prints return values, names of errnos, lengths,
 * states and poll events, but nothing that differs between runs. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "results.h"

#ifndef SCTP_GET_ASSOC_STATS
#define SCTP_GET_ASSOC_STATS 112
#endif

/* Descriptors and identifiers differ from stack to stack. */
#define PRINT_STATUS(what, call) do { errno = 0; long result_ = (call); print_result(what, result_ < 0 ? -1 : 0); } while (0)

/* Long enough for packets and timers on one host. */
static void settle(void) { usleep(60000); }

static void print_poll(const char *what, int fd) {
    static const struct { short bit; const char *name; } names[] = {
        {POLLIN, "IN"}, {POLLOUT, "OUT"}, {POLLRDHUP, "RDHUP"}, {POLLERR, "ERR"}, {POLLHUP, "HUP"}};
    struct pollfd one = {fd, POLLIN | POLLOUT | POLLRDHUP, 0};
    poll(&one, 1, 0);
    printf("poll, %s:", what);
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++) {
        if (one.revents & names[n].bit) printf(" %s", names[n].name);
    }
    puts(one.revents ? "" : " nothing");
}

static struct sockaddr_in at(const char *ip, int port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &name.sin_addr);
    return name;
}
#define NAME(value) ((struct sockaddr *)&(value)), sizeof(value)

static int stream(void) { return socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP); }
static int one_to_many(void) { return socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP); }

static void enable_events(int fd) {
    unsigned char events[14] = {1, 1, 0, 1, 1, 1};
    setsockopt(fd, SOL_SCTP, SCTP_EVENTS, events, sizeof events);
    int on = 1;
    setsockopt(fd, SOL_SCTP, SCTP_NODELAY, &on, sizeof on);
}

static int listening(int fd, int port) {
    struct sockaddr_in name = at("127.0.0.1", port);
    bind(fd, NAME(name));
    listen(fd, 5);
    return fd;
}

/* A pair of one-to-one sockets. */
static void pair(int port, int *client, int *server, int *listener) {
    struct sockaddr_in name = at("127.0.0.1", port);
    *listener = stream();
    enable_events(*listener);
    listening(*listener, port);
    *client = stream();
    enable_events(*client);
    if (connect(*client, NAME(name)) < 0) perror("connect");
    *server = accept(*listener, NULL, NULL);
}

/* Receives once, and prints the result. */
static void receive(const char *what, int fd, size_t room, int flags) {
    char data[4096], control[256];
    struct iovec part = {data, room};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    errno = 0;
    ssize_t got = recvmsg(fd, &header, flags | MSG_DONTWAIT);
    if (got < 0) {
        printf("%s: %s\n", what, strerrorname_np(errno));
        return;
    }
    printf("%s: %zd", what, got);
    if (header.msg_flags & MSG_NOTIFICATION && got >= 4) {
        union sctp_notification *notification = (void *)data;
        printf(" notification %#x", notification->sn_header.sn_type);
        if (notification->sn_header.sn_type == SCTP_ASSOC_CHANGE && got >= 20) {
            printf(" state %d error %d", notification->sn_assoc_change.sac_state, notification->sn_assoc_change.sac_error);
        }
    } else {
        printf(" '%.*s'", (int)got, data);
    }
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&header); one; one = CMSG_NXTHDR(&header, one)) {
        printf(" cmsg %d of %d", one->cmsg_type, (int)one->cmsg_len);
    }
    printf("%s%s\n", header.msg_flags & MSG_EOR ? " EOR" : "", header.msg_flags & MSG_TRUNC ? " TRUNC" : "");
}

static int value_of(int fd, int level, int option) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(fd, level, option, &value, &length) < 0 ? -1 : value;
}

static int with_info(int fd, const char *data, size_t length, int stream_number, int flags, sctp_assoc_t id) {
    struct sctp_sndrcvinfo info = {.sinfo_stream = stream_number, .sinfo_flags = flags, .sinfo_assoc_id = id};
    return sctp_send(fd, data, length, &info, MSG_DONTWAIT);
}

static void creating(void) {
    PRINT_STATUS("socket, SEQPACKET and no protocol", socket(AF_INET, SOCK_SEQPACKET, 0));
    PRINT_STATUS("socket, DGRAM", socket(AF_INET, SOCK_DGRAM, IPPROTO_SCTP));
    PRINT_STATUS("socket, type -1", socket(AF_INET, -1, IPPROTO_SCTP));
    PRINT_STATUS("socket, domain -1", socket(-1, SOCK_STREAM, IPPROTO_SCTP));
    int one = stream(), other = one_to_many();
    PRINT("SO_TYPE, one to one", value_of(one, SOL_SOCKET, SO_TYPE));
    PRINT("SO_TYPE, one to many", value_of(other, SOL_SOCKET, SO_TYPE));
    PRINT("SO_PROTOCOL", value_of(one, SOL_SOCKET, SO_PROTOCOL));
    PRINT("SO_DOMAIN", value_of(one, SOL_SOCKET, SO_DOMAIN));
    PRINT("SO_SNDBUF", value_of(one, SOL_SOCKET, SO_SNDBUF));
    PRINT("SO_RCVBUF", value_of(one, SOL_SOCKET, SO_RCVBUF));
    close(one);
    close(other);
}

static void binding(void) {
    struct sockaddr_in here = at("127.0.0.1", 6000), far = at("192.0.2.77", 6001), any = at("127.0.0.2", 6002);
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int one = stream(), other = stream(), on = 1;
    PRINT("bind, another family", bind(one, (void *)&path, sizeof(struct sockaddr_in)));
    PRINT("bind, too short", bind(one, (void *)&here, 10));
    PRINT("bind, foreign", bind(one, NAME(far)));
    PRINT("bind", bind(one, NAME(here)));
    PRINT("bind, again", bind(one, NAME(here)));
    PRINT("bind, taken", bind(other, NAME(here)));
    PRINT("bindx, another port", sctp_bindx(one, (void *)&any, 1, SCTP_BINDX_ADD_ADDR));
    PRINT("bindx, remove the last one", sctp_bindx(one, (void *)&here, 1, SCTP_BINDX_REM_ADDR));
    any.sin_port = here.sin_port;
    PRINT("bindx, add a second one", sctp_bindx(one, (void *)&any, 1, SCTP_BINDX_ADD_ADDR));
    PRINT("bindx, remove the first one", sctp_bindx(one, (void *)&here, 1, SCTP_BINDX_REM_ADDR));
    close(one);
    close(other);
    one = stream(), other = stream();
    setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    here = at("127.0.0.1", 6003);
    PRINT("bind, shared, first", bind(one, NAME(here)));
    PRINT("bind, shared, second", bind(other, NAME(here)));
    PRINT("listen, shared, first", listen(one, 1));
    PRINT("listen, shared, second", listen(other, 1));
    close(one);
    close(other);
    int ipv6 = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
    here = at("127.0.0.1", 6004);
    PRINT("bindx, IPv4 on IPv6", sctp_bindx(ipv6, (void *)&here, 1, SCTP_BINDX_ADD_ADDR));
    close(ipv6);
}

static void connecting(void) {
    struct sockaddr_in unused = at("127.0.0.1", 6010), any = at("0.0.0.0", 6010), group = at("224.0.0.1", 6010),
                       all = at("255.255.255.255", 6010), port = at("127.0.0.1", 0);
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int one = stream();
    print_poll("fresh", one);
    PRINT("connect, refused", connect(one, NAME(unused)));
    print_poll("refused, and reported", one);
    PRINT("connect, multicast", connect(one, NAME(group)));
    PRINT("connect, broadcast", connect(one, NAME(all)));
    PRINT("connect, port 0", connect(one, NAME(port)));
    PRINT("connect, any", connect(one, NAME(any)));
    PRINT("connect, another family", connect(one, (void *)&path, sizeof(struct sockaddr_in)));
    PRINT("connect, too short", connect(one, (void *)&unused, 8));
    close(one);
    one = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
    PRINT("connect, refused, without waiting", connect(one, NAME(unused)));
    settle();
    PRINT("SO_ERROR then", value_of(one, SOL_SOCKET, SO_ERROR));
    PRINT("SO_ERROR again", value_of(one, SOL_SOCKET, SO_ERROR));
    close(one);
    struct sockaddr_in list[2] = {at("127.0.0.9", 6011), at("127.0.0.1", 6011)};
    int listener = listening(stream(), 6011);
    print_poll("listening", listener);
    PRINT("connect of a listener", connect(listener, NAME(list[1])));
    PRINT("shutdown of a listener", shutdown(listener, SHUT_RDWR));
    PRINT("accept, no connection", fcntl(listener, F_SETFL, O_NONBLOCK) < 0 ? 0 : accept(listener, NULL, NULL));
    one = stream();
    PRINT("connectx, one refuses", sctp_connectx(one, (void *)list, 2, NULL));
    close(one);
    one = stream();
    PRINT("connectx", sctp_connectx(one, (void *)&list[1], 1, NULL));
    settle();
    print_poll("connection pending", listener);
    print_poll("connected", one);
    PRINT("connect, connected", connect(one, NAME(list[1])));
    PRINT("listen, connected", listen(one, 1));
    int other = one_to_many();
    PRINT("accept, one to many", accept(other, NULL, NULL));
    PRINT("accept, not listening", accept(one, NULL, NULL));
    close(other);
    close(one);
    close(listener);
}

static void without_a_peer(void) {
    char data[10];
    int one = stream(), other = one_to_many(), listener = listening(stream(), 6020);
    print_poll("one to many, fresh", other);
    PRINT("send, no peer", send(one, "x", 1, 0));
    PRINT("recv, no peer", recv(one, data, 10, 0));
    PRINT("recv, no peer, without waiting", recv(one, data, 10, MSG_DONTWAIT));
    PRINT("shutdown, no peer", shutdown(one, SHUT_WR));
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    PRINT("getpeername, no peer", getpeername(one, (void *)&peer, &length));
    PRINT("send, one to many, no peer", send(other, "x", 1, 0));
    PRINT("shutdown, one to many", shutdown(other, SHUT_RDWR));
    PRINT("send, listener", send(listener, "x", 1, 0));
    PRINT("recv, listener", recv(listener, data, 10, 0));
    int count;
    PRINT("FIONREAD, listener", ioctl(listener, FIONREAD, &count));
    close(one);
    close(other);
    close(listener);
}

static void messages(void) {
    static char big[300000];
    int client, server, listener, on = 1, count = 0;
    pair(6030, &client, &server, &listener);
    receive("recv, up", server, 4096, 0);
    print_poll("connected, no data", server);
    PRINT("send, empty", send(client, "", 0, 0));
    PRINT("send, longer than the buffer", send(client, big, sizeof big, MSG_DONTWAIT));
    PRINT("send, stream 10", with_info(client, "x", 1, 10, 0, 0));
    PRINT("send, stream 9", with_info(client, "x", 1, 9, 0, 0));
    PRINT("send, unknown flag", with_info(client, "x", 1, 0, 0x4000, 0));
    PRINT("send, EOF", with_info(client, NULL, 0, 0, SCTP_EOF, 0));
    PRINT("send, ABORT", with_info(client, NULL, 0, 0, SCTP_ABORT, 0));
    struct sockaddr_in unknown = at("127.0.0.1", 6039);
    PRINT("send to an unknown address", sendto(client, "x", 1, 0, NAME(unknown)));
    PRINT("send, MSG_OOB", send(client, "oob", 3, MSG_OOB));
    setsockopt(client, SOL_SCTP, SCTP_DISABLE_FRAGMENTS, &on, sizeof on);
    PRINT("send, unfragmented and too long", send(client, big, 100000, MSG_DONTWAIT));
    settle();
    PRINT("FIONREAD", ioctl(server, FIONREAD, &count) < 0 ? -1 : count);
    receive("recv, peek", server, 4096, MSG_PEEK);
    receive("recv, stream 9", server, 4096, MSG_WAITALL);
    receive("recv, no room", server, 0, 0);
    receive("recv, a part", server, 2, 0);
    receive("recv, the rest", server, 2, 0);
    receive("recv, empty", server, 4096, 0);
    close(client);
    close(server);
    close(listener);
}

static void ends(void) {
    char data[100];
    int client, server, listener;
    pair(6040, &client, &server, &listener);
    receive("recv, up", client, 4096, 0);
    PRINT("send, last words", send(client, "last", 4, 0));
    PRINT("shutdown, writing", shutdown(client, SHUT_WR));
    settle();
    print_poll("own end", client);
    receive("recv, own end, notification", client, 4096, 0);
    PRINT("recv, own end", recv(client, data, sizeof data, 0));
    receive("recv, own end, without waiting", client, 4096, 0);
    PRINT("send, own end", send(client, "x", 1, MSG_NOSIGNAL));
    print_poll("peer's end, data pending", server);
    for (int n = 0; n < 6; n++) receive("recv, peer's end", server, 4096, 0);
    print_poll("peer's end, all read", server);
    PRINT("SO_ERROR, peer's end", value_of(server, SOL_SOCKET, SO_ERROR));
    PRINT("send, peer's end", send(server, "x", 1, MSG_NOSIGNAL));
    close(client);
    close(server);
    close(listener);
    pair(6041, &client, &server, &listener);
    PRINT("shutdown, reading", shutdown(client, SHUT_RD));
    print_poll("own SHUT_RD", client);
    close(client);
    close(server);
    close(listener);
    pair(6042, &client, &server, &listener);
    receive("recv, up", server, 4096, 0);
    struct linger at_once = {1, 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    PRINT("send, before the abort", send(client, "before", 6, 0));
    settle();
    close(client);
    settle();
    for (int n = 0; n < 4; n++) receive("recv, aborted", server, 4096, 0);
    PRINT("recv, aborted, waiting", recv(server, data, sizeof data, 0));
    PRINT("send, aborted", send(server, "x", 1, MSG_NOSIGNAL));
    PRINT("send, aborted, again", send(server, "x", 1, MSG_NOSIGNAL));
    close(server);
    close(listener);
}

static void several(void) {
    struct sockaddr_in name = at("127.0.0.1", 6050), unused = at("127.0.0.1", 6059);
    int server = one_to_many(), client = one_to_many();
    enable_events(server);
    enable_events(client);
    listening(server, 6050);
    PRINT("sendto, opens", sendto(client, "first", 5, 0, NAME(name)));
    settle();
    PRINT("connect, one to many, again", connect(client, NAME(name)));
    receive("one to many, up", server, 4096, 0);
    receive("one to many, data", server, 4096, 0);
    print_poll("one to many", server);
    struct sctp_assoc_ids { uint32_t number; sctp_assoc_t id[4]; } ids = {0};
    socklen_t length = sizeof ids;
    PRINT("SCTP_GET_ASSOC_ID_LIST", getsockopt(server, SOL_SCTP, SCTP_GET_ASSOC_ID_LIST, &ids, &length));
    printf("associations: %u, %u bytes\n", ids.number, length);
    PRINT("EOF with data", with_info(server, "x", 1, 0, SCTP_EOF, ids.id[0]));
    PRINT("unknown association", with_info(server, "x", 1, 0, 0, 4711));
    PRINT("peeloff, unknown", sctp_peeloff(server, 4711));
    int peeled = sctp_peeloff(server, ids.id[0]);
    PRINT("peeled off, SO_TYPE", value_of(peeled, SOL_SOCKET, SO_TYPE));
    PRINT("peeled off, listen", listen(peeled, 1));
    PRINT("peeled off, peeloff", sctp_peeloff(peeled, ids.id[0]));
    PRINT("peeled off, shutdown", shutdown(peeled, SHUT_RDWR));
    PRINT("peeled off, send", send(peeled, "peeled", 6, 0));
    PRINT("peeled off, the old one sends", with_info(server, "x", 1, 0, 0, ids.id[0]));
    settle();
    receive("peer of the peeled, up", client, 4096, 0);
    receive("peer of the peeled, data", client, 4096, 0);
    close(peeled);
    settle();
    for (int n = 0; n < 3; n++) receive("peer of the peeled, end", client, 4096, 0);
    PRINT("sendto, unused port", sendto(client, "lost", 4, 0, NAME(unused)));
    settle();
    for (int n = 0; n < 3; n++) receive("to an unused port", client, 4096, 0);
    PRINT("SO_ERROR, one to many", value_of(client, SOL_SOCKET, SO_ERROR));
    close(client);
    close(server);
}

static void lengths(void) {
    unsigned char value[512] = {0};
    static const struct { const char *name; int option, given; } gets[] = {
        {"EVENTS", SCTP_EVENTS, 0}, {"EVENTS", SCTP_EVENTS, 4}, {"EVENTS", SCTP_EVENTS, 256},
        {"INITMSG", SCTP_INITMSG, 4}, {"INITMSG", SCTP_INITMSG, 8}, {"INITMSG", SCTP_INITMSG, 100},
        {"RTOINFO", SCTP_RTOINFO, 12}, {"RTOINFO", SCTP_RTOINFO, 64}, {"ASSOCINFO", SCTP_ASSOCINFO, 64},
        {"PEER_ADDR_PARAMS", SCTP_PEER_ADDR_PARAMS, 100}, {"PEER_ADDR_PARAMS", SCTP_PEER_ADDR_PARAMS, 152},
        {"PEER_ADDR_PARAMS", SCTP_PEER_ADDR_PARAMS, 256}, {"NODELAY", SCTP_NODELAY, 2},
        {"NODELAY", SCTP_NODELAY, 8}, {"MAXSEG", SCTP_MAXSEG, 4}, {"MAXSEG", SCTP_MAXSEG, 8},
        {"MAX_BURST", SCTP_MAX_BURST, 4}, {"CONTEXT", SCTP_CONTEXT, 8}, {"STATUS", SCTP_STATUS, 176},
        {"DELAYED_SACK", SCTP_DELAYED_SACK, 12}, {"DEFAULT_SEND_PARAM", SCTP_DEFAULT_SEND_PARAM, 64},
        {"DEFAULT_SNDINFO", SCTP_DEFAULT_SNDINFO, 64}, {"AUTOCLOSE", SCTP_AUTOCLOSE, 4},
        {"BINDX_ADD", 100, 16}, {"999", 999, 4}};
    static const struct { const char *name; int option, given; } sets[] = {
        {"EVENTS", SCTP_EVENTS, 1}, {"EVENTS", SCTP_EVENTS, 8}, {"EVENTS", SCTP_EVENTS, 14},
        {"EVENTS", SCTP_EVENTS, 15}, {"INITMSG", SCTP_INITMSG, 4}, {"INITMSG", SCTP_INITMSG, 8},
        {"INITMSG", SCTP_INITMSG, 12}, {"RTOINFO", SCTP_RTOINFO, 16}, {"RTOINFO", SCTP_RTOINFO, 20},
        {"PEER_ADDR_PARAMS", SCTP_PEER_ADDR_PARAMS, 152}, {"PEER_ADDR_PARAMS", SCTP_PEER_ADDR_PARAMS, 156},
        {"PEER_ADDR_PARAMS", SCTP_PEER_ADDR_PARAMS, 160}, {"NODELAY", SCTP_NODELAY, 2},
        {"DELAYED_SACK", SCTP_DELAYED_SACK, 8}, {"DELAYED_SACK", SCTP_DELAYED_SACK, 12},
        {"DELAYED_SACK", SCTP_DELAYED_SACK, 16}, {"EVENT", SCTP_EVENT, 4}, {"STATUS", SCTP_STATUS, 176},
        {"GET_ASSOC_STATS", SCTP_GET_ASSOC_STATS, 256}, {"AUTOCLOSE", SCTP_AUTOCLOSE, 4}, {"999", 999, 4}};
    int one = stream(), on = 1;
    char what[100];
    for (unsigned n = 0; n < sizeof gets / sizeof *gets; n++) {
        socklen_t length = gets[n].given;
        memset(value, 0, sizeof value);
        errno = 0;
        int got = getsockopt(one, SOL_SCTP, gets[n].option, value, &length);
        snprintf(what, sizeof what, "getsockopt %s, %d bytes", gets[n].name, gets[n].given);
        print_result(what, got < 0 ? -1 : (long)length);
    }
    memset(value, 0, sizeof value);
    for (unsigned n = 0; n < sizeof sets / sizeof *sets; n++) {
        snprintf(what, sizeof what, "setsockopt %s, %d bytes", sets[n].name, sets[n].given);
        PRINT(what, setsockopt(one, SOL_SCTP, sets[n].option, value, sets[n].given));
    }
    PRINT("setsockopt of TCP", setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    PRINT("setsockopt IPV6_V6ONLY on IPv4", setsockopt(one, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
    close(one);
}

static void defaults(void) {
    int one = one_to_many();
    struct sctp_initmsg init;
    struct sctp_rtoinfo rto = {0};
    struct sctp_assocparams params = {0};
    struct sctp_paddrparams path = {0};
    struct sctp_sack_info sack = {0};
    socklen_t length = sizeof init;
    getsockopt(one, SOL_SCTP, SCTP_INITMSG, &init, &length);
    printf("INITMSG: %d %d %d %d\n", init.sinit_num_ostreams, init.sinit_max_instreams, init.sinit_max_attempts,
           init.sinit_max_init_timeo);
    length = sizeof rto;
    getsockopt(one, SOL_SCTP, SCTP_RTOINFO, &rto, &length);
    printf("RTOINFO: %u %u %u\n", rto.srto_initial, rto.srto_max, rto.srto_min);
    length = sizeof params;
    getsockopt(one, SOL_SCTP, SCTP_ASSOCINFO, &params, &length);
    printf("ASSOCINFO: %d %d %u\n", params.sasoc_asocmaxrxt, params.sasoc_number_peer_destinations, params.sasoc_cookie_life);
    length = sizeof path;
    getsockopt(one, SOL_SCTP, SCTP_PEER_ADDR_PARAMS, &path, &length);
    printf("PEER_ADDR_PARAMS: %u %d %u %u %#x\n", path.spp_hbinterval, path.spp_pathmaxrxt, path.spp_pathmtu,
           path.spp_sackdelay, path.spp_flags);
    length = sizeof sack;
    getsockopt(one, SOL_SCTP, SCTP_DELAYED_SACK, &sack, &length);
    printf("DELAYED_SACK: %u %u\n", sack.sack_delay, sack.sack_freq);
    static const struct { const char *name; int option; } numbers[] = {
        {"NODELAY", SCTP_NODELAY}, {"AUTOCLOSE", SCTP_AUTOCLOSE}, {"DISABLE_FRAGMENTS", SCTP_DISABLE_FRAGMENTS},
        {"I_WANT_MAPPED_V4_ADDR", SCTP_I_WANT_MAPPED_V4_ADDR}, {"FRAGMENT_INTERLEAVE", SCTP_FRAGMENT_INTERLEAVE},
        {"PARTIAL_DELIVERY_POINT", SCTP_PARTIAL_DELIVERY_POINT}, {"RECVRCVINFO", SCTP_RECVRCVINFO},
        {"RECVNXTINFO", SCTP_RECVNXTINFO}, {"MAX_BURST", SCTP_MAX_BURST}, {"MAXSEG", SCTP_MAXSEG}};
    for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) PRINT(numbers[n].name, value_of(one, SOL_SCTP, numbers[n].option));
    close(one);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    alarm(30);
    creating();
    binding();
    connecting();
    without_a_peer();
    messages();
    ends();
    several();
    lengths();
    defaults();
    return 0;
}
