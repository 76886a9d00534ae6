//! What is measured of a load on a server.

/// Their names, and what people read at an axis.
pub(crate) const COLUMNS: [super::Column; 23] = [
    ("cpu", "CPU of the server's host [% of a core]"),
    ("cpu-user", "server process, own code [% of a core]"),
    ("cpu-kernel", "server process, in the kernel [% of a core]"),
    ("cpu-receiving", "the kernel's receiving thread [% of a core]"),
    ("cpu-busy", "the server's core, not idle [%]"),
    ("cpu-request", "CPU of the server's host for a request [ms]"),
    ("kernel-memory", "kernel memory for networking [KiB]"),
    ("own-memory", "memory of the server process [MiB]"),
    ("transaction", "from the intended start to the end of the response [ms]"),
    ("first-byte", "from the intended start to the response [ms]"),
    ("request-packets", "packets for a request, both ways"),
    ("request-bytes", "bytes for a request, both ways"),
    ("request-attempts", "attempts for a request"),
    ("request-completed", "handshakes for a request, completed for nothing"),
    ("answered", "requests answered [%]"),
    ("request-rate", "requests answered a second"),
    ("hit", "requests whose outcome was known [%]"),
    ("late", "requests begun later than intended, 99th percentile [ms]"),
    ("won-tcp", "requests over TCP [%]"),
    ("won-mptcp", "requests over MPTCP [%]"),
    ("won-sctp", "requests over SCTP [%]"),
    ("won-sctp-udp", "requests over SCTP inside UDP [%]"),
    ("won-quic", "requests over QUIC [%]"),
];
