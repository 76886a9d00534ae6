//! The current sessions of an end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyas::race::candidate::Transport;
use tokio::time::Instant;

use crate::link::SessionLink;
use crate::packet_counts::PacketCounts;
use crate::paths::PathReading;
use crate::session::{ChannelReading, ChannelTraffic};

/// The limit on the channels of a session that are reported, beginning with the busiest.
const MAX_CHANNELS: usize = 64;

/// The current sessions of an end. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CurrentSessions(Arc<SharedSessions>);

#[derive(Debug, Default)]
struct SharedSessions {
    next: AtomicU64,
    present: Mutex<BTreeMap<u64, PresentSession>>,
}

#[derive(Clone, Debug)]
struct PresentSession {
    peer: String,
    began: Instant,
    link: SessionLink,
}

/// A session in [`CurrentSessions`], which is removed when this is dropped.
#[derive(Debug)]
pub struct SessionPresence {
    sessions: CurrentSessions,
    number: u64,
}

/// A snapshot of a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionReading {
    /// The name of the other end.
    pub peer: String,
    /// The address of the other end when it connected.
    pub remote: SocketAddr,
    /// The transport.
    pub transport: Transport,
    /// The proxy that it leads through, if any, whose address is then [`remote`](Self::remote).
    pub proxy: Option<String>,
    /// How long it has been up.
    pub up: Duration,
    /// Its paths.
    pub paths: Vec<PathReading>,
    /// The number of streams that both ends use.
    pub streams: usize,
    /// Bytes of connections so far.
    pub traffic: ChannelTraffic,
    /// The counts of packets, if both ends have an interface.
    pub packets: Option<PacketCounts>,
    /// The number of channels.
    pub channels: usize,
    /// The busiest channels, at most 64.
    pub busiest: Vec<ChannelReading>,
}

impl CurrentSessions {
    pub(crate) fn enter(&self, peer: String, link: SessionLink) -> SessionPresence {
        let number = self.0.next.fetch_add(1, Relaxed);
        let present = PresentSession { peer, began: Instant::now(), link };
        self.present().insert(number, present);
        SessionPresence { sessions: self.clone(), number }
    }

    fn present(&self) -> MutexGuard<'_, BTreeMap<u64, PresentSession>> {
        self.0.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns snapshots of all sessions, the oldest first.
    pub fn read(&self) -> Vec<SessionReading> {
        // Cloned, since reading takes other locks.
        let present: Vec<PresentSession> = self.present().values().cloned().collect();
        present.iter().filter_map(PresentSession::read).collect()
    }
}

impl PresentSession {
    /// Returns `None` if the session has no connection yet, or no longer.
    fn read(&self) -> Option<SessionReading> {
        let paths = self.link.paths()?;
        let (read, packets) = (paths.read(), self.link.packets());
        Some(self.link.peek(|session| SessionReading {
            peer: self.peer.clone(),
            remote: paths.remote(),
            transport: paths.transport(),
            proxy: paths.proxy().map(str::to_owned),
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

impl Drop for SessionPresence {
    fn drop(&mut self) {
        let removed = self.sessions.present().remove(&self.number);
        // After the lock is released, since it may be the last handle of the session.
        drop(removed);
    }
}
