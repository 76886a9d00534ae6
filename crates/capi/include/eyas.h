/*
 * eyas for C and C++: connects a program to its peer over the best transport that the path between them
 * really lets through. docs/c.md teaches it, eyas(3) is short.
 *
 * This file is made by cbindgen of the source of libeyas, and not to be edited.
 *
 * What holds everywhere:
 *
 * - A handle is a pointer to a type that only the library knows. Who gets one frees it with the function
 *   of its name (eyas_target_free and so on), once, when no call on it is under way. Freeing NULL is fine.
 *   What a handle was made with may be freed first.
 * - Functions that can fail return an eyas_code. `error`, the last argument, may be NULL. Otherwise it is
 *   set to NULL, or with every code but EYAS_OK, EYAS_WOULD_BLOCK and EYAS_END to an error that says in
 *   words what happened: free it with eyas_error_free.
 * - What a function gives is put where its pointer arguments say; a handle that it does not give is NULL.
 * - NULL for an argument that may not be NULL, a text that is not UTF-8 and a number without meaning are
 *   errors (EYAS_INVALID). Pointers that point to nothing are not noticed.
 * - Texts are UTF-8 and end with NUL. Texts and bytes that are given to a function are copied, or not used
 *   after it has returned. Texts that a function gives are freed with eyas_text_free.
 * - Nothing is global: endpoints know nothing of each other, and any number is fine.
 * - Each type says which threads may use it. "From any thread" is several at a time, too, and such a
 *   handle is an argument that is const; so const says nothing of what the call does.
 * - Signals are left alone: the library installs no handler, its threads take none, and none of its calls
 *   raises SIGPIPE.
 * - Types and functions are added in later versions of the same soname, never taken away.
 */

#ifndef EYAS_H
#define EYAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The version that this header is of.
#define EYAS_VERSION_MAJOR 0

// See EYAS_VERSION_MAJOR.
#define EYAS_VERSION_MINOR 1

// See EYAS_VERSION_MAJOR.
#define EYAS_VERSION_PATCH 0

// An SCTP association that carries messages on all its streams, without security. From any thread; one
// can send, one receive and one wait for notifications at the same time. Timeouts are as for a
// connection.
typedef struct eyas_association eyas_association;

// A connection: what won a race, or was accepted. It keeps its endpoint's threads alive, so it may
// outlive the endpoint's handle.
//
// From any thread; one can read while another writes. A second one that reads, or writes, at the same
// time gets EYAS_MISUSE.
//
// Calls that wait take a number of milliseconds, as poll(2) does: 0 does not wait and says
// EYAS_WOULD_BLOCK instead, and a negative one waits as long as it takes. Signals do not interrupt
// them; eyas_connection_abort in another thread does.
typedef struct eyas_connection eyas_connection;

// What all connections of a program share: trust, names, memory, sockets, and the threads that drive
// them. From any thread. A process that was forked after it was made cannot use it, nor anything made
// with it, but may free them.
typedef struct eyas_endpoint eyas_endpoint;

// What an endpoint is to be. One thread at a time.
typedef struct eyas_endpoint_options eyas_endpoint_options;

// A notification. It does not change, so any number of threads can read it.
typedef struct eyas_event eyas_event;

// Why a call failed. A call that can fail takes a pointer to one of these, or NULL if only the code
// matters: it is set to NULL unless the call failed with anything but EYAS_WOULD_BLOCK and EYAS_END,
// and then it is the caller's, to be freed with eyas_error_free.
typedef struct eyas_error eyas_error;

// What to listen on, and as whom. One thread at a time.
typedef struct eyas_listen_options eyas_listen_options;

// Accepts connections over all its transports. From any thread, one accepting call at a time.
typedef struct eyas_listener eyas_listener;

// A message that came in, or a part of one. It does not change, so any number of threads can read it.
typedef struct eyas_message eyas_message;

// A race to a target that is under way, or over. From any thread, one waiting call at a time.
typedef struct eyas_race eyas_race;

// How messages are sent: on which stream, in which order, for how long. One thread at a time; can be used
// for any number of messages.
typedef struct eyas_send_options eyas_send_options;

// Whom to reach, and how. One thread at a time; races keep copies of it.
typedef struct eyas_target eyas_target;

// What a call returns: EYAS_OK, or what else became of it. Codes are added over time, so treat one
// that you do not know as a failure.
typedef int32_t eyas_code;

// It was done.
#define EYAS_OK 0

// Not now: wait until the descriptor of the handle is readable, and call again.
#define EYAS_WOULD_BLOCK 1

// Nothing more will come: the peer has ended its side.
#define EYAS_END 2

// The time allowed was over.
#define EYAS_TIMEOUT 3

// It was cancelled or aborted here.
#define EYAS_CANCELLED 4

// An argument is NULL, not UTF-8, or means nothing.
#define EYAS_INVALID 5

// The call makes no sense now: what it needs was given away, is in use by another thread, or stayed
// with the parent of a forked process.
#define EYAS_MISUSE 6

// This connection, peer or machine cannot do it.
#define EYAS_UNSUPPORTED 7

// The name has no address, or DNS could not be asked.
#define EYAS_DNS 8

// Every way to the peer failed.
#define EYAS_CONNECT 9

// TLS could not be set up, or the keys and certificates given cannot be used.
#define EYAS_TLS 10

// The peer's certificate was not accepted.
#define EYAS_CERTIFICATE 11

// The connection is closed or was lost.
#define EYAS_CLOSED 12

// The operating system refused something.
#define EYAS_IO 13

// A fault of this library: report it, with the text of the error.
#define EYAS_BUG 14

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library that runs, as 0x00MMmmpp: a program may be built with the header of another
// one. From any thread.
uint32_t eyas_version(void);

// The same as a text such as "0.1.0", which lives as long as the library. From any thread.
const char *eyas_version_text(void);

// The code of an error: that which the call returned; EYAS_OK of NULL. From any thread.
eyas_code eyas_error_code(const eyas_error *error);

// What went wrong and what to do about it, in English, UTF-8; the empty text of NULL. It belongs to
// the error and lives as long. From any thread.
const char *eyas_error_message(const eyas_error *error);

// The race that failed, as JSON (docs/json.md: "A race"): each candidate, how far it came and why it
// failed. NULL if the error is of no race. It belongs to the error and lives as long. From any thread.
const char *eyas_error_race_json(const eyas_error *error);

// Frees an error; NULL is fine.
void eyas_error_free(eyas_error *error);

// Frees a text that a call has given; NULL is fine.
void eyas_text_free(char *text);

// Makes options with the defaults: the caller's, to be freed with eyas_endpoint_options_free.
eyas_code eyas_endpoint_options_new(eyas_endpoint_options **options,
                                    eyas_error **error);

// Keeps what races learn in this SQLite file, made if need be, for its owner only; several processes can
// share it. What is wrong with it tells eyas_memory_warnings_json.
eyas_code eyas_endpoint_options_set_memory_file(eyas_endpoint_options *options,
                                                const char *path,
                                                eyas_error **error);

// Keeps what races learn as long as the endpoint lives, or nowhere.
eyas_code eyas_endpoint_options_set_memory(eyas_endpoint_options *options,
                                           bool remember,
                                           eyas_error **error);

// Trusts the certificates of this PEM text and no others, in place of the platform's. They are copied.
eyas_code eyas_endpoint_options_set_roots(eyas_endpoint_options *options,
                                          const void *pem,
                                          size_t size,
                                          eyas_error **error);

// Trusts the certificates of this PEM text, too. They are copied.
eyas_code eyas_endpoint_options_add_roots(eyas_endpoint_options *options,
                                          const void *pem,
                                          size_t size,
                                          eyas_error **error);

// Shows this certificate chain to servers that ask: PEM, the own certificate first, and its key. Both
// are copied.
eyas_code eyas_endpoint_options_set_client_certificate(eyas_endpoint_options *options,
                                                       const void *chain_pem,
                                                       size_t chain_size,
                                                       const void *key_pem,
                                                       size_t key_size,
                                                       eyas_error **error);

// Asks this DNS server, such as "192.0.2.53:53", in place of the system's.
eyas_code eyas_endpoint_options_set_dns_server(eyas_endpoint_options *options,
                                               const char *server,
                                               eyas_error **error);

// Takes this address for `host` at `port` and asks DNS nothing about it. Further calls for the same host
// and port add addresses.
eyas_code eyas_endpoint_options_add_host(eyas_endpoint_options *options,
                                         const char *host,
                                         uint16_t port,
                                         const char *address,
                                         eyas_error **error);

// Speaks MPTCP where TCP is asked for; it falls back by itself. Off unless asked.
eyas_code eyas_endpoint_options_set_mptcp(eyas_endpoint_options *options,
                                          bool mptcp,
                                          eyas_error **error);

// Adds an address of this host that connections leave from; the routing's choice if there is none.
eyas_code eyas_endpoint_options_add_local_address(eyas_endpoint_options *options,
                                                  const char *address,
                                                  eyas_error **error);

// The UDP port at which peers await SCTP inside UDP (RFC 6951): 9899 unless said.
eyas_code eyas_endpoint_options_set_sctp_udp_port(eyas_endpoint_options *options,
                                                  uint16_t port,
                                                  eyas_error **error);

// Adds an address of this host that SCTP associations use and tell their peers of; all that fit if there
// is none.
eyas_code eyas_endpoint_options_add_sctp_local_address(eyas_endpoint_options *options,
                                                       const char *address,
                                                       eyas_error **error);

// Sends new data of SCTP associations over all their paths at once, rather than over one. Off unless
// asked.
eyas_code eyas_endpoint_options_set_sctp_multipath(eyas_endpoint_options *options,
                                                   bool multipath,
                                                   eyas_error **error);

// Frees options; NULL is fine.
void eyas_endpoint_options_free(eyas_endpoint_options *options);

// Makes an endpoint: the caller's, to be freed with eyas_endpoint_free. `options` are read and not kept;
// NULL takes the defaults: the platform's roots, the system's DNS, a memory that lasts as long as the
// endpoint.
eyas_code eyas_endpoint_new(const eyas_endpoint_options *options,
                            eyas_endpoint **endpoint,
                            eyas_error **error);

// Waits until every SCTP association that was opened with this endpoint has ended: one that is freed ends
// in order, for which it needs a round trip. Those in use are waited for as well, so give a timeout.
eyas_code eyas_endpoint_wait_for_associations(const eyas_endpoint *endpoint,
                                              int32_t timeout_ms,
                                              eyas_error **error);

// Frees an endpoint; NULL is fine. No call on it may be under way. What was made with it lives on, and
// its threads and sockets end with the last of that.
void eyas_endpoint_free(eyas_endpoint *endpoint);

// Makes a target: the caller's, to be freed with eyas_target_free. `host` is a DNS name or an IP address.
// Unless said otherwise QUIC is raced against TCP, under TLS, without ALPN, for 30 seconds at most.
eyas_code eyas_target_new(const char *host,
                          uint16_t port,
                          eyas_target **target,
                          eyas_error **error);

// The transports that may be raced, most wanted first, such as "quic,mptcp,tcp": of tcp, mptcp, quic,
// sctp (over IP) and sctp-udp (inside UDP). Others are prohibited.
eyas_code eyas_target_set_transports(eyas_target *target,
                                     const char *transports,
                                     eyas_error **error);

// Makes this transport the most wanted one, and allows it.
eyas_code eyas_target_prefer(eyas_target *target,
                             const char *transport,
                             eyas_error **error);

// Prohibits this transport. A target that allows none cannot be raced to.
eyas_code eyas_target_prohibit(eyas_target *target,
                               const char *transport,
                               eyas_error **error);

// The security: "tls", or "none", which QUIC cannot do. A race never weakens it.
eyas_code eyas_target_set_security(eyas_target *target,
                                   const char *security,
                                   eyas_error **error);

// Offers this application protocol (ALPN), after those that were added before.
eyas_code eyas_target_add_alpn(eyas_target *target,
                               const char *protocol,
                               eyas_error **error);

// Asks for the HTTPS records of the host (RFC 9460), as browsers do, and goes where they lead: to other names,
// ports and addresses, and only over transports for which they offer a protocol of ours. What is spoken then is
// HTTP over TLS, by the program: the protocols of eyas_target_add_alpn, or http/1.1 if there are none. Over QUIC
// that is "h3", which wants more than the one stream of bytes that a connection is here.
eyas_code eyas_target_ask_https_records(eyas_target *target,
                                        eyas_error **error);

// Whom the peer's certificate has to name, if that is not the host.
eyas_code eyas_target_set_certificate_host(eyas_target *target,
                                           const char *host,
                                           eyas_error **error);

// How long the race may take, in milliseconds: 30,000 unless said.
eyas_code eyas_target_set_deadline(eyas_target *target,
                                   uint32_t milliseconds,
                                   eyas_error **error);

// Only addresses of this family: 4 or 6. 0, the default, means both.
eyas_code eyas_target_set_family(eyas_target *target,
                                 int32_t family,
                                 eyas_error **error);

// The UDP port at which this peer awaits SCTP inside UDP; the endpoint's unless said.
eyas_code eyas_target_set_sctp_udp_port(eyas_target *target,
                                        uint16_t port,
                                        eyas_error **error);

// Frees a target; NULL is fine.
void eyas_target_free(eyas_target *target);

// Races to the target, and waits for a connection that works: the caller's, to be freed with
// eyas_connection_free. `timeout_ms` is as for eyas_connection_read, but 0 makes no sense here; the
// target's deadline ends the race in any case. Blocks; from any thread.
eyas_code eyas_connect(const eyas_endpoint *endpoint,
                       const eyas_target *target,
                       int32_t timeout_ms,
                       eyas_connection **connection,
                       eyas_error **error);

// Starts a race and returns at once. The race is the caller's, to be freed with eyas_race_free; the
// target is copied.
eyas_code eyas_race_start(const eyas_endpoint *endpoint,
                          const eyas_target *target,
                          eyas_race **race,
                          eyas_error **error);

// Puts a descriptor into `fd` that is readable (POLLIN) while eyas_race_finish or eyas_race_better is
// worth a try. It belongs to the race: neither read nor close it.
eyas_code eyas_race_fd(const eyas_race *race,
                       int *fd,
                       eyas_error **error);

// Gives the connection that has won, once: the caller's, to be freed with eyas_connection_free; or says
// why there is none. A timeout of 0 does not wait: EYAS_WOULD_BLOCK. EYAS_TIMEOUT ends the waiting, not
// the race.
eyas_code eyas_race_finish(const eyas_race *race,
                           int32_t timeout_ms,
                           eyas_connection **connection,
                           eyas_error **error);

// Gives a connection over a more wanted transport than that of the last one, once it is ready; EYAS_END:
// none will come. New work goes there, and what is under way stays where it is.
eyas_code eyas_race_better(const eyas_race *race,
                           int32_t timeout_ms,
                           eyas_connection **connection,
                           eyas_error **error);

// Ends the race and closes all that it has opened, but what it has handed out. A call of another thread
// that waits for it returns EYAS_CANCELLED.
eyas_code eyas_race_cancel(const eyas_race *race,
                           eyas_error **error);

// How the race has run so far, as JSON (docs/json.md: "A race"), with `plan`. The text is the caller's,
// to be freed with eyas_text_free.
eyas_code eyas_race_json(const eyas_race *race,
                         char **text,
                         eyas_error **error);

// Frees a race; NULL is fine. No call on it may be under way. One that was won goes on for a while and
// teaches the memory; any other is cancelled.
void eyas_race_free(eyas_race *race);

// Reads at least a byte and at most `size` into `buffer`, and puts how many into `length`. EYAS_END: the
// peer has ended its side, and everything was read.
eyas_code eyas_connection_read(const eyas_connection *connection,
                               void *buffer,
                               size_t size,
                               size_t *length,
                               int32_t timeout_ms,
                               eyas_error **error);

// Writes all of `data`; with a timeout of 0 what goes at once, which is at least a byte unless it says
// EYAS_WOULD_BLOCK. Puts how many bytes have gone into `written`, also where it fails; `written` may be
// NULL.
eyas_code eyas_connection_write(const eyas_connection *connection,
                                const void *data,
                                size_t size,
                                size_t *written,
                                int32_t timeout_ms,
                                eyas_error **error);

// Tells the peer that nothing more will be written. Reading goes on.
eyas_code eyas_connection_shutdown(const eyas_connection *connection,
                                   int32_t timeout_ms,
                                   eyas_error **error);

// Puts a descriptor into `fd` that is readable (POLLIN) while reading is worth a try: from now until
// eyas_connection_read says EYAS_WOULD_BLOCK, and again once something came. It belongs to the
// connection: neither read nor close it.
eyas_code eyas_connection_read_fd(const eyas_connection *connection,
                                  int *fd,
                                  eyas_error **error);

// The same for eyas_connection_write and eyas_connection_shutdown. This one, too, becomes readable, not
// writable.
eyas_code eyas_connection_write_fd(const eyas_connection *connection,
                                   int *fd,
                                   eyas_error **error);

// Closes the connection in order: what was written arrives, and the peer is told. Ends calls of other
// threads. EYAS_TIMEOUT: the peer did not say in time that it has everything; it is closed all the
// same. The handle is still to be freed.
eyas_code eyas_connection_close(const eyas_connection *connection,
                                int32_t timeout_ms,
                                eyas_error **error);

// Closes the connection at once. Calls of other threads that wait return EYAS_CANCELLED. The handle is
// still to be freed.
eyas_code eyas_connection_abort(const eyas_connection *connection,
                                eyas_error **error);

// Takes the socket of a TCP or MPTCP connection without TLS out, and puts its descriptor into `fd`: from
// now on it is the caller's, to be closed with close(2). It blocks. Others give EYAS_UNSUPPORTED and
// stay as they are. The handle is still to be freed.
eyas_code eyas_connection_into_fd(const eyas_connection *connection,
                                  int *fd,
                                  eyas_error **error);

// Takes the association of an SCTP connection without TLS out, so that all its streams carry messages.
// It is the caller's, to be freed with eyas_association_free. Others give EYAS_UNSUPPORTED and stay as
// they are. The connection's handle is still to be freed.
eyas_code eyas_connection_into_association(const eyas_connection *connection,
                                           eyas_association **association,
                                           eyas_error **error);

// What the connection is, as JSON: `transport`, `security`, `local`, `remote`, `alpn`, `rtt_ms`,
// `timings`, and `reasons`, why it was chosen. The text is the caller's, to be freed with
// eyas_text_free. Also once it is closed.
eyas_code eyas_connection_info_json(const eyas_connection *connection,
                                    char **text,
                                    eyas_error **error);

// The race that led to the connection, as JSON (docs/json.md: "A race"), so far. The text is the
// caller's, to be freed with eyas_text_free. A connection that was accepted has none: EYAS_UNSUPPORTED.
eyas_code eyas_connection_race_json(const eyas_connection *connection,
                                    char **text,
                                    eyas_error **error);

// Frees a connection; NULL is fine. No call on it may be under way. One that was not closed is closed at
// once.
void eyas_connection_free(eyas_connection *connection);

// Sends a message, which is copied; waits for room in the send buffer. It goes whole or not at all.
// `options` may be NULL: stream 0, in order, reliable.
eyas_code eyas_association_send(const eyas_association *association,
                                const void *data,
                                size_t size,
                                const eyas_send_options *options,
                                int32_t timeout_ms,
                                eyas_error **error);

// Receives a message, or a part of a large one: the caller's, to be freed with eyas_message_free.
// EYAS_END: the peer is done. Until then what is not received closes the window to the peer.
eyas_code eyas_association_receive(const eyas_association *association,
                                   int32_t timeout_ms,
                                   eyas_message **message,
                                   eyas_error **error);

// Gives the next notification (RFC 6458 §6.1): the caller's, to be freed with eyas_event_free. EYAS_END:
// the association is over. Only the latest are kept for who does not ask.
eyas_code eyas_association_event(const eyas_association *association,
                                 int32_t timeout_ms,
                                 eyas_event **event,
                                 eyas_error **error);

// Puts a descriptor into `fd` that is readable (POLLIN) while eyas_association_send is worth a try. It
// belongs to the association: neither read nor close it.
eyas_code eyas_association_send_fd(const eyas_association *association,
                                   int *fd,
                                   eyas_error **error);

// The same for eyas_association_receive.
eyas_code eyas_association_receive_fd(const eyas_association *association,
                                      int *fd,
                                      eyas_error **error);

// The same for eyas_association_event.
eyas_code eyas_association_event_fd(const eyas_association *association,
                                    int *fd,
                                    eyas_error **error);

// The association at this moment, as JSON: `state`, streams, windows, `primary`, and `paths`, each with
// its number `path`. The text is the caller's, to be freed with eyas_text_free.
eyas_code eyas_association_status_json(const eyas_association *association,
                                       char **text,
                                       eyas_error **error);

// Makes a path the primary one, which new data takes; its number is that of
// eyas_association_status_json.
eyas_code eyas_association_set_primary(const eyas_association *association,
                                       uint16_t path,
                                       eyas_error **error);

// Tells the peer of another address of this host (RFC 5061), or takes one back; the notification
// "own-address" says how that went.
eyas_code eyas_association_add_address(const eyas_association *association,
                                       const char *address,
                                       eyas_error **error);

// See eyas_association_add_address.
eyas_code eyas_association_remove_address(const eyas_association *association,
                                          const char *address,
                                          eyas_error **error);

// Resets one of our outgoing streams, so that its numbers start anew (RFC 6525); the notification
// "streams-reset" says how that went.
eyas_code eyas_association_reset_stream(const eyas_association *association,
                                        uint16_t stream,
                                        eyas_error **error);

// Ends the association once all messages have arrived, and waits for it.
eyas_code eyas_association_shutdown(const eyas_association *association,
                                    int32_t timeout_ms,
                                    eyas_error **error);

// Ends the association at once; the peer is told `reason`, which may be NULL. Calls of other threads that
// wait return EYAS_CANCELLED. The handle is still to be freed.
eyas_code eyas_association_abort(const eyas_association *association,
                                 const char *reason,
                                 eyas_error **error);

// Frees an association; NULL is fine. No call on it may be under way. One that is up ends in order, as
// far as its endpoint lives long enough: see eyas_endpoint_wait_for_associations.
void eyas_association_free(eyas_association *association);

// Makes options with the defaults: stream 0, in order, reliable. They are the caller's, to be freed with
// eyas_send_options_free.
eyas_code eyas_send_options_new(eyas_send_options **options,
                                eyas_error **error);

// The stream, from 0 on.
eyas_code eyas_send_options_set_stream(eyas_send_options *options,
                                       uint16_t stream,
                                       eyas_error **error);

// The payload protocol identifier, as a number of this host.
eyas_code eyas_send_options_set_ppid(eyas_send_options *options,
                                     uint32_t ppid,
                                     eyas_error **error);

// Whether messages may overtake the others of their stream.
eyas_code eyas_send_options_set_unordered(eyas_send_options *options,
                                          bool unordered,
                                          eyas_error **error);

// Gives a message up that has not been acknowledged so many milliseconds after it was handed in
// (RFC 3758).
eyas_code eyas_send_options_set_lifetime(eyas_send_options *options,
                                         uint32_t milliseconds,
                                         eyas_error **error);

// Gives a message up that has been retransmitted so often (RFC 7496).
eyas_code eyas_send_options_set_max_retransmissions(eyas_send_options *options,
                                                    uint16_t retransmissions,
                                                    eyas_error **error);

// Never gives a message up: the default.
eyas_code eyas_send_options_set_reliable(eyas_send_options *options,
                                         eyas_error **error);

// The path to prefer while it works, by its number, in place of the primary one.
eyas_code eyas_send_options_set_path(eyas_send_options *options,
                                     uint16_t path,
                                     eyas_error **error);

// A number that the notification "send-failed" brings back.
eyas_code eyas_send_options_set_context(eyas_send_options *options,
                                        uint32_t context,
                                        eyas_error **error);

// Frees options; NULL is fine.
void eyas_send_options_free(eyas_send_options *options);

// Puts the first of the message's bytes into `data` and their number into `size`. They belong to the
// message and live as long.
eyas_code eyas_message_data(const eyas_message *message,
                            const void **data,
                            size_t *size,
                            eyas_error **error);

// The number of bytes; 0 of NULL.
size_t eyas_message_size(const eyas_message *message);

// The stream on which it came; 0 of NULL.
uint16_t eyas_message_stream(const eyas_message *message);

// The payload protocol identifier, as a number of this host; 0 of NULL.
uint32_t eyas_message_ppid(const eyas_message *message);

// Whether it could overtake the other messages of its stream.
bool eyas_message_is_unordered(const eyas_message *message);

// Whether this is the first part of the message.
bool eyas_message_begins(const eyas_message *message);

// Whether the message ends with this part; it does unless it is large.
bool eyas_message_ends(const eyas_message *message);

// Frees a message; NULL is fine.
void eyas_message_free(eyas_message *message);

// What happened: "up", "path", "peer-shutdown", "send-failed", "sender-dry", "streams-reset", "lost",
// "closed" and others, as docs/c.md lists them; NULL of NULL. The text belongs to the notification.
const char *eyas_event_name(const eyas_event *event);

// The facts, as JSON, with the name as `event`; NULL of NULL. The text belongs to the notification.
const char *eyas_event_json(const eyas_event *event);

// Frees a notification; NULL is fine.
void eyas_event_free(eyas_event *event);

// Makes options to listen at this address and port, such as "127.0.0.1:0" or "[::]:4433": the caller's,
// to be freed with eyas_listen_options_free. Port 0 takes a free one, the same for all transports. Unless
// said otherwise TCP is served, without security.
eyas_code eyas_listen_options_new(const char *address,
                                  eyas_listen_options **options,
                                  eyas_error **error);

// The transports to serve, such as "quic,tcp".
eyas_code eyas_listen_options_set_transports(eyas_listen_options *options,
                                             const char *transports,
                                             eyas_error **error);

// Serves under TLS with this certificate chain, the own one first, and its key, both PEM. They are
// copied.
eyas_code eyas_listen_options_set_certificate(eyas_listen_options *options,
                                              const void *chain_pem,
                                              size_t chain_size,
                                              const void *key_pem,
                                              size_t key_size,
                                              eyas_error **error);

// Serves under TLS with a key and a certificate that are made on the spot, for this DNS name or IP
// address: for tests. Clients trust it if they are given the text of
// eyas_listen_options_certificate_pem.
eyas_code eyas_listen_options_set_self_signed(eyas_listen_options *options,
                                              const char *name,
                                              eyas_error **error);

// The certificate that is served, PEM. The text is the caller's, to be freed with eyas_text_free.
eyas_code eyas_listen_options_certificate_pem(const eyas_listen_options *options,
                                              char **text,
                                              eyas_error **error);

// Serves this application protocol (ALPN), after those that were added before.
eyas_code eyas_listen_options_add_alpn(eyas_listen_options *options,
                                       const char *protocol,
                                       eyas_error **error);

// The UDP port for SCTP inside UDP (RFC 6951): 9899 unless said; 0 takes a free one.
eyas_code eyas_listen_options_set_sctp_udp_port(eyas_listen_options *options,
                                                uint16_t port,
                                                eyas_error **error);

// Adds a further address of this host that SCTP is served at and its peers are told of.
eyas_code eyas_listen_options_add_sctp_address(eyas_listen_options *options,
                                               const char *address,
                                               eyas_error **error);

// Sends new data of SCTP associations over all their paths at once. Off unless asked.
eyas_code eyas_listen_options_set_sctp_multipath(eyas_listen_options *options,
                                                 bool multipath,
                                                 eyas_error **error);

// Frees options; NULL is fine.
void eyas_listen_options_free(eyas_listen_options *options);

// Listens as `options` say, which are read and not kept. The listener is the caller's, to be freed with
// eyas_listener_free; it uses the threads of the endpoint.
eyas_code eyas_listen(const eyas_endpoint *endpoint,
                      const eyas_listen_options *options,
                      eyas_listener **listener,
                      eyas_error **error);

// Accepts a connection whose handshake is complete: the caller's, to be freed with eyas_connection_free.
// A timeout of 0 does not wait: EYAS_WOULD_BLOCK.
eyas_code eyas_listener_accept(const eyas_listener *listener,
                               int32_t timeout_ms,
                               eyas_connection **connection,
                               eyas_error **error);

// Puts a descriptor into `fd` that is readable (POLLIN) while eyas_listener_accept is worth a try. It
// belongs to the listener: neither read nor close it.
eyas_code eyas_listener_fd(const eyas_listener *listener,
                           int *fd,
                           eyas_error **error);

// Ends a call of another thread that waits to accept, which returns EYAS_CANCELLED, and all later ones.
eyas_code eyas_listener_cancel(const eyas_listener *listener,
                               eyas_error **error);

// Puts the address and port that is listened at into `text`, such as "127.0.0.1:4433": the caller's, to
// be freed with eyas_text_free.
eyas_code eyas_listener_address(const eyas_listener *listener,
                                char **text,
                                eyas_error **error);

// Puts the port that is listened at into `port`.
eyas_code eyas_listener_port(const eyas_listener *listener,
                             uint16_t *port,
                             eyas_error **error);

// Puts the UDP port at which SCTP inside UDP is awaited into `port`.
eyas_code eyas_listener_sctp_udp_port(const eyas_listener *listener,
                                      uint16_t *port,
                                      eyas_error **error);

// Frees a listener; NULL is fine. No call on it may be under way. Connections that were accepted live on.
void eyas_listener_free(eyas_listener *listener);

// What would be tried to reach the target, in which order and why, as JSON (docs/json.md: `plan`): DNS is
// asked, nothing is connected to. The text is the caller's, to be freed with eyas_text_free. Blocks; from
// any thread.
eyas_code eyas_plan_json(const eyas_endpoint *endpoint,
                         const eyas_target *target,
                         int32_t timeout_ms,
                         char **text,
                         eyas_error **error);

// What was learnt, as JSON (docs/json.md: the `rows` of `memory`), newest first; of one host, or of all
// if `host` is NULL. The text is the caller's, to be freed with eyas_text_free. From any thread.
eyas_code eyas_memory_json(const eyas_endpoint *endpoint,
                           const char *host,
                           char **text,
                           eyas_error **error);

// Forgets what was learnt of a host on every network, and puts the number of rows into `forgotten`, which
// may be NULL. From any thread.
eyas_code eyas_memory_forget(const eyas_endpoint *endpoint,
                             const char *host,
                             size_t *forgotten,
                             eyas_error **error);

// Forgets everything. From any thread.
eyas_code eyas_memory_clear(const eyas_endpoint *endpoint,
                            eyas_error **error);

// What was wrong with the memory's file since this was last asked, as a JSON array of texts. The text is
// the caller's, to be freed with eyas_text_free. From any thread.
eyas_code eyas_memory_warnings_json(const eyas_endpoint *endpoint,
                                    char **text,
                                    eyas_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EYAS_H */
