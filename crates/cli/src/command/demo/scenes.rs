//! What the demo shows, in which words.

use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas_testserver::{Personality, Side};

/// One network and what there is to see.
pub(super) struct Scene {
    /// A short name, for tables and JSON.
    pub(super) name: &'static str,
    /// A few words for the summary.
    pub(super) short: &'static str,
    /// The heading.
    pub(super) title: &'static str,
    /// One or two sentences.
    pub(super) explanation: &'static str,
    /// What is raced, the most wanted first.
    pub(super) transports: &'static [Transport],
    /// The server, and what stands between it and us.
    pub(super) personality: Personality,
}

/// How much later everything arrives over a slow transport.
const LATE: Duration = Duration::from_millis(90);

/// What eyas races for HTTP unless told otherwise.
const USUAL: &[Transport] = &[Transport::Quic, Transport::Tcp];

/// The scenes, in the order of showing.
pub(super) const SCENES: [Scene; 8] = [
    Scene {
        name: "all-well",
        short: "all is well",
        title: "All is well",
        explanation: "HTTP/3 over QUIC and HTTP/2 over TCP both work. QUIC gets a head start of \
                      30 ms, and so TCP is not even needed.",
        transports: USUAL,
        personality: Personality::Healthy,
    },
    Scene {
        name: "udp-swallowed",
        short: "UDP swallowed",
        title: "The network swallows UDP",
        explanation: "Nothing comes back over QUIC, as in many offices and hotels. TCP starts when \
                      the head start is over; the second time eyas goes straight there.",
        transports: USUAL,
        personality: Personality::UdpSwallowed,
    },
    Scene {
        name: "tcp-slow",
        short: "TCP slow",
        title: "TCP is slow",
        explanation: "What is sent over TCP arrives 90 ms late. HTTP/3 does not wait for it.",
        transports: USUAL,
        personality: Personality::TcpSlow { by: LATE },
    },
    Scene {
        name: "quic-slow",
        short: "QUIC slow",
        title: "QUIC is slow: the late switch",
        explanation: "TCP is ready first and is used at once. QUIC goes on beside it and takes over \
                      when it is ready: what follows goes over HTTP/3. The second time eyas knows \
                      how far away both are, and so TCP waits no longer than without memory.",
        transports: USUAL,
        personality: Personality::QuicSlow { by: LATE },
    },
    Scene {
        name: "http3-only",
        short: "HTTP/3 only",
        title: "HTTP/3 only",
        explanation: "Nobody listens on TCP. Clients that try TCP first, to be told of HTTP/3 \
                      there, never arrive.",
        transports: USUAL,
        personality: Personality::Http3Only,
    },
    Scene {
        name: "wrong-certificate",
        short: "wrong certificate",
        title: "A wrong certificate on one transport",
        explanation: "Over QUIC the server shows a certificate that nobody vouches for. That \
                      attempt has failed, however fast it was; TCP leads to the real server.",
        transports: USUAL,
        personality: Personality::WrongCertificate(Side::Quic),
    },
    Scene {
        name: "sctp-inside-udp",
        short: "SCTP inside UDP",
        title: "SCTP inside UDP, where it is preferred",
        explanation: "The server speaks HTTP/1.1 over SCTP as well, inside UDP, so that any program \
                      can speak it back. It is wanted more than TCP here, and gets through.",
        transports: &[Transport::SctpUdp, Transport::Tcp],
        personality: Personality::SctpInsideUdp,
    },
    Scene {
        name: "protocol-132-dropped",
        short: "protocol 132 dropped",
        title: "The network drops protocol 132",
        explanation: "SCTP directly over IP is what is wanted most, and nothing comes back (without \
                      privileges it is not even tried). Inside UDP it passes, and the second time \
                      eyas goes straight there.",
        transports: &[Transport::Sctp, Transport::SctpUdp, Transport::Tcp],
        personality: Personality::SctpInsideUdp,
    },
];
