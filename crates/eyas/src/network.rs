//! Identifies the current network and watches for changes.

use std::collections::BTreeMap;
#[cfg(feature = "quic")]
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eyas_host::addresses::{OwnAddress, usable_addresses};
use eyas_host::interfaces;
use eyas_host::routes::HostRoute;
use eyas_host::watcher::NetworkWatcher;
use eyas_race::candidate::Transport;
use eyas_race::evidence::NetworkId;
use eyas_race::io::{NetworkView, SourceAddress, UnavailableTransport};
use tokio::sync::{Notify, watch};

use crate::Resolver;
use crate::abort_on_drop::AbortOnDrop;
use crate::built_in;
use crate::kernel_tcp;
use crate::memory_store::InstallationSecret;

mod advertisements;
mod identity;
mod pref64;

use advertisements::{AdvertisedPrefix, HeldPrefixes, RouterAdvertisements};
use identity::NetworkIdentity;
pub(crate) use pref64::prefixes as nat64_prefixes;

/// How long a snapshot is valid if the kernel does not report changes.
const RECHECK_AFTER: Duration = Duration::from_secs(2);
/// Changes come in bursts (link, then addresses, then routes); the network is read when they pause.
const SETTLE_TIME: Duration = Duration::from_millis(100);
/// The maximum number of peers whose source address is cached.
#[cfg(feature = "quic")]
const MAX_CACHED_SOURCES: usize = 256;

/// The current network, for all races of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct CurrentNetwork {
    shared: Arc<SharedNetwork>,
}

#[derive(Debug)]
struct SharedNetwork {
    resolver: Resolver,
    /// The one that the network provides, for questions about the network itself.
    own_resolver: Resolver,
    secret: InstallationSecret,
    state: Mutex<NetworkState>,
    /// Tells the task that watches for changes that it may have to look again at another time.
    rescheduled: Arc<Notify>,
    changes: watch::Sender<Option<Arc<NetworkView>>>,
}

#[derive(Debug, Default)]
struct NetworkState {
    current: Option<NetworkSnapshot>,
    /// A snapshot taken without waiting while there was none, until a complete one is taken.
    preliminary: Option<(NetworkIdentity, NetworkView)>,
    /// The task that watches for changes; it ends with the endpoint.
    watching: Option<AbortOnDrop>,
    /// The NAT64 prefixes that routers have advertised.
    advertised: HeldPrefixes,
    /// When to look for NAT64 prefixes again, if this network needs them.
    look_again: Option<Instant>,
    /// The kernel's source addresses since its last change notification.
    sources: BTreeMap<SocketAddr, IpAddr>,
}

#[derive(Clone, Debug)]
struct NetworkSnapshot {
    identity: NetworkIdentity,
    view: Arc<NetworkView>,
    taken_at: Instant,
}

impl CurrentNetwork {
    /// Creates the network; its identity is a hash with this secret.
    pub(crate) fn new(resolver: Resolver, secret: InstallationSecret) -> Self {
        let changes = watch::Sender::new(None);
        let own_resolver = resolver.of_network();
        let (state, rescheduled) = (Mutex::default(), Arc::default());
        let shared = SharedNetwork { resolver, own_resolver, secret, state, rescheduled, changes };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the current network.
    pub(crate) async fn view(&self) -> Arc<NetworkView> {
        if let Some(view) = self.cached() {
            return view;
        }
        self.refresh().await
    }

    /// Returns the network as far as it is known without queries: NAT64 prefixes may be missing.
    /// Must be called inside a runtime.
    pub(crate) fn view_without_waiting(&self) -> Arc<NetworkView> {
        let mut state = self.lock();
        if let Some(snapshot) = state.current.as_ref() {
            return Arc::clone(&snapshot.view);
        }
        // Start watching first, so that later changes are noticed.
        let is_watched = self.is_watched(&mut state);
        let (identity, view) = read(&self.shared.secret);
        state.preliminary = is_watched.then(|| (identity, view.clone()));
        Arc::new(view)
    }

    /// Returns a function that returns the identity of the current network, until the endpoint ends. There is none while
    /// two networks could have it: without the gateway's hardware address.
    #[cfg(feature = "encrypted-dns")]
    pub(crate) fn identities(&self) -> impl Fn() -> Option<NetworkId> + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || {
            let identity = NetworkIdentity::read(&shared.upgrade()?.secret);
            (!identity.is_provisional()).then(|| identity.id().clone())
        }
    }

    /// Returns a receiver of every change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<Option<Arc<NetworkView>>> {
        self.shared.changes.subscribe()
    }

    /// Returns the identity under which to remember what was observed on a network: the gateway's
    /// hardware address may have become known only since, because of the packets that were sent.
    /// Also returns the readable name, if it is the network that the host is attached to.
    pub(crate) fn final_id(&self, id: &NetworkId) -> (NetworkId, Option<String>) {
        let mut state = self.lock();
        let Some(snapshot) = state.current.as_mut() else { return (id.clone(), None) };
        if snapshot.identity.is_provisional() && snapshot.identity.id() == id {
            let now = NetworkIdentity::read(&self.shared.secret);
            if now.is_same_network(&snapshot.identity) {
                snapshot.identity = now;
                let view =
                    NetworkView { id: snapshot.identity.id().clone(), ..(*snapshot.view).clone() };
                snapshot.view = Arc::new(view);
            }
        }
        let identity = &snapshot.identity;
        match identity.provisional_id() == id || identity.id() == id {
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
        let source = eyas_host::addresses::source_address_for(peer)?;
        let mut state = self.lock();
        if state.watching.as_ref().is_some_and(|watching| !watching.is_finished()) {
            if state.sources.len() >= MAX_CACHED_SOURCES {
                state.sources.clear();
            }
            state.sources.insert(peer, source);
        }
        Ok(source)
    }

    fn cached(&self) -> Option<Arc<NetworkView>> {
        let mut state = self.lock();
        let is_watched = self.is_watched(&mut state);
        let snapshot = state.current.as_ref()?;
        (is_watched || snapshot.taken_at.elapsed() < RECHECK_AFTER)
            .then(|| Arc::clone(&snapshot.view))
    }

    /// Returns whether changes are detected; starts detection if this has not been tried before.
    fn is_watched(&self, state: &mut NetworkState) -> bool {
        match &state.watching {
            Some(watching) => !watching.is_finished(),
            None => {
                state.watching = self.start_watching();
                state.watching.is_some()
            }
        }
    }

    async fn refresh(&self) -> Arc<NetworkView> {
        let preliminary = self.lock().preliminary.take();
        let (identity, mut view) = preliminary.unwrap_or_else(|| read(&self.shared.secret));
        let (pref64, look_again) = self.prefixes(&view, identity.routes()).await;
        view.pref64 = pref64;
        let mut state = self.lock();
        state.look_again = look_again;
        self.shared.rescheduled.notify_one();
        state.sources.clear();
        let before = state.current.take();
        // A network that differs only in an unknown hardware address keeps its identity.
        let keeps_id = before.as_ref().is_some_and(|snapshot| {
            !snapshot.identity.is_provisional() && snapshot.identity.is_same_network(&identity)
        });
        if let (Some(snapshot), true) = (&before, keeps_id) {
            view.id = snapshot.view.id.clone();
        }
        let has_changed = before.as_ref().is_some_and(|snapshot| {
            !snapshot.identity.is_same_network(&identity) || has_changed(&snapshot.view, &view)
        });
        let identity = match before {
            Some(snapshot) if keeps_id => snapshot.identity,
            _ => identity,
        };
        let view = Arc::new(view);
        state.current =
            Some(NetworkSnapshot { identity, view: Arc::clone(&view), taken_at: Instant::now() });
        drop(state);
        if has_changed {
            self.shared.resolver.clear_cache();
            self.shared.own_resolver.clear_cache();
            self.shared.changes.send_replace(Some(Arc::clone(&view)));
        }
        view
    }

    /// Returns the NAT64 prefixes of this network, if it needs any, and when to look again. What routers advertise
    /// takes precedence over what DNS says (RFC 8781 §5.1).
    async fn prefixes(
        &self,
        view: &NetworkView,
        routes: &[HostRoute],
    ) -> (Vec<pref64::Ipv6Prefix>, Option<Instant>) {
        if !pref64::is_needed(view) {
            return (Vec::new(), None);
        }
        let (advertised, until) =
            self.lock().advertised.prefixes(Instant::now(), routes, interfaces::name);
        if !advertised.is_empty() {
            return (advertised, until);
        }
        let SharedNetwork { resolver, own_resolver, .. } = &*self.shared;
        let (found, after) = pref64::discover(own_resolver, resolver).await;
        (found, Some(Instant::now() + after))
    }

    fn start_watching(&self) -> Option<AbortOnDrop> {
        let watcher = match NetworkWatcher::new() {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::debug!(%error, "changes of the network will go unnoticed");
                return None;
            }
        };
        let advertisements = RouterAdvertisements::new()
            .inspect_err(|error| tracing::debug!(%error, "advertised prefixes will go unnoticed"))
            .ok();
        let rescheduled = Arc::clone(&self.shared.rescheduled);
        let shared = Arc::downgrade(&self.shared);
        Some(AbortOnDrop::spawn(async move {
            while let Some(network) = shared.upgrade().map(|shared| Self { shared }) {
                let look_again = network.lock().look_again;
                drop(network);
                let is_other_network = tokio::select! {
                    changed = watcher.changed() => match changed {
                        Ok(()) => true,
                        Err(_) => return,
                    },
                    advertised = advertised(advertisements.as_ref()) => {
                        let Some(shared) = shared.upgrade() else { return };
                        if !(Self { shared }).set_advertised(advertised) {
                            continue;
                        }
                        false
                    }
                    () = rescheduled.notified() => continue,
                    () = sleep_until(look_again) => false,
                };
                let Some(network) = shared.upgrade().map(|shared| Self { shared }) else { return };
                if is_other_network {
                    let mut state = network.lock();
                    state.sources.clear();
                    state.preliminary = None;
                }
                drop(network);
                if is_other_network {
                    tokio::time::sleep(SETTLE_TIME).await;
                    watcher.drain();
                }
                let Some(shared) = shared.upgrade() else { return };
                Self { shared }.refresh().await;
            }
        }))
    }

    /// Takes advertised prefixes over; returns whether that changes anything.
    fn set_advertised(&self, advertised: Vec<AdvertisedPrefix>) -> bool {
        let mut state = self.lock();
        let now = Instant::now();
        advertised.into_iter().fold(false, |changes, new| state.advertised.add(now, new) | changes)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, NetworkState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for advertised prefixes.
async fn advertised(advertisements: Option<&RouterAdvertisements>) -> Vec<AdvertisedPrefix> {
    match advertisements {
        Some(advertisements) => match advertisements.next().await {
            Ok(advertised) => advertised,
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// Waits until then, if ever.
async fn sleep_until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

/// Returns whether races must be restarted. Changes of interfaces without a route out (a
/// container's, a link-local address) do not matter.
fn has_changed(before: &NetworkView, now: &NetworkView) -> bool {
    let routed_addresses = |view: &NetworkView| {
        let routed = view.sources.iter().filter(|source| source.routed);
        let mut addresses: Vec<IpAddr> = routed
            .map(|source| source.address)
            .filter(|address| !is_link_local(*address))
            .collect();
        addresses.sort_unstable();
        addresses
    };
    before.pref64 != now.pref64 || routed_addresses(before) != routed_addresses(now)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Reads the current state from the kernel, without NAT64 prefixes.
fn read(secret: &InstallationSecret) -> (NetworkIdentity, NetworkView) {
    let identity = NetworkIdentity::read(secret);
    let own = usable_addresses(identity.routes());
    let (id, sources) = (identity.id().clone(), own.into_iter().map(source_address).collect());
    (identity, NetworkView { id, sources, pref64: Vec::new(), lacking: lacking() })
}

/// Returns an address of this host as races know it.
fn source_address(own: OwnAddress) -> SourceAddress {
    let OwnAddress { address, prefix_len, deprecated, routed } = own;
    SourceAddress { address, prefix_len, deprecated, routed }
}

/// Returns the transports that this build, this machine or this user cannot use.
fn lacking() -> Vec<UnavailableTransport> {
    let unavailable = |transport| {
        let missing = built_in::missing(transport).map(str::to_owned);
        let why = missing.or_else(|| refused(transport))?;
        Some(UnavailableTransport { transport, why })
    };
    Transport::ALL.into_iter().filter_map(unavailable).collect()
}

/// Returns why this machine does not allow the transport, if so.
fn refused(transport: Transport) -> Option<String> {
    match transport {
        Transport::Mptcp => kernel_tcp::MPTCP_ABSENT.map(str::to_owned),
        #[cfg(feature = "sctp")]
        Transport::Sctp => {
            eyas_sctp_tokio::direct_access().err().map(|missing| missing.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
