//! The sessions that an end has, for who wants to see them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyas::race::candidate::Transport;
use tokio::time::Instant;

use super::link::Link;
use super::packets::PacketCounts;
use super::paths::PathReading;
use super::session::{ChannelReading, Traffic};

/// Channels of one session that are shown, those first that have carried most.
const MAX_CHANNELS: usize = 64;

/// The sessions of an end that are there at the moment. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Sessions(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    next: AtomicU64,
    present: Mutex<BTreeMap<u64, Present>>,
}

#[derive(Clone, Debug)]
struct Present {
    peer: String,
    began: Instant,
    link: Link,
}

/// For as long as a session is among [`Sessions`].
#[derive(Debug)]
pub struct Presence {
    sessions: Sessions,
    number: u64,
}

/// A session at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionReading {
    /// Who is at the other end.
    pub peer: String,
    /// Where the other end was when it was connected.
    pub remote: SocketAddr,
    /// What carries it.
    pub transport: Transport,
    /// How long it has been up.
    pub up: Duration,
    /// Its paths.
    pub paths: Vec<PathReading>,
    /// Streams of the transport that both ends use.
    pub streams: usize,
    /// Bytes of connections so far.
    pub traffic: Traffic,
    /// What became of the packets of an interface, if both ends have one.
    pub packets: Option<PacketCounts>,
    /// How many channels there are.
    pub channels: usize,
    /// The channels that have carried most: 64 at most.
    pub busiest: Vec<ChannelReading>,
}

impl Sessions {
    pub(super) fn enter(&self, peer: String, link: Link) -> Presence {
        let number = self.0.next.fetch_add(1, Relaxed);
        let present = Present { peer, began: Instant::now(), link };
        self.present().insert(number, present);
        Presence { sessions: self.clone(), number }
    }

    fn present(&self) -> MutexGuard<'_, BTreeMap<u64, Present>> {
        self.0.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, the oldest first.
    pub fn read(&self) -> Vec<SessionReading> {
        // What is asked below takes locks of its own.
        let present: Vec<Present> = self.present().values().cloned().collect();
        present.iter().filter_map(Present::read).collect()
    }
}

impl Present {
    /// `None` if nothing carries it yet, or any more.
    fn read(&self) -> Option<SessionReading> {
        let paths = self.link.paths()?;
        let (read, packets) = (paths.read(), self.link.packets());
        Some(self.link.peek(|session| SessionReading {
            peer: self.peer.clone(),
            remote: paths.remote(),
            transport: paths.transport(),
            up: self.began.elapsed(),
            paths: read,
            streams: session.lanes(),
            traffic: session.traffic(),
            packets,
            channels: session.channels(),
            busiest: session.read_channels(MAX_CHANNELS),
        }))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let gone = self.sessions.present().remove(&self.number);
        // Not before the others are unlocked: it may be the last handle of the session.
        drop(gone);
    }
}
