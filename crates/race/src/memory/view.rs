//! What one race needs to know: the rows of its host and of its network.

use alloc::{collections::BTreeMap, vec::Vec};
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::entry::is_credible;
use super::key::{path_port, without_flow_label};
use super::{
    DatedOutcome, HandshakeLoss, MemoryConfig, MemoryEntry, MemoryKey, MemorySubject,
    PathDistances, PathEntry, PeerEntry, RoundTrip,
};
use crate::candidate::{AddressFamily, Candidate, Security, Transport};
use crate::evidence::{FailureCause, TrustContext};

/// The memory's verdict about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryVerdict {
    /// It worked recently: try it first.
    Good {
        /// The smoothed round-trip time of earlier handshakes, if one was measured.
        rtt: Option<Duration>,
    },
    /// It failed recently: try it only if nothing else is left.
    Bad {
        /// How it failed.
        cause: FailureCause,
        /// When the back-off ends.
        until: Duration,
    },
    /// It failed and the back-off is over: try it again beside a working connection, or if nothing
    /// else is left.
    RetestDue {
        /// How it failed.
        cause: FailureCause,
        /// When the back-off ended. The candidate that has been due for longest is tried first, so
        /// that none waits forever behind others that keep failing.
        since: Duration,
    },
    /// Nothing is known about this peer, but other peers on this network were silent over this
    /// path: try it if nothing else is left, and in one of `probe_one_in` races beside a working
    /// connection.
    NetworkBad {
        /// The number of silent hosts.
        silent_hosts: usize,
        /// From [`MemoryConfig::probe_one_in`].
        probe_one_in: u32,
    },
    /// Nothing is known.
    Unknown,
}

impl MemoryVerdict {
    /// Returns when a retest fell due; zero for everything that is not waiting for a back-off.
    pub(crate) const fn due_since(self) -> Duration {
        match self {
            Self::RetestDue { since, .. } => since,
            _ => Duration::ZERO,
        }
    }
}

/// The part of the memory needed by one race.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "MemoryViewRows", into = "MemoryViewRows")]
pub struct MemoryView {
    config: MemoryConfig,
    trust: TrustContext,
    peers: BTreeMap<(Transport, Security, SocketAddr), PeerEntry>,
    paths: BTreeMap<(Transport, AddressFamily, u16), PathEntry>,
    /// How many of the peers have an outcome of a ClientHello of two packets; mostly none.
    long_hellos: usize,
}

impl MemoryView {
    /// Creates a view without evidence.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a view from rows, which should be those of one host and of one network (see
    /// [`MemoryKey::peer_prefix`] and [`MemoryKey::path_prefix`]). Rows that have expired, exceed
    /// [`MemoryConfig::max_rows`] or belong to another trust are skipped.
    pub fn from_rows(
        rows: impl IntoIterator<Item = (MemoryKey, MemoryEntry)>,
        trust: &TrustContext,
        now: Duration,
        config: &MemoryConfig,
    ) -> Self {
        let mut view = Self::without_rows(trust, config);
        let live = rows.into_iter().filter(|(_, entry)| !entry.is_expired(now, config));
        live.take(config.max_rows).for_each(|(key, entry)| view.insert(&key.subject, entry));
        view
    }

    /// Creates a view as [`MemoryView::from_rows`] does, from rows that remain with the memory.
    pub(super) fn of_rows<'a>(
        rows: impl Iterator<Item = (&'a MemoryKey, &'a MemoryEntry)>,
        trust: &TrustContext,
        now: Duration,
        config: &MemoryConfig,
    ) -> Self {
        let mut view = Self::without_rows(trust, config);
        let live = rows.filter(|(_, entry)| !entry.is_expired(now, config));
        live.take(config.max_rows).for_each(|(key, entry)| {
            view.insert(&key.subject, entry.clone());
        });
        view
    }

    fn without_rows(trust: &TrustContext, config: &MemoryConfig) -> Self {
        Self { config: config.clone(), trust: trust.clone(), ..Self::default() }
    }

    fn insert(&mut self, subject: &MemorySubject, entry: MemoryEntry) {
        match (subject, entry) {
            (
                MemorySubject::Peer { transport, security, address, .. },
                MemoryEntry::Peer(mut entry),
            ) => {
                entry.secured.truncate(PeerEntry::MAX_SET_UPS);
                entry.secured.retain(|secured| secured.set_up.trust == self.trust);
                let address = without_flow_label(*address);
                self.long_hellos += usize::from(entry.long_hello.is_some());
                let replaced = self.peers.insert((*transport, *security, address), entry);
                self.long_hellos -= count_long_hellos(replaced.as_ref());
            }
            (MemorySubject::Path { transport, family, port }, MemoryEntry::Path(entry)) => {
                self.paths.insert((*transport, *family, *port), entry);
            }
            // A row whose key and entry disagree is damaged: skip it.
            _ => {}
        }
    }

    /// Forgets which ClientHellos of two packets did not get through, for whoever must not send shorter ones.
    #[must_use]
    pub fn without_short_hellos(mut self) -> Self {
        self.peers.values_mut().for_each(|entry| entry.long_hello = None);
        self.long_hellos = 0;
        self
    }

    /// Returns the verdict about this candidate at `now`.
    pub fn verdict(&self, candidate: &Candidate, now: Duration) -> MemoryVerdict {
        self.verdict_from(self.peer(candidate), candidate, now)
    }

    /// Returns what [`MemoryView::verdict`] and [`MemoryView::round_trip`] return.
    pub(crate) fn verdict_and_round_trip(
        &self,
        candidate: &Candidate,
        now: Duration,
    ) -> (MemoryVerdict, Option<RoundTrip>) {
        let entry = self.peer(candidate);
        (self.verdict_from(entry, candidate, now), round_trip_from(entry, now))
    }

    fn verdict_from(
        &self,
        entry: Option<&PeerEntry>,
        candidate: &Candidate,
        now: Duration,
    ) -> MemoryVerdict {
        let Some(entry) = entry else {
            return self.network_verdict(candidate, now);
        };
        // On a network that often loses packets, a single silence is not significant.
        let is_doubtful = entry.reach.as_ref().is_some_and(DatedOutcome::is_in_doubt);
        let without_doubt = (is_doubtful && self.loss(now).is_some())
            .then(|| PeerEntry { reach: None, ..entry.clone() });
        let entry = without_doubt.as_ref().unwrap_or(entry);
        let verdict = match candidate.security {
            Security::None => entry.verdict(now, &self.config),
            Security::Tls | Security::Dtls => {
                let secured = entry.secured(candidate, &self.trust);
                entry.verdict_secured(secured, now, &self.config)
            }
        };
        match verdict {
            // A peer that answers is reachable, however many others are silent.
            MemoryVerdict::Unknown if !entry.answers(now, &self.config) => {
                self.network_verdict(candidate, now)
            }
            verdict => verdict,
        }
    }

    /// Returns the addresses of the host that were reached recently, over any transport.
    pub(crate) fn worked(&self, now: Duration) -> impl Iterator<Item = IpAddr> + Clone + '_ {
        let is_good = move |entry: &PeerEntry| {
            matches!(entry.verdict(now, &self.config), MemoryVerdict::Good { .. })
        };
        self.peers
            .iter()
            .filter(move |(_, entry)| is_good(entry))
            .map(|((_, _, address), _)| address.ip())
    }

    /// Returns the trust that the view is for.
    pub fn trust(&self) -> &TrustContext {
        &self.trust
    }

    /// Returns the round-trip times of earlier handshakes with this candidate. They outlive the
    /// verdict, because distances change more slowly than firewalls.
    pub fn round_trip(&self, candidate: &Candidate, now: Duration) -> Option<RoundTrip> {
        round_trip_from(self.peer(candidate), now)
    }

    /// Returns when a ClientHello of two packets is due again for this candidate, if one did not get through recently,
    /// over TCP whether with MPTCP or without.
    pub fn short_hello_until(&self, candidate: &Candidate, now: Duration) -> Option<Duration> {
        if self.long_hellos == 0 || !candidate.has_client_hello() {
            return None;
        }
        let address = without_flow_label(candidate.address);
        let until = |transport: Transport| {
            let entry = self.peers.get(&(transport, candidate.security, address))?;
            match entry.long_hello?.verdict(now, &self.config) {
                MemoryVerdict::Bad { until, .. } => Some(until),
                _ => None,
            }
        };
        let transports: &[Transport] = match candidate.transport {
            Transport::Tcp | Transport::Mptcp => &[Transport::Tcp, Transport::Mptcp],
            _ => &[candidate.transport],
        };
        transports.iter().copied().filter_map(until).max()
    }

    /// Returns the loss of this network, if it is lossy.
    pub fn loss(&self, now: Duration) -> Option<HandshakeLoss> {
        let of_paths = self.paths.values().map(|path| path.loss(now, &self.config));
        Some(of_paths.fold(HandshakeLoss::default(), HandshakeLoss::and))
            .filter(|loss| loss.is_lossy())
    }

    /// Returns the longest of the latest round-trip times to any hosts on this network, if enough
    /// hosts are known.
    pub fn longest_round_trip(&self, now: Duration) -> Option<Duration> {
        let credible = self.paths.values().filter(|path| is_credible(path.at, now));
        PathDistances::longest(credible.map(|path| &path.distances))
    }

    /// Returns whether the view has no evidence.
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty() && self.paths.is_empty()
    }

    fn peer(&self, candidate: &Candidate) -> Option<&PeerEntry> {
        let address = without_flow_label(candidate.address);
        self.peers.get(&(candidate.transport, candidate.security, address))
    }

    fn network_verdict(&self, candidate: &Candidate, now: Duration) -> MemoryVerdict {
        let address = candidate.address;
        let path =
            (candidate.transport, AddressFamily::from_ip(address.ip()), path_port(candidate));
        match self.paths.get(&path).and_then(|entry| entry.swallowed(now, &self.config)) {
            Some(silent_hosts) => MemoryVerdict::NetworkBad {
                silent_hosts,
                probe_one_in: self.config.probe_one_in.max(1),
            },
            None => MemoryVerdict::Unknown,
        }
    }
}

fn round_trip_from(entry: Option<&PeerEntry>, now: Duration) -> Option<RoundTrip> {
    entry.filter(|entry| is_credible(entry.at, now))?.round_trip
}

/// The serialised form: lists instead of maps, since JSON has only strings for keys.
#[derive(Clone, Serialize, Deserialize)]
struct MemoryViewRows {
    config: MemoryConfig,
    trust: TrustContext,
    peers: Vec<((Transport, Security, SocketAddr), PeerEntry)>,
    paths: Vec<((Transport, AddressFamily, u16), PathEntry)>,
}

fn count_long_hellos<'a>(peers: impl IntoIterator<Item = &'a PeerEntry>) -> usize {
    peers.into_iter().filter(|peer| peer.long_hello.is_some()).count()
}

impl From<MemoryViewRows> for MemoryView {
    fn from(rows: MemoryViewRows) -> Self {
        let peers: BTreeMap<_, PeerEntry> = rows.peers.into_iter().collect();
        Self {
            config: rows.config,
            trust: rows.trust,
            long_hellos: count_long_hellos(peers.values()),
            peers,
            paths: rows.paths.into_iter().collect(),
        }
    }
}

impl From<MemoryView> for MemoryViewRows {
    fn from(view: MemoryView) -> Self {
        Self {
            config: view.config,
            trust: view.trust,
            peers: view.peers.into_iter().collect(),
            paths: view.paths.into_iter().collect(),
        }
    }
}
