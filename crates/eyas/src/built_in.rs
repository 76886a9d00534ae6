//! The transports that this build supports.

use eyas_race::candidate::Transport;

/// Returns why this build does not support the transport, if so: its feature is disabled.
pub(crate) const fn missing(transport: Transport) -> Option<&'static str> {
    match transport {
        Transport::Quic if !cfg!(feature = "quic") => Some("this build is without QUIC"),
        Transport::Sctp | Transport::SctpUdp if !cfg!(feature = "sctp") => {
            Some("this build is without SCTP")
        }
        _ => None,
    }
}
