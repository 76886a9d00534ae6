/* A program that is linked statically, so that no library comes between it and the kernel: an SCTP
 * server or client with plain system calls. If a check fails, it prints the line and exits. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 20

static void check(int good, int line) {
    if (!good) {
        fprintf(stderr, "line %d: %s\n", line, strerror(errno));
        exit(1);
    }
}
#define CHECK(good) check((good), __LINE__)

static struct sockaddr_in address(const char *port) {
    struct sockaddr_in found = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    inet_aton("127.0.0.1", &found.sin_addr);
    return found;
}

static int listening(const struct sockaddr_in *name) {
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    CHECK(fd >= 0);
    CHECK(bind(fd, (const struct sockaddr *)name, sizeof *name) == 0);
    CHECK(listen(fd, 5) == 0);
    return fd;
}

static void server(const char *port) {
    struct sockaddr_in name = address(port), peer;
    socklen_t length = sizeof peer;
    int fd = listening(&name), accepted;
    fd_set ready;
    puts("listening");
    fflush(stdout);
    FD_ZERO(&ready);
    FD_SET(fd, &ready);
    CHECK(select(fd + 1, &ready, NULL, NULL, NULL) == 1);
    accepted = accept4(fd, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC);
    CHECK(accepted >= 0 && length == sizeof peer && peer.sin_addr.s_addr == name.sin_addr.s_addr);
    CHECK(fcntl(accepted, F_GETFD) == FD_CLOEXEC);
    /* A child answers on a copy of the descriptor; the parent closes its own. */
    if (fork() == 0) {
        char room[64];
        int copy = dup(accepted);
        ssize_t got;
        CHECK(copy >= 0 && close(accepted) == 0);
        while ((got = read(copy, room, sizeof room)) > 0)
            CHECK(write(copy, room, got) == got);
        CHECK(got == 0);
        exit(0);
    }
    CHECK(close(accepted) == 0 && close(fd) == 0);
    int status;
    CHECK(wait(&status) > 0 && status == 0);
    puts("end");
    /* The port is free as soon as the last descriptor is closed. */
    for (int index = 0; index < 20; index++) {
        struct sockaddr_in next = {.sin_family = AF_INET, .sin_port = htons(atoi(port) + 1)};
        CHECK(close(listening(&next)) == 0);
    }
    puts("reused");
}

static void client(const char *port) {
    struct sockaddr_in name = address(port);
    char room[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP), error = -1;
    socklen_t length = sizeof error;
    CHECK(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&name, sizeof name) < 0 && errno == EINPROGRESS);
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    CHECK(poll(&one, 1, 10000) == 1);
    CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
    CHECK(recv(fd, room, sizeof room, 0) < 0 && errno == EAGAIN);
    CHECK(fcntl(fd, F_SETFL, O_RDWR) == 0);
    for (int index = 0; index < MESSAGES; index++) {
        char sent[64];
        int size = snprintf(sent, sizeof sent, "message %d", index);
        struct iovec out[] = {{sent, 3}, {sent + 3, size - 3}}, in[] = {{room, 5}, {room + 5, 59}};
        struct msghdr header = {.msg_iov = out, .msg_iovlen = 2};
        CHECK(sendmsg(fd, &header, 0) == size);
        header.msg_iov = in;
        CHECK(recvmsg(fd, &header, 0) == size && header.msg_flags & MSG_EOR);
        CHECK(memcmp(room, sent, size) == 0);
    }
    /* A descriptor number whose calls are not trapped is refused. */
    CHECK(dup2(fd, 0) < 0 && errno == EINVAL);
    CHECK(send(fd, (void *)8, 100, 0) < 0 && errno == EFAULT);
    puts("echoed");
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "server") == 0)
        server(argv[2]);
    else if (argc > 2)
        client(argv[2]);
    return 0;
}
