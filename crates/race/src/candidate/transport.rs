//! The transports and their properties.
//!
//! All properties of a transport are defined here. Only the code that connects and listens is
//! elsewhere.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::{AlpnName, Security};

#[cfg(test)]
mod tests;

/// A transport protocol that a connection attempt can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Transport {
    /// TCP (RFC 9293).
    Tcp,
    /// Multipath TCP (RFC 8684).
    Mptcp,
    /// SCTP directly over IP, protocol 132 (RFC 9260).
    Sctp,
    /// SCTP inside UDP (RFC 6951).
    SctpUdp,
    /// QUIC (RFC 9000).
    Quic,
}

/// How HTTP runs over a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpMapping {
    /// HTTP/1 or HTTP/2 on the single byte stream of the transport.
    Stream,
    /// HTTP/1 on one of the transport's streams: HTTP/2 would add streams of its own.
    OneStream,
    /// HTTP/3, on all of the transport's streams (RFC 9114 §3).
    AllStreams,
}

/// The properties of a transport.
struct TransportProperties {
    /// The name used on the command line, in JSON and in the memory.
    name: &'static str,
    /// The number in the protocol field of IP (IANA, "Protocol Numbers").
    ip_protocol: u8,
    /// Whether networks can filter it by the port of the service. For SCTP they cannot: it has its
    /// own protocol number, or a single UDP port for all services.
    has_port_on_path: bool,
    /// Whether TLS is built in.
    has_own_security: bool,
    /// Whether DTLS can carry it (RFC 8261).
    runs_in_dtls: bool,
    http: HttpMapping,
    /// The round trips until it is established, including built-in security.
    round_trips: u32,
    /// Whether retransmissions are timed by the measured or remembered round-trip time rather than
    /// by a fixed minimum.
    probes_by_round_trip: bool,
    /// Whether an attempt pauses at the peer's first answer until it is told to proceed.
    waits_when_answered: bool,
    /// Whether a further attempt alongside an unanswered one is a new connection to the peer.
    has_second_tries: bool,
    /// The transport that results if the peer or the path does not support it.
    falls_back_to: Option<Transport>,
    /// The same protocol inside UDP.
    inside_udp: Option<Transport>,
}

const TCP: TransportProperties = TransportProperties {
    name: "tcp",
    ip_protocol: 6,
    has_port_on_path: true,
    has_own_security: false,
    runs_in_dtls: false,
    http: HttpMapping::Stream,
    round_trips: 1,
    probes_by_round_trip: false,
    waits_when_answered: false,
    has_second_tries: true,
    falls_back_to: None,
    inside_udp: None,
};

/// MPTCP is a TCP option, so it shares all properties except its name.
const MPTCP: TransportProperties =
    TransportProperties { name: "mptcp", falls_back_to: Some(Transport::Tcp), ..TCP };

const SCTP: TransportProperties = TransportProperties {
    name: "sctp",
    ip_protocol: 132,
    has_port_on_path: false,
    has_own_security: false,
    runs_in_dtls: false,
    http: HttpMapping::OneStream,
    // INIT and COOKIE ECHO, each with its reply (RFC 9260 §5.1).
    round_trips: 2,
    probes_by_round_trip: false,
    waits_when_answered: true,
    has_second_tries: false,
    falls_back_to: None,
    inside_udp: Some(Transport::SctpUdp),
};

const SCTP_UDP: TransportProperties = TransportProperties {
    name: "sctp-udp",
    ip_protocol: 17,
    runs_in_dtls: true,
    inside_udp: None,
    ..SCTP
};

const QUIC: TransportProperties = TransportProperties {
    name: "quic",
    ip_protocol: 17,
    has_port_on_path: true,
    // RFC 9001: the TLS handshake is part of the transport's.
    has_own_security: true,
    runs_in_dtls: false,
    http: HttpMapping::AllStreams,
    round_trips: 1,
    // RFC 9002 §6.2.1.
    probes_by_round_trip: true,
    waits_when_answered: false,
    has_second_tries: true,
    falls_back_to: None,
    inside_udp: None,
};

impl Transport {
    /// All named transports, in the order in which tables list them.
    pub const ALL: [Self; 5] = [Self::Tcp, Self::Mptcp, Self::Quic, Self::Sctp, Self::SctpUdp];

    const fn properties(self) -> &'static TransportProperties {
        match self {
            Self::Tcp => &TCP,
            Self::Mptcp => &MPTCP,
            Self::Sctp => &SCTP,
            Self::SctpUdp => &SCTP_UDP,
            Self::Quic => &QUIC,
        }
    }

    /// Returns the name used on the command line, in JSON and in the memory.
    pub const fn name(self) -> &'static str {
        self.properties().name
    }

    /// Returns the transport with this [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|transport| transport.name() == name)
    }

    /// Returns the transports named by a target's scheme such as `quic+tcp`, most preferred first,
    /// without duplicates; `sctp` means both directly over IP and [inside
    /// UDP](Self::with_encapsulated). `None` if a part of the scheme is not the name of a
    /// transport.
    pub fn from_scheme(scheme: &str) -> Option<Vec<Self>> {
        let mut all = Vec::new();
        for name in scheme.split('+') {
            for transport in Self::from_name(name)?.with_encapsulated() {
                if !all.contains(&transport) {
                    all.push(transport);
                }
            }
        }
        Some(all)
    }

    /// Returns this transport, followed by its UDP-encapsulated variant if it has one. SCTP has
    /// one, and users rarely know which of the two their network passes.
    pub fn with_encapsulated(self) -> impl Iterator<Item = Self> {
        core::iter::once(self).chain(self.properties().inside_udp)
    }

    /// Returns its IP protocol number.
    pub const fn ip_protocol(self) -> u8 {
        self.properties().ip_protocol
    }

    /// Returns whether TLS is part of the transport, so that every connection is encrypted: QUIC
    /// (RFC 9001).
    pub const fn has_own_security(self) -> bool {
        self.properties().has_own_security
    }

    /// Returns whether an attempt stops at the peer's first answer until it is told to proceed,
    /// because the peer keeps no state for it until then: SCTP at its INIT ACK (RFC 9260 §5.1.3).
    pub const fn waits_when_answered(self) -> bool {
        self.properties().waits_when_answered
    }

    /// Returns whether HTTP over it is HTTP/3 and no other version.
    pub const fn has_http3(self) -> bool {
        matches!(self.properties().http, HttpMapping::AllStreams)
    }

    /// Returns whether it has independently ordered streams, so that a lost packet delays only the
    /// streams whose data it carried.
    pub const fn has_streams(self) -> bool {
        !matches!(self.properties().http, HttpMapping::Stream)
    }

    /// Returns whether it can carry this application protocol: HTTP/3 runs over QUIC only (RFC 9114
    /// §3), its earlier versions over byte streams. Other protocols are assumed to run over all
    /// transports.
    pub fn carries(self, protocol: &AlpnName) -> bool {
        match protocol.as_str() {
            "h3" => self.has_http3(),
            "h2" | "http/1.1" | "http/1.0" => !self.has_http3(),
            _ => true,
        }
    }

    /// Returns whether this version of HTTP is used over it, for a version that it can
    /// [carry](Self::carries).
    pub(crate) fn speaks_http(self, version: &AlpnName) -> bool {
        match self.properties().http {
            HttpMapping::OneStream => matches!(version.as_str(), "http/1.1" | "http/1.0"),
            HttpMapping::Stream | HttpMapping::AllStreams => true,
        }
    }

    /// Returns whether DTLS can carry it (RFC 8261).
    pub(crate) const fn runs_in_dtls(self) -> bool {
        self.properties().runs_in_dtls
    }

    /// Returns whether networks distinguish services over it by their ports.
    pub(crate) const fn has_port_on_path(self) -> bool {
        self.properties().has_port_on_path
    }

    /// Returns whether retransmissions are timed by the measured or remembered round-trip time (RFC
    /// 9002 §6.2.1), rather than by a fixed minimum (RFC 6298 §2).
    pub(crate) const fn probes_by_round_trip(self) -> bool {
        self.properties().probes_by_round_trip
    }

    /// Returns whether a further attempt alongside an unanswered one is a new connection to the
    /// peer.
    pub(crate) const fn has_second_tries(self) -> bool {
        self.properties().has_second_tries
    }

    /// Returns the transport that it falls back to if the peer or the path does not support it.
    pub(crate) const fn falls_back_to(self) -> Option<Self> {
        self.properties().falls_back_to
    }

    /// Returns the round trips until the transport is established, including its security if that
    /// is built in.
    pub(crate) const fn round_trips(self) -> u32 {
        self.properties().round_trips
    }

    /// Returns the round trips until a connection with this security is established.
    pub(crate) const fn round_trips_under(self, security: Security) -> u32 {
        let properties = self.properties();
        match security {
            Security::Tls | Security::Dtls if !properties.has_own_security => {
                properties.round_trips + 1
            }
            Security::None | Security::Tls | Security::Dtls => properties.round_trips,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
