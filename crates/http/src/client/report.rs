//! Details of an exchange.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use eyas::Transport;
use http::HeaderMap;
use url::Url;

use super::Redirect;
use crate::connection_report::ConnectionReport;

/// The details of an exchange, apart from its response.
#[derive(Debug)]
pub(super) struct Exchanged {
    pub(super) report: Arc<ConnectionReport>,
    pub(super) url: Url,
    pub(super) redirected: Vec<Redirect>,
    pub(super) reused: bool,
    pub(super) reuse: Option<Reuse>,
    /// What the response was before it was decompressed, if it is.
    pub(super) encoded: Option<Encoded>,
}

/// A response before it is decompressed.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) headers: HeaderMap,
    octets: Arc<AtomicU64>,
}

impl Encoded {
    /// Starts to count the octets of a body.
    pub(super) fn new(headers: HeaderMap) -> (Self, impl Fn(u64) + Send + 'static) {
        let octets = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&octets);
        let add = move |length| {
            counter.fetch_add(length, Ordering::Relaxed);
        };
        (Self { headers, octets }, add)
    }

    /// Returns how many octets of the body have been read so far.
    pub(super) fn octets(&self) -> u64 {
        self.octets.load(Ordering::Relaxed)
    }
}

/// How a connection from the pool fared under a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reuse {
    /// The transport of the connection.
    pub transport: Transport,
    /// Its peer's address.
    pub remote: SocketAddr,
    /// How long ago it was established.
    pub age: Duration,
    /// How long it had been idle.
    pub idle: Duration,
    /// Its round-trip time, if it was measured.
    pub rtt: Option<Duration>,
    /// What became of it.
    pub verdict: ReuseVerdict,
}

/// What became of a connection that was reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReuseVerdict {
    /// It answered, or showed a sign of life in time.
    Alive,
    /// It showed a sign of life only after a race for a new connection had started.
    Late,
    /// It showed no sign of life until there was a new connection.
    Dead,
}

impl ReuseVerdict {
    /// All verdicts.
    pub const ALL: [Self; 3] = [Self::Alive, Self::Late, Self::Dead];

    /// Returns the name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Late => "late",
            Self::Dead => "dead",
        }
    }
}

/// As in `quic 192.0.2.1:443, 12.3 s old, idle for 3.0 s, round trip 10.2 ms: dead, …`.
impl fmt::Display for Reuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {:.1} s old, ", self.transport, self.remote, self.age.as_secs_f64())?;
        match self.idle {
            Duration::ZERO => f.write_str("in use")?,
            idle => write!(f, "idle for {:.1} s", idle.as_secs_f64())?,
        }
        if let Some(rtt) = self.rtt {
            write!(f, ", round trip {:.1} ms", rtt.as_secs_f64() * 1e3)?;
        }
        f.write_str(match self.verdict {
            ReuseVerdict::Alive => ": alive",
            ReuseVerdict::Late => ": alive, but only after a race had started beside it",
            ReuseVerdict::Dead => ": dead, without a sign of life until a race had been won",
        })
    }
}
