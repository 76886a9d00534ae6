//! Connects a program to its peer over the best transport that works on the path.
//!
//! | module or type | purpose | source |
//! | --- | --- | --- |
//! | [`Endpoint`], [`EndpointBuilder`] | the state shared by all connections of a program | RFC 9622 §6 |
//! | [`Target`], [`TargetHost`] | the peer to reach, and the protocols spoken there | RFC 9622 §6.1 |
//! | [`Preconnection`], [`Initiation`] | from a target to a connection, and then to a better one | RFC 9622 §6, §7 |
//! | [`Connection`], [`ByteStream`] | the connection that won | RFC 9622 §9 |
//! | [`ConnectionInfo`], [`RaceRecording`], [`AttemptCounts`], [`RaceCounts`] | why it won, and how the other attempts ended | RFC 9622 §9 |
//! | [`TcpStatus`], [`TcpReading`], [`TcpProbe`] | what the kernel knows of a TCP connection | |
//! | [`ConnectionFeedback`] | reports to the memory how a connection fared | |
//! | [`Error`], [`ConnectError`], [`CertificateFault`] | what went wrong, and what to do about it | |
//! | [`Listener`], [`ListenParameters`] | the passive side: TCP, MPTCP, TLS, QUIC and SCTP on one port number | RFC 9622 §7.2 |
//! | [`sockets`] | TCP and UDP on one port number, for servers with accept loops of their own | RFC 9622 §7.2 |
//! | [`MemoryStore`] | what earlier races learnt, in one file for several processes | RFC 9622 §6 |
//! | [`Resolver`] | DNS, with one query per record type | HEv3 §4 |
//! | [`ServerExamination`], [`ServerAnswer`] | what each name server lets through | RFC 9460, RFC 7766, RFC 7050 |
//! | [`SecurityParameters`], [`ServerIdentity`], [`KeyFingerprint`] | trust and own certificates | RFC 9622 §6.3 |
//! | [`EchChoice`], [`EchPolicy`], [`EchConfigList`], [`EchOutcome`] | names of servers that nobody on the path sees | RFC 9849 |
//! | `EarlyConnection` | a request in the first flight of QUIC | RFC 9001 §4.6 |
//! | `SctpStreams` | further streams of an SCTP association, and messages beside them | RFC 3436 |
//! | [`printable`] | text of peers, made fit for a terminal | |
//! | [`race`] | what to try, when, and what won | HEv3 |
//!
//! Most programs need only the first four rows. `SctpStreams` and `EarlyConnection` require the features `sctp` and `quic`.
//!
//! ```no_run
//! use eyas::{Endpoint, MemoryStore, Target, TargetHost};
//!
//! # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Endpoint::builder().memory(MemoryStore::default()).build()?;
//! let target = Target::https(TargetHost::parse("www.example.org")?, 443);
//! let mut initiation = endpoint.preconnection(target).initiate();
//! let usable = initiation.usable().await?;
//! println!("{} to {}", usable.info().transport, usable.info().remote);
//! if let Some(better) = initiation.better().await {
//!     println!("from now on over {}", better.info().transport);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Events
//!
//! Races report what they do as `tracing` events at level `debug` under the target `eyas::race`. The target and the
//! messages are stable; each event has the field `host`.
//!
//! | message | fields | when |
//! | --- | --- | --- |
//! | `plan` | `port`, `candidates`, `dropped` | before the first attempt starts |
//! | `start` | `candidate`, `reasons` | an attempt starts |
//! | `failure` | `candidate`, `cause`, `failure` | an attempt has failed by itself, or goes on with a shorter ClientHello |
//! | `win` | `candidate`, `after_ms` | the connection for the caller is ready |
//! | `switch` | `candidate`, `after_ms` | a better connection is ready later |
//! | `no winner` | `failure` | nobody has won |
//! | `learnt` | `candidate`, `level`, `cause` | something goes into the memory |
//!
//! `eyas_http` adds the events of requests. [`Endpoint::races`] and [`Endpoint::attempts`] count.
//!
//! Dropping a future, an [`Initiation`], a [`Connection`] or a [`Listener`] closes everything that
//! it had open. The crate runs inside a tokio runtime, on Linux, FreeBSD, macOS
//! and Windows; what a platform lacks is a candidate that is left out with its reason, an error that says so, or `None`.

pub use eyas_host as host;
pub use eyas_race as race;
/// The SCTP implementation, for programs that speak SCTP themselves.
#[cfg(feature = "sctp")]
pub use eyas_sctp_tokio;
/// The QUIC implementation, for programs that speak QUIC themselves.
#[cfg(feature = "quic")]
pub use quinn;
/// The TLS implementation, for programs that choose versions and cipher suites.
pub use rustls;

mod abort_on_drop;
mod attempt;
mod built_in;
mod byte_stream;
mod clock;
mod connect_error;
mod connection;
mod connection_info;
mod connector;
mod driver;
mod driver_event;
mod ech;
mod endpoint;
mod error;
mod events;
mod failure;
mod feedback;
mod graceful_close;
mod identity;
mod initiation;
mod kernel_tcp;
mod limit;
mod listener;
mod local_addresses;
mod memory_store;
mod network;
mod preconnection;
pub mod printable;
mod private_key;
#[cfg(feature = "quic")]
mod quic_sockets;
#[cfg(feature = "quic")]
mod quic_stream;
#[cfg(feature = "quic")]
mod quic_tls;
mod race_counts;
mod resolver;
mod running_attempt;
#[cfg(feature = "sctp")]
mod sctp;
mod security;
mod shared_journal;
pub mod sockets;
#[cfg(feature = "quic")]
mod stateless_reset;
mod tcp_status;
#[cfg(all(test, feature = "sctp"))]
#[path = "../tests/ports/mod.rs"]
mod test_ports;
pub mod zone;

#[cfg(feature = "quic")]
pub use attempt::quic::probe_quic;
pub use byte_stream::ByteStream;
pub use connect_error::ConnectError;
pub use connection::{Connection, ConnectionFeedback};
pub use connection_info::{ConnectionInfo, ConnectionInfoJson, ConnectionTimings};
pub use ech::{EchChoice, EchChoiceError, EchConfigError, EchConfigList, EchOutcome, EchPolicy};
#[cfg(feature = "quic")]
pub use endpoint::EarlyConnection;
pub use endpoint::{Endpoint, EndpointBuilder, NetworkChanges};
pub use error::Error;
pub use identity::{ServerIdentity, certificates_from_pem, is_self_signed_by_eyas};
pub use initiation::{Initiation, RaceRecording};
pub use listener::{ListenParameters, Listener};
pub use memory_store::MemoryStore;
pub use preconnection::Preconnection;
pub use private_key::{private_key_from_encrypted_pem, private_key_from_pem};
#[cfg(feature = "quic")]
pub use quic_sockets::serve_quic;
pub use race_counts::{AttemptCounts, RaceCounts};
#[cfg(feature = "encrypted-dns")]
pub use resolver::{
    DesignatedResolver, DnsProtocol, EncryptedDnsPolicy, EncryptedDnsPolicyError, ServerEncryption,
    UnencryptedReason,
};
pub use resolver::{NameSource, Resolver, ServerAnswer, ServerExamination};
#[cfg(feature = "sctp")]
pub use sctp::SctpStreams;
pub use security::{KeyFingerprint, KeyFingerprintError, SecurityParameters, crypto_provider};
pub use tcp_status::{TcpProbe, TcpReading, TcpStatus};

pub use eyas_race::candidate::{AlpnName, Candidate, Security, Transport};
pub use eyas_race::evidence::CertificateFault;
pub use eyas_race::target::{Target, TargetHost};

/// Compiles the example of the README.
#[cfg(all(doctest, feature = "quic", feature = "sqlite"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
