/* The results of options of sockets and of IP, and of calls with too many arguments: one line for each, to be compared
 * between stacks.
 *
 * Everything happens on the loopback of one host, as root. Options that eyas refuses are not among them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "results.h"

#ifndef SCTP_REUSE_PORT
#define SCTP_REUSE_PORT 36
#endif

static struct sockaddr_in at(const char *ip, int port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &name.sin_addr);
    return name;
}
#define NAME(value) ((struct sockaddr *)&(value)), sizeof(value)

static int stream(int family) { return socket(family, SOCK_STREAM, IPPROTO_SCTP); }

static int set(int fd, int level, int option, int value) { return setsockopt(fd, level, option, &value, sizeof value); }

static int value_of(int fd, int level, int option) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(fd, level, option, &value, &length) < 0 ? -1 : value;
}

/* A socket that is bound, with an option if one is given; -1 with errno set. */
static int bound(int port, const char *ip, int level, int option) {
    int fd = stream(AF_INET);
    if (option != 0) set(fd, level, option, 1);
    struct sockaddr_in name = at(ip, port);
    if (bind(fd, NAME(name)) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* The same, closed at once: only the result matters. */
static int may_bind(int port, const char *ip, int level, int option) {
    int fd = bound(port, ip, level, option);
    return fd < 0 ? -1 : close(fd);
}

static int accepted(int listener) {
    int count = 0, fd;
    fcntl(listener, F_SETFL, O_NONBLOCK);
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        close(fd);
        count++;
    }
    return count;
}

static void sharing(void) {
    const char *here = "127.0.0.1";
    struct sockaddr_in name = at(here, 7000);
    int one = bound(7000, here, SOL_SOCKET, SO_REUSEPORT);
    PRINT("REUSEPORT, listen", listen(one, 50));
    int other = bound(7000, here, SOL_SOCKET, SO_REUSEPORT);
    PRINT("REUSEPORT, listen beside", listen(other, 50));
    PRINT("REUSEPORT, one without", may_bind(7000, here, 0, 0));
    PRINT("REUSEPORT, one with REUSEADDR", may_bind(7000, here, SOL_SOCKET, SO_REUSEADDR));
    PRINT("REUSEPORT, all addresses", may_bind(7000, "0.0.0.0", SOL_SOCKET, SO_REUSEPORT));
    int both = bound(7000, "127.0.0.2", SOL_SOCKET, SO_REUSEPORT);
    PRINT("REUSEPORT, bindx", sctp_bindx(both, (void *)&name, 1, SCTP_BINDX_ADD_ADDR));
    PRINT("REUSEPORT, listen at more addresses", listen(both, 50));
    close(both);
    int clients[40];
    for (int n = 0; n < 40; n++) connect(clients[n] = stream(AF_INET), NAME(name));
    usleep(100000);
    int shares[2] = {accepted(one), accepted(other)};
    PRINT("REUSEPORT, connections", shares[0] + shares[1]);
    PRINT("REUSEPORT, each has some", shares[0] > 0 && shares[1] > 0);
    for (int n = 0; n < 40; n++) close(clients[n]);
    fflush(stdout);
    if (fork() == 0) {
        PRINT("REUSEPORT, another user", setuid(65534) < 0 ? -1 : may_bind(7000, here, SOL_SOCKET, SO_REUSEPORT));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    close(one);
    close(other);
    one = bound(7001, here, SOL_SCTP, SCTP_REUSE_PORT);
    PRINT("SCTP_REUSE_PORT, SO_REUSEPORT", value_of(one, SOL_SOCKET, SO_REUSEPORT));
    other = bound(7001, here, SOL_SCTP, SCTP_REUSE_PORT);
    PRINT("SCTP_REUSE_PORT, listen", listen(one, 1));
    PRINT("SCTP_REUSE_PORT, listen beside", listen(other, 1));
    PRINT("SCTP_REUSE_PORT, beside a listener", may_bind(7001, here, SOL_SCTP, SCTP_REUSE_PORT));
    close(one);
    close(other);
    one = bound(7002, here, SOL_SOCKET, SO_REUSEADDR);
    PRINT("REUSEADDR, one with REUSEPORT", may_bind(7002, here, SOL_SOCKET, SO_REUSEPORT));
    close(one);
    one = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    PRINT("SCTP_REUSE_PORT, one to many", set(one, SOL_SCTP, SCTP_REUSE_PORT, 1));
    close(one);
}

static void buffers(void) {
    static const struct { const char *name; int option, value; } sizes[] = {
        {"SO_SNDBUF 1", SO_SNDBUF, 1}, {"SO_RCVBUF 1", SO_RCVBUF, 1}, {"SO_SNDBUF 100000", SO_SNDBUF, 100000},
        {"SO_RCVBUF 100000", SO_RCVBUF, 100000}, {"SO_SNDBUFFORCE 2 MiB", SO_SNDBUFFORCE, 2 << 20},
        {"SO_RCVBUFFORCE 2 MiB", SO_RCVBUFFORCE, 2 << 20}, {"SO_SNDBUFFORCE -1", SO_SNDBUFFORCE, -1},
        {"SO_RCVBUFFORCE -1", SO_RCVBUFFORCE, -1}};
    static char big[1 << 20];
    int fd = stream(AF_INET);
    for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        int sends = sizes[n].option == SO_SNDBUF || sizes[n].option == SO_SNDBUFFORCE;
        PRINT(sizes[n].name, set(fd, SOL_SOCKET, sizes[n].option, sizes[n].value));
        PRINT("then", value_of(fd, SOL_SOCKET, sends ? SO_SNDBUF : SO_RCVBUF));
    }
    PRINT("getsockopt SO_SNDBUFFORCE", value_of(fd, SOL_SOCKET, SO_SNDBUFFORCE));
    close(fd);
    fflush(stdout);
    if (fork() == 0) {
        PRINT("SO_SNDBUFFORCE, not root", setuid(65534) < 0 ? -1 : set(fd = stream(AF_INET), SOL_SOCKET, SO_SNDBUFFORCE, 1));
        PRINT("SO_MARK, not root", set(fd, SOL_SOCKET, SO_MARK, 1));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    int listener = bound(7010, "127.0.0.1", SOL_SOCKET, SO_REUSEADDR);
    struct sockaddr_in name = at("127.0.0.1", 7010);
    listen(listener, 5);
    set(listener, SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20);
    fd = stream(AF_INET);
    set(fd, SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20);
    connect(fd, NAME(name));
    int server = accept(listener, NULL, NULL);
    PRINT("send, 1 MiB", send(fd, big, sizeof big, 0));
    long got = 0;
    struct pollfd one = {server, POLLIN, 0};
    while (got < (long)sizeof big && poll(&one, 1, 5000) > 0) {
        ssize_t part = recv(server, big, sizeof big, 0);
        if (part <= 0) break;
        got += part;
    }
    PRINT("recv, 1 MiB", got);
    close(fd);
    close(server);
    close(listener);
}

static void options(void) {
    static const struct { const char *name; int level, option, value; } all[] = {
        {"IP_TOS", SOL_IP, IP_TOS, 0xb8}, {"IP_TOS", SOL_IP, IP_TOS, 0xbb}, {"IP_TOS", SOL_IP, IP_TOS, 256},
        {"IP_TOS", SOL_IP, IP_TOS, -1}, {"IP_TTL", SOL_IP, IP_TTL, 0}, {"IP_TTL", SOL_IP, IP_TTL, 256},
        {"IP_TTL", SOL_IP, IP_TTL, 255}, {"IP_TTL", SOL_IP, IP_TTL, -1}, {"TCLASS", SOL_IPV6, IPV6_TCLASS, 0xb8},
        {"TCLASS", SOL_IPV6, IPV6_TCLASS, 256}, {"TCLASS", SOL_IPV6, IPV6_TCLASS, -1},
        {"TCLASS", SOL_IPV6, IPV6_TCLASS, -2}, {"HOPS", SOL_IPV6, IPV6_UNICAST_HOPS, 5},
        {"HOPS", SOL_IPV6, IPV6_UNICAST_HOPS, 256}, {"HOPS", SOL_IPV6, IPV6_UNICAST_HOPS, -1},
        {"HOPS", SOL_IPV6, IPV6_UNICAST_HOPS, 0}, {"V6ONLY", SOL_IPV6, IPV6_V6ONLY, 1},
        {"SO_MARK", SOL_SOCKET, SO_MARK, 77}, {"SO_BROADCAST", SOL_SOCKET, SO_BROADCAST, 1},
        {"SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 5}, {"SO_SNDLOWAT", SOL_SOCKET, SO_SNDLOWAT, 5},
        {"SO_PRIORITY", SOL_SOCKET, SO_PRIORITY, 0}, {"IP_PKTINFO", SOL_IP, IP_PKTINFO, 0},
        {"SOL_SOCKET 999", SOL_SOCKET, 999, 1}, {"SOL_IP 999", SOL_IP, 999, 1}, {"SOL_IPV6 999", SOL_IPV6, 999, 1}};
    char what[100];
    int six = stream(AF_INET6), four = stream(AF_INET);
    for (unsigned n = 0; n < sizeof all / sizeof *all; n++) {
        snprintf(what, sizeof what, "%s %d", all[n].name, all[n].value);
        PRINT(what, set(six, all[n].level, all[n].option, all[n].value));
        PRINT("then", value_of(six, all[n].level, all[n].option));
    }
    unsigned char byte = 0x28;
    PRINT("IP_TOS, one byte", setsockopt(four, SOL_IP, IP_TOS, &byte, 1));
    PRINT("then", value_of(four, SOL_IP, IP_TOS));
    PRINT("TCLASS, one byte", setsockopt(six, SOL_IPV6, IPV6_TCLASS, &byte, 1));
    PRINT("TCLASS on IPv4", set(four, SOL_IPV6, IPV6_TCLASS, 1));
    PRINT("SO_BINDTODEVICE, none", setsockopt(four, SOL_SOCKET, SO_BINDTODEVICE, "", 0));
    close(four);
    close(six);
    int listener = bound(7020, "127.0.0.1", SOL_SOCKET, SO_REUSEADDR);
    set(listener, SOL_IP, IP_TOS, 0xb8);
    set(listener, SOL_IP, IP_TTL, 33);
    set(listener, SOL_SOCKET, SO_MARK, 9);
    listen(listener, 5);
    struct sockaddr_in name = at("127.0.0.1", 7020);
    four = stream(AF_INET);
    PRINT("connect", connect(four, NAME(name)));
    int server = accept(listener, NULL, NULL);
    PRINT("accepted, IP_TOS", value_of(server, SOL_IP, IP_TOS));
    PRINT("accepted, IP_TTL", value_of(server, SOL_IP, IP_TTL));
    PRINT("accepted, SO_MARK", value_of(server, SOL_SOCKET, SO_MARK));
    close(four);
    close(server);
    close(listener);
    six = stream(AF_INET6);
    set(six, SOL_IPV6, IPV6_V6ONLY, 1);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(7021), .sin6_addr = in6addr_any};
    PRINT("V6ONLY, bind", bind(six, NAME(any)));
    PRINT("V6ONLY, bound", set(six, SOL_IPV6, IPV6_V6ONLY, 0));
    listen(six, 5);
    PRINT("V6ONLY, IPv4 beside", may_bind(7021, "127.0.0.1", 0, 0));
    name = at("127.0.0.1", 7021);
    PRINT("V6ONLY, from IPv4", connect(four = stream(AF_INET), NAME(name)));
    close(four);
    close(six);
    six = stream(AF_INET6);
    any = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(7022)};
    inet_pton(AF_INET6, "fe80::1", &any.sin6_addr);
    PRINT("link-local without a scope, bind", bind(six, NAME(any)));
    PRINT("link-local without a scope, connect", connect(six, NAME(any)));
    PRINT("link-local without a scope, connectx", sctp_connectx(six, (void *)&any, 1, NULL));
    PRINT("link-local without a scope, sendto", sendto(six, "x", 1, 0, NAME(any)));
    close(six);
}

static void arguments(void) {
    static struct iovec parts[1100];
    static char bytes[1100], big[1 << 20];
    for (int n = 0; n < 1100; n++) parts[n] = (struct iovec){bytes + n, 1};
    int listener = bound(7030, "127.0.0.1", SOL_SOCKET, SO_REUSEADDR);
    struct sockaddr_in name = at("127.0.0.1", 7030);
    listen(listener, 5);
    int client = stream(AF_INET);
    connect(client, NAME(name));
    int server = accept(listener, NULL, NULL);
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = 1025};
    PRINT("sendmsg, 1025 parts", sendmsg(client, &header, 0));
    PRINT("writev, 1025 parts", writev(client, parts, 1025));
    volatile int negative = -1;
    PRINT("writev, -1 parts", writev(client, parts, negative));
    PRINT("recvmsg, 1025 parts", recvmsg(server, &header, MSG_DONTWAIT));
    PRINT("readv, 1025 parts", readv(server, parts, 1025));
    header.msg_iovlen = 1024;
    PRINT("sendmsg, 1024 parts", sendmsg(client, &header, 0));
    PRINT("writev, 1024 parts", writev(client, parts, 1024));
    PRINT("recvmsg, 1024 parts", recvmsg(server, &header, 0));
    PRINT("readv, 1024 parts", readv(server, parts, 1024));
    parts[3].iov_len = (size_t)-1;
    header.msg_iovlen = 5;
    PRINT("sendmsg, a negative part", sendmsg(client, &header, 0));
    PRINT("writev, a negative part", writev(client, parts, 5));
    parts[3].iov_len = 1;
    header.msg_name = &name;
    header.msg_namelen = -1;
    PRINT("sendmsg, a negative name", sendmsg(client, &header, 0));
    PRINT("sendto, a long name", sendto(client, "x", 1, 0, (void *)big, 129));
    PRINT("connect, a long name", connect(client, (void *)big, 129));
    PRINT("bind, a long name", bind(client, (void *)big, 129));
    header.msg_name = NULL;
    header.msg_namelen = 0;
    header.msg_control = big;
    header.msg_controllen = sizeof big;
    PRINT("sendmsg, much control", sendmsg(client, &header, 0));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, server, &event);
    for (int n = 0; n < 3; n++) {
        PRINT("EPOLLET, before a message", epoll_wait(epoll, &event, 1, 0));
        send(client, "x", 1, 0);
        PRINT("EPOLLET, a message", epoll_wait(epoll, &event, 1, 3000));
    }
    recv(server, big, 10, 0);
    PRINT("EPOLLET, one was read", epoll_wait(epoll, &event, 1, 0));
    close(epoll);
    close(client);
    close(server);
    close(listener);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    alarm(40);
    sharing();
    buffers();
    options();
    arguments();
    return 0;
}
