//! What both ends of a test say and decide, without I/O.
//!
//! ```text
//! client                                   server
//!   ── Open(request) ─────────────────────▶          control channel
//!   ◀───────────────── Accepted(token, …) ──          or Refused(why)
//!   ── Attach(token, number) ─────────────▶          each further channel
//!   ◀────────────────────────────── Ready ──          once all are attached
//!   ── Ping ─▶  ◀─ Pong ──                            channel 0, idle
//!   ── Start ─────────────────────────────▶
//!   ══ data on channels 1 … n, in either direction or both; Ping and Pong beside them ══
//!   ◀─────────────────────────── Interval ──          each interval of what the server receives
//!   ── Finished ──────────────────────────▶          once the client has received for long enough
//!   ◀──────────────────────────── Summary ──
//! ```
//!
//! A channel is a reliable byte stream: a connection of its own over TCP and MPTCP, a stream over QUIC and SCTP. The data
//! has no frames, so that nothing but the data is measured.
//!
//! The sessions therefore never see the data. Their drivers know three things that they do not: what a channel
//! is over each transport, the counters of the data, which the sessions take before every other input, and the
//! server's places. The client's data flows only once the transport has accepted the frame that announces it:
//! on a connection that they share, data that the server does not read yet could take all the credit that the
//! frame needs.

pub mod client_session;
pub mod frame;
pub mod goodput;
mod measurement;
pub mod pacer;
pub mod request;
pub mod round_trips;
pub mod server_session;
pub mod statistics;

use std::time::Duration;

pub use self::measurement::EndReport;

/// How long a peer may take for each step before a test begins.
pub const STEP_TIME: Duration = Duration::from_secs(10);
/// How long a server waits for the start once everything is ready: the client measures the idle path meanwhile.
pub const MAX_IDLE: Duration = Duration::from_secs(60);
/// How much longer than its time a test may take: the first data arrives late, and the last is on its way.
pub const GRACE: Duration = Duration::from_secs(10);
/// How often an end looks at its counters while data flows.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The counters of one end, which only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndReading {
    /// Bytes of data received, on all channels.
    pub received: u64,
    /// Bytes of data that the transport has accepted for sending.
    pub sent: u64,
    /// CPU time of this process, in user and kernel mode; `None` if it is not this test's alone.
    pub cpu: Option<Duration>,
    /// Packets that the transport sent again, or declared lost and sent their data again.
    pub retransmitted: Option<u64>,
    /// The transport's smoothed estimate of the round-trip time, which is no counter.
    pub rtt: Option<Duration>,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TestEnd {
    /// Its time is over, or all its messages have arrived.
    Complete = 0,
    /// The client stopped it.
    Stopped = 1,
    /// It took longer than its time and [`GRACE`].
    Late = 2,
    /// As many bytes have passed as the server allows.
    ByteLimit = 3,
    /// The other end has disconnected.
    Lost = 4,
}

impl TestEnd {
    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Stopped => "stopped",
            Self::Late => "late",
            Self::ByteLimit => "byte-limit",
            Self::Lost => "lost",
        }
    }
}

impl TryFrom<u8> for TestEnd {
    type Error = ();

    fn try_from(code: u8) -> Result<Self, ()> {
        let all = [Self::Complete, Self::Stopped, Self::Late, Self::ByteLimit, Self::Lost];
        all.into_iter().find(|ended| *ended as u8 == code).ok_or(())
    }
}
