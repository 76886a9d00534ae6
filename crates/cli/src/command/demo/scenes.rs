//! The scenes of the demo and their texts.

use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas_testserver::{ServerPersonality, TransportSide};

/// A network and what the demo shows about it.
pub(super) struct DemoScene {
    /// A short name, for tables and JSON.
    pub(super) name: &'static str,
    /// A few words for the summary.
    pub(super) short: &'static str,
    /// The heading.
    pub(super) title: &'static str,
    /// One or two sentences.
    pub(super) explanation: &'static str,
    /// The participant of the race.
    pub(super) racer: DemoRacer,
}

/// The participants of races.
pub(super) enum DemoRacer {
    /// Eyas itself.
    Eyas {
        /// The transports, most preferred first.
        transports: &'static [Transport],
        /// The server and what is in front of it.
        personality: ServerPersonality,
    },
    /// A proxy, for a program without support for eyas.
    Proxy,
}

/// Returns eyas itself, with the transports that it races for HTTP by default.
const fn default_racer(personality: ServerPersonality) -> DemoRacer {
    DemoRacer::Eyas { transports: &[Transport::Quic, Transport::Tcp], personality }
}

/// The added delay of a slow transport.
const SLOW_DELAY: Duration = Duration::from_millis(90);

/// The scenes, in the order of showing.
pub(super) const SCENES: [DemoScene; 9] = [
    DemoScene {
        name: "all-well",
        short: "all is well",
        title: "All is well",
        explanation: "HTTP/3 over QUIC and HTTP/2 over TCP both work. QUIC gets a head start of \
                      30 ms, and so TCP is not even needed.",
        racer: default_racer(ServerPersonality::Healthy),
    },
    DemoScene {
        name: "udp-swallowed",
        short: "UDP dropped",
        title: "The network drops UDP",
        explanation: "Nothing comes back over QUIC, as in many offices and hotels. TCP starts \
                      after the head start; the second time eyas uses it right away.",
        racer: default_racer(ServerPersonality::UdpSwallowed),
    },
    DemoScene {
        name: "tcp-slow",
        short: "TCP slow",
        title: "TCP is slow",
        explanation: "Packets over TCP are delayed by 90 ms. HTTP/3 does not wait for it.",
        racer: default_racer(ServerPersonality::TcpSlow { by: SLOW_DELAY }),
    },
    DemoScene {
        name: "quic-slow",
        short: "QUIC slow",
        title: "QUIC is slow: the late switch",
        explanation: "TCP is ready first and is used at once. QUIC continues beside it and takes \
                      over when it is ready: later requests use HTTP/3. The second time eyas knows \
                      both round-trip times, and so TCP waits no longer than without memory.",
        racer: default_racer(ServerPersonality::QuicSlow { by: SLOW_DELAY }),
    },
    DemoScene {
        name: "http3-only",
        short: "HTTP/3 only",
        title: "HTTP/3 only",
        explanation: "Nothing is listening on TCP. Clients that try TCP first, to learn about \
                      HTTP/3 there, cannot connect.",
        racer: default_racer(ServerPersonality::Http3Only),
    },
    DemoScene {
        name: "wrong-certificate",
        short: "wrong certificate",
        title: "A wrong certificate on one transport",
        explanation: "Over QUIC the server presents an untrusted certificate. That attempt \
                      fails, however fast it is; TCP leads to the real server.",
        racer: default_racer(ServerPersonality::WrongCertificate(TransportSide::Quic)),
    },
    DemoScene {
        name: "sctp-inside-udp",
        short: "SCTP inside UDP",
        title: "SCTP inside UDP, where it is preferred",
        explanation: "The server also speaks HTTP/1.1 over SCTP, inside UDP, which needs no \
                      privileges. It is preferred to TCP here, and gets through.",
        racer: DemoRacer::Eyas {
            transports: &[Transport::SctpUdp, Transport::Tcp],
            personality: ServerPersonality::SctpInsideUdp,
        },
    },
    DemoScene {
        name: "protocol-132-dropped",
        short: "protocol 132 dropped",
        title: "The network drops protocol 132",
        explanation: "SCTP directly over IP is preferred, but nothing comes back (without \
                      privileges it is not even tried). Inside UDP it gets through, and the second \
                      time eyas uses it right away.",
        racer: DemoRacer::Eyas {
            transports: &[Transport::Sctp, Transport::SctpUdp, Transport::Tcp],
            personality: ServerPersonality::SctpInsideUdp,
        },
    },
    DemoScene {
        name: "proxy",
        short: "through eyas proxy",
        title: "An unmodified program, through eyas proxy",
        explanation: "The server's first address accepts connections and then says nothing. The \
                      program would wait there; the proxy sends what it says to the other address as \
                      well, and takes the one that answers. The second time it goes straight there.",
        racer: DemoRacer::Proxy,
    },
];
