/* The socket API for SCTP (RFC 6458) of usrsctp or, with -DKERNEL, of Linux: wrappers for the few
 * differences. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifdef KERNEL

#include <netinet/sctp.h>

typedef int sock;
#define NO_SOCK (-1)
#define sock_option(s, name, value, length) setsockopt(s, IPPROTO_SCTP, name, value, length)
#define sock_get_option(s, name, value, length) getsockopt(s, IPPROTO_SCTP, name, value, length)
#define sock_general(s, name, value, length) setsockopt(s, SOL_SOCKET, name, value, length)
#define sock_bindx(s, addresses, count, how) sctp_bindx(s, addresses, count, how)
#define sock_connectx(s, addresses, count) sctp_connectx(s, addresses, count, NULL)
#define sock_listen(s) listen(s, 4)
#define sock_accept(s) accept(s, NULL, NULL)
#define sock_shutdown(s) shutdown(s, SHUT_WR)
#define sock_close(s) close(s)

static inline sock sock_new(int family) {
    return socket(family, SOCK_STREAM, IPPROTO_SCTP);
}

static inline ssize_t sock_send(sock s, const void *data, size_t size, void *info, socklen_t length,
                                unsigned int type) {
    struct iovec part = {.iov_base = (void *)data, .iov_len = size};
    return sctp_sendv(s, &part, 1, NULL, 0, info, length, type, 0);
}

static inline ssize_t sock_receive(sock s, void *data, size_t size, struct sctp_rcvinfo *info,
                                   int *flags) {
    struct iovec part = {.iov_base = data, .iov_len = size};
    socklen_t length = sizeof *info;
    unsigned int type = 0;
    return sctp_recvv(s, &part, 1, NULL, NULL, info, &length, &type, flags);
}

#else

#include <usrsctp.h>

/* The library supports it (RFC 8260), but its header lacks the constant. */
#ifndef SCTP_INTERLEAVING_SUPPORTED
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif

typedef struct socket *sock;
#define NO_SOCK NULL
#define sock_option(s, name, value, length) usrsctp_setsockopt(s, IPPROTO_SCTP, name, value, length)
#define sock_get_option(s, name, value, length) usrsctp_getsockopt(s, IPPROTO_SCTP, name, value, length)
#define sock_general(s, name, value, length) usrsctp_setsockopt(s, SOL_SOCKET, name, value, length)
#define sock_bindx(s, addresses, count, how) usrsctp_bindx(s, addresses, count, how)
#define sock_connectx(s, addresses, count) usrsctp_connectx(s, addresses, count, NULL)
#define sock_listen(s) usrsctp_listen(s, 4)
#define sock_accept(s) usrsctp_accept(s, NULL, NULL)
#define sock_shutdown(s) usrsctp_shutdown(s, SHUT_WR)
#define sock_close(s) usrsctp_close(s)

static inline sock sock_new(int family) {
    return usrsctp_socket(family, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
}

static inline ssize_t sock_send(sock s, const void *data, size_t size, void *info, socklen_t length,
                                unsigned int type) {
    return usrsctp_sendv(s, data, size, NULL, 0, info, length, type, 0);
}

static inline ssize_t sock_receive(sock s, void *data, size_t size, struct sctp_rcvinfo *info,
                                   int *flags) {
    socklen_t from_length = 0, length = sizeof *info;
    unsigned int type = 0;
    return usrsctp_recvv(s, data, size, NULL, &from_length, info, &length, &type, flags);
}

#endif
