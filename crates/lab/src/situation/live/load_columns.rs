//! The measurements of a load on a server.

/// Their names and their axis labels.
pub(crate) const COLUMNS: [super::Column; 23] = [
    ("cpu", "CPU time of the server's host [% of a core]"),
    ("cpu-user", "server process, own code [% of a core]"),
    ("cpu-kernel", "server process, in the kernel [% of a core]"),
    ("cpu-receiving", "receiving thread of the kernel [% of a core]"),
    ("cpu-busy", "core of the server, not idle [%]"),
    ("cpu-request", "CPU time of the server's host per request [ms]"),
    ("kernel-memory", "kernel memory for networking [KiB]"),
    ("own-memory", "memory of the server process [MiB]"),
    ("transaction", "time from the intended start to the end of the response [ms]"),
    ("first-byte", "time from the intended start to the first byte of the response [ms]"),
    ("request-packets", "packets per request, both directions"),
    ("request-bytes", "bytes per request, both directions"),
    ("request-attempts", "attempts per request"),
    ("request-completed", "handshakes completed in vain per request"),
    ("answered", "requests answered [%]"),
    ("request-rate", "requests answered per second"),
    ("hit", "requests whose outcome was known [%]"),
    ("late", "delay of the start of requests, 99th percentile [ms]"),
    ("won-tcp", "requests over TCP [%]"),
    ("won-mptcp", "requests over MPTCP [%]"),
    ("won-sctp", "requests over SCTP [%]"),
    ("won-sctp-udp", "requests over SCTP inside UDP [%]"),
    ("won-quic", "requests over QUIC [%]"),
];
