//! The transports that this build supports.

use eyas_race::candidate::Transport;

/// Why this build cannot speak the transport, if so: its feature is left out.
pub(crate) const fn missing(transport: Transport) -> Option<&'static str> {
    match transport {
        Transport::Quic if !cfg!(feature = "quic") => Some("this build is without QUIC"),
        Transport::Sctp | Transport::SctpUdp if !cfg!(feature = "sctp") => {
            Some("this build is without SCTP")
        }
        _ => None,
    }
}
