//! Identifies the current network and watches for changes.

use std::collections::BTreeMap;
#[cfg(feature = "quic")]
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eyas_race::candidate::Transport;
use eyas_race::evidence::NetworkId;
use eyas_race::io::{NetworkView, UnavailableTransport};
use tokio::sync::watch;

use crate::Resolver;
use crate::abort_on_drop::AbortOnDrop;
use crate::built_in;
use crate::memory_store::Secret;

mod identity;
mod pref64;
mod routes;
pub(crate) mod sources;
mod watcher;

use identity::Identity;
#[cfg(feature = "sctp")]
pub(crate) use watcher::Watcher;

/// How long a look at the network is good where the kernel gives no notice of changes.
const RECHECK_AFTER: Duration = Duration::from_secs(2);
/// Changes come in bursts (link, then addresses, then routes): the look is taken when they pause.
const SETTLE_TIME: Duration = Duration::from_millis(100);
/// Peers whose source address is kept.
#[cfg(feature = "quic")]
const MAX_SOURCES_KNOWN: usize = 256;

/// The network as it is now, for all races of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    resolver: Resolver,
    secret: Secret,
    state: Mutex<State>,
    changes: watch::Sender<Option<Arc<NetworkView>>>,
}

#[derive(Debug, Default)]
struct State {
    seen: Option<Seen>,
    /// What was seen without waiting while nothing was known, until it is looked at in full.
    quick: Option<(Identity, NetworkView)>,
    /// Ends with the endpoint.
    watching: Option<AbortOnDrop>,
    /// The kernel's source addresses since its last change notification.
    sources: BTreeMap<SocketAddr, IpAddr>,
}

#[derive(Clone, Debug)]
struct Seen {
    identity: Identity,
    view: Arc<NetworkView>,
    at: Instant,
}

impl Network {
    /// Networks are named under this secret.
    pub(crate) fn new(resolver: Resolver, secret: Secret) -> Self {
        let changes = watch::Sender::new(None);
        Self { shared: Arc::new(Shared { resolver, secret, state: Mutex::default(), changes }) }
    }

    /// Returns the current network.
    pub(crate) async fn view(&self) -> Arc<NetworkView> {
        if let Some(view) = self.known() {
            return view;
        }
        self.refresh().await
    }

    /// Returns the network as far as it is known without queries: NAT64 prefixes may be missing.
    /// Must be called inside a runtime.
    pub(crate) fn view_without_waiting(&self) -> Arc<NetworkView> {
        let mut state = self.lock();
        if let Some(seen) = state.seen.as_ref() {
            return Arc::clone(&seen.view);
        }
        // First, so that later changes are noticed.
        let is_watched = self.is_watched(&mut state);
        let (identity, view) = read(&self.shared.secret);
        state.quick = is_watched.then(|| (identity, view.clone()));
        Arc::new(view)
    }

    /// Gives every change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<Option<Arc<NetworkView>>> {
        self.shared.changes.subscribe()
    }

    /// Returns the identity under which to remember what was observed on a network: the gateway's
    /// hardware address may have become known only since, because of the packets that were sent.
    /// Also returns the readable name, if it is the network that the host is attached to.
    pub(crate) fn settled(&self, id: &NetworkId) -> (NetworkId, Option<String>) {
        let mut state = self.lock();
        let Some(seen) = state.seen.as_mut() else { return (id.clone(), None) };
        if seen.identity.is_provisional() && seen.identity.id() == id {
            let now = Identity::read(&self.shared.secret);
            if now.is_same_network(&seen.identity) {
                seen.identity = now;
                let view = NetworkView { id: seen.identity.id().clone(), ..(*seen.view).clone() };
                seen.view = Arc::new(view);
            }
        }
        let identity = &seen.identity;
        match identity.id_before_settling() == id || identity.id() == id {
            true => (identity.id().clone(), Some(identity.name().to_owned())),
            false => (id.clone(), None),
        }
    }

    /// Returns the source address that the kernel uses for `peer`. It is queried once for each,
    /// until something has changed.
    #[cfg(feature = "quic")]
    pub(crate) fn source_address_for(&self, peer: SocketAddr) -> io::Result<IpAddr> {
        if let Some(source) = self.lock().sources.get(&peer) {
            return Ok(*source);
        }
        let source = sources::source_address_for(peer)?;
        let mut state = self.lock();
        if state.watching.as_ref().is_some_and(|watching| !watching.is_finished()) {
            if state.sources.len() >= MAX_SOURCES_KNOWN {
                state.sources.clear();
            }
            state.sources.insert(peer, source);
        }
        Ok(source)
    }

    fn known(&self) -> Option<Arc<NetworkView>> {
        let mut state = self.lock();
        let is_watched = self.is_watched(&mut state);
        let seen = state.seen.as_ref()?;
        (is_watched || seen.at.elapsed() < RECHECK_AFTER).then(|| Arc::clone(&seen.view))
    }

    /// Returns whether changes are detected; starts detection if this has not been tried before.
    fn is_watched(&self, state: &mut State) -> bool {
        match &state.watching {
            Some(watching) => !watching.is_finished(),
            None => {
                state.watching = self.start_watching();
                state.watching.is_some()
            }
        }
    }

    async fn refresh(&self) -> Arc<NetworkView> {
        let quick = self.lock().quick.take();
        let (identity, mut view) = quick.unwrap_or_else(|| read(&self.shared.secret));
        view.pref64 = pref64::discover(&view, &self.shared.resolver).await;
        let mut state = self.lock();
        state.sources.clear();
        let before = state.seen.take();
        // What is told apart only by the gateway's hardware address keeps the name it had.
        let keeps_name = before.as_ref().is_some_and(|seen| {
            !seen.identity.is_provisional() && seen.identity.is_same_network(&identity)
        });
        if let (Some(seen), true) = (&before, keeps_name) {
            view.id = seen.view.id.clone();
        }
        let is_moved = before.as_ref().is_some_and(|seen| {
            !seen.identity.is_same_network(&identity) || is_moved(&seen.view, &view)
        });
        let identity = match before {
            Some(seen) if keeps_name => seen.identity,
            _ => identity,
        };
        let view = Arc::new(view);
        state.seen = Some(Seen { identity, view: Arc::clone(&view), at: Instant::now() });
        drop(state);
        if is_moved {
            self.shared.resolver.clear_cache();
            self.shared.changes.send_replace(Some(Arc::clone(&view)));
        }
        view
    }

    fn start_watching(&self) -> Option<AbortOnDrop> {
        let watcher = match watcher::Watcher::new() {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::debug!(%error, "no notice of network changes");
                return None;
            }
        };
        let shared = Arc::downgrade(&self.shared);
        Some(AbortOnDrop::spawn(async move {
            while watcher.changed().await.is_ok() {
                if let Some(shared) = shared.upgrade() {
                    let network = Self { shared };
                    let mut state = network.lock();
                    state.sources.clear();
                    state.quick = None;
                }
                tokio::time::sleep(SETTLE_TIME).await;
                watcher.drain();
                let Some(shared) = shared.upgrade() else { return };
                Self { shared }.refresh().await;
            }
        }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether races must be restarted. Changes of single links (a container's interface, a
/// link-local address) do not matter.
fn is_moved(before: &NetworkView, now: &NetworkView) -> bool {
    let ways_out = |view: &NetworkView| {
        let routed = view.sources.iter().filter(|source| source.routed);
        let mut ways: Vec<IpAddr> = routed
            .map(|source| source.address)
            .filter(|address| !is_link_local(*address))
            .collect();
        ways.sort_unstable();
        ways
    };
    before.pref64 != now.pref64 || ways_out(before) != ways_out(now)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Returns the addresses of this host that packets may be sent from, those with global reach first.
#[cfg(feature = "sctp")]
pub(crate) fn own_addresses() -> Vec<IpAddr> {
    let sources = sources::sources(&routes::read());
    sources.iter().filter(|source| !source.deprecated).map(|source| source.address).collect()
}

/// Reads the current state from the kernel, without NAT64 prefixes.
fn read(secret: &Secret) -> (Identity, NetworkView) {
    let identity = Identity::read(secret);
    let (id, sources) = (identity.id().clone(), sources::sources(identity.routes()));
    (identity, NetworkView { id, sources, pref64: Vec::new(), lacking: lacking() })
}

/// Returns the transports that this build, this machine or this user cannot use.
fn lacking() -> Vec<UnavailableTransport> {
    let not_here = |transport| {
        let why = built_in::missing(transport).or_else(|| refused(transport))?;
        Some(UnavailableTransport { transport, why: why.into() })
    };
    Transport::ALL.into_iter().filter_map(not_here).collect()
}

/// Returns why this machine does not allow the transport, if so.
#[cfg(feature = "sctp")]
fn refused(transport: Transport) -> Option<&'static str> {
    (transport == Transport::Sctp).then(|| crate::sctp::direct_access().err()).flatten()
}

/// Returns why this machine does not allow the transport, if so.
#[cfg(not(feature = "sctp"))]
fn refused(_: Transport) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests;
