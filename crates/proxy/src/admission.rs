//! The limits on clients: in total, by address and by user.
//!
//! A client is pending until it has authenticated and named its destination. While all places are taken, a newcomer
//! gets that of a pending client: the oldest of the address with the most of them. So whoever connects without
//! having anything to say keeps nobody out.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use eyas::sockets::subscriber;
use thiserror::Error;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::ProxyLimits;

/// Counts clients, in total, by address and by user. The tables have at most one entry for each connection, so the
/// limit on connections bounds them, too.
#[derive(Debug)]
pub(crate) struct ClientAdmission {
    connections: usize,
    per_client: usize,
    per_user: usize,
    open: Mutex<OpenClients>,
    /// Notified when a client that was evicted has been disconnected.
    closed: Notify,
}

/// The limit on clients that have given their place to others, and are not disconnected yet: they still have a
/// descriptor.
const MAX_EVICTED: usize = 8;

#[derive(Debug, Default)]
struct OpenClients {
    total: usize,
    by_client: HashMap<IpAddr, ClientPlaces>,
    by_user: HashMap<String, usize>,
    /// The pending clients, oldest first.
    pending: BTreeMap<u64, PendingClient>,
    /// Clients that were evicted, and are not disconnected yet.
    evicted: usize,
    /// The number of the next client.
    next: u64,
}

/// The places of one address.
#[derive(Clone, Copy, Debug, Default)]
struct ClientPlaces {
    all: usize,
    pending: usize,
}

#[derive(Debug)]
struct PendingClient {
    client: IpAddr,
    evicted: CancellationToken,
}

/// The permit for one connection, released when dropped.
#[derive(Debug)]
pub(crate) struct ClientPermit {
    admission: Arc<ClientAdmission>,
    client: IpAddr,
    place: PlaceState,
    evicted: CancellationToken,
}

/// Why a client is turned away, as the client is told.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum AdmissionDenial {
    /// There are that many connections from its address.
    #[error("you have {0} connections, which is the limit")]
    ClientLimit(usize),
    /// There are that many in total, and none of them is pending.
    #[error("the proxy has {0} connections, which is the limit")]
    ProxyLimit(usize),
    #[error("the proxy needed your place for another client")]
    Evicted,
    #[error("{user} has {open} connections, which is the limit")]
    UserLimit { user: String, open: usize },
}

#[derive(Debug)]
enum PlaceState {
    /// That of a pending client with this number, unless it was evicted.
    Pending(u64),
    /// That of a client which has named its destination, as this user if it had to be one.
    Settled(Option<String>),
}

impl ClientAdmission {
    pub(crate) fn new(limits: &ProxyLimits) -> Arc<Self> {
        Arc::new(Self {
            connections: limits.connections,
            per_client: limits.connections_per_client,
            per_user: limits.connections_per_user,
            open: Mutex::default(),
            closed: Notify::new(),
        })
    }

    /// Returns the permit for one more connection like [`admit`](Self::admit), but waits while there are too many that
    /// were evicted and are not disconnected yet.
    pub(crate) async fn admit_in_turn(
        self: &Arc<Self>,
        client: IpAddr,
    ) -> Result<ClientPermit, AdmissionDenial> {
        loop {
            let closed = self.closed.notified();
            if !self.has_many_evicted() {
                match self.admit(client) {
                    // Somebody else who accepts has evicted one meanwhile.
                    Err(AdmissionDenial::ProxyLimit(_)) if self.has_many_evicted() => {}
                    admitted => return admitted,
                }
            }
            closed.await;
        }
    }

    fn has_many_evicted(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).evicted >= MAX_EVICTED
    }

    /// Returns the permit for one more connection, which is pending.
    ///
    /// # Errors
    /// If a limit is reached.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr) -> Result<ClientPermit, AdmissionDenial> {
        self.admit_as(client, None)
    }

    /// Returns the permit of a pending client, who may be this user.
    fn admit_as(
        self: &Arc<Self>,
        client: IpAddr,
        user: Option<&str>,
    ) -> Result<ClientPermit, AdmissionDenial> {
        let client = subscriber(client);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody makes room for a client that is refused.
        if let Some(user) = user {
            open.check_user(user, self.per_user)?;
        }
        let of_client = open.by_client.get(&client).copied().unwrap_or_default().all;
        if of_client >= self.per_client && !client.is_loopback() {
            return Err(AdmissionDenial::ClientLimit(of_client));
        }
        if open.total >= self.connections && !open.evict() {
            return Err(AdmissionDenial::ProxyLimit(open.total));
        }
        let (number, evicted) = (open.next, CancellationToken::new());
        open.next += 1;
        open.total += 1;
        let places = open.by_client.entry(client).or_default();
        places.all += 1;
        places.pending += 1;
        open.pending.insert(number, PendingClient { client, evicted: evicted.clone() });
        Ok(ClientPermit {
            admission: Arc::clone(self),
            client,
            place: PlaceState::Pending(number),
            evicted,
        })
    }

    /// Returns the permit for a client that has named its destination already, as this user if it had to be one.
    ///
    /// # Errors
    /// If a limit is reached.
    pub(crate) fn admit_settled(
        self: &Arc<Self>,
        client: IpAddr,
        user: Option<&str>,
    ) -> Result<ClientPermit, AdmissionDenial> {
        let mut permit = self.admit_as(client, user)?;
        permit.settle(user)?;
        Ok(permit)
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

impl OpenClients {
    /// Frees the place of a pending client, if there is one.
    fn evict(&mut self) -> bool {
        if self.evicted >= MAX_EVICTED {
            return false;
        }
        let most = self.by_client.values().map(|places| places.pending).max().unwrap_or_default();
        let has_most = |client| self.by_client.get(client).is_some_and(|it| it.pending == most);
        let oldest = self.pending.iter().find(|(_, one)| has_most(&one.client));
        let Some(number) = oldest.map(|(number, _)| *number) else { return false };
        if let Some(PendingClient { client, evicted }) = self.pending.remove(&number) {
            self.release_pending(client);
            self.evicted += 1;
            evicted.cancel();
        }
        true
    }

    fn check_user(&self, user: &str, limit: usize) -> Result<(), AdmissionDenial> {
        let of_user = self.by_user.get(user).copied().unwrap_or_default();
        match of_user >= limit {
            true => Err(AdmissionDenial::UserLimit { user: user.to_owned(), open: of_user }),
            false => Ok(()),
        }
    }

    /// Releases the place of a pending client.
    fn release_pending(&mut self, client: IpAddr) {
        if let Some(places) = self.by_client.get_mut(&client) {
            places.pending -= 1;
        }
        self.release(client);
    }

    fn release(&mut self, client: IpAddr) {
        self.total -= 1;
        if let Some(places) = self.by_client.get_mut(&client) {
            places.all -= 1;
            if places.all == 0 {
                self.by_client.remove(&client);
            }
        }
    }
}

impl ClientPermit {
    /// Returns what is cancelled when another client gets the place of this one.
    pub(crate) fn evicted(&self) -> CancellationToken {
        self.evicted.clone()
    }

    /// Keeps the place for as long as the client needs it: it has named its destination, as this user if it had to
    /// be one.
    ///
    /// # Errors
    /// If it has been evicted, or the user has too many connections.
    pub(crate) fn settle(&mut self, user: Option<&str>) -> Result<(), AdmissionDenial> {
        let PlaceState::Pending(number) = self.place else { return Ok(()) };
        let mut open = self.admission.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.pending.remove(&number).is_none() {
            return Err(AdmissionDenial::Evicted);
        }
        if let Some(places) = open.by_client.get_mut(&self.client) {
            places.pending -= 1;
        }
        self.place = PlaceState::Settled(None);
        let Some(user) = user else { return Ok(()) };
        open.check_user(user, self.admission.per_user)?;
        *open.by_user.entry(user.to_owned()).or_default() += 1;
        self.place = PlaceState::Settled(Some(user.to_owned()));
        Ok(())
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.place {
            PlaceState::Pending(number) => match open.pending.remove(number) {
                Some(PendingClient { client, .. }) => open.release_pending(client),
                None => {
                    open.evicted -= 1;
                    self.admission.closed.notify_waiters();
                }
            },
            PlaceState::Settled(user) => {
                open.release(self.client);
                let of_user =
                    user.as_ref().and_then(|user| Some((user, open.by_user.get_mut(user)?)));
                if let Some((user, of_user)) = of_user {
                    *of_user -= 1;
                    if *of_user == 0 {
                        open.by_user.remove(user);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn admission(connections: usize, connections_per_client: usize) -> Arc<ClientAdmission> {
        ClientAdmission::new(&ProxyLimits {
            connections,
            connections_per_client,
            connections_per_user: 3,
            ..ProxyLimits::default()
        })
    }

    #[test]
    fn a_dropped_permit_makes_room() {
        let admission = admission(1, 1);
        let client = IpAddr::from([192, 0, 2, 1]);
        let first = admission.admit_settled(client, None);
        assert!(first.is_ok() && admission.admit(client).is_err());
        drop(first);
        assert_eq!(admission.open(), 0);
        assert!(admission.admit(client).is_ok());
    }

    //= hostile proxy
    //# one client with endless connections
    //= bound: `connections_per_client`
    #[test]
    fn one_client_leaves_room_for_others_unless_it_is_this_machine() {
        let admission = admission(10, 2);
        let in_network = |host| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, host]);
        let remote: Vec<_> = (1..=5)
            .filter_map(|host| admission.admit_settled(in_network(host), None).ok())
            .collect();
        assert_eq!(remote.len(), 2, "one /64 is one client");
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let local: Vec<_> =
            (0..20).filter_map(|_| admission.admit_settled(loopback, None).ok()).collect();
        assert_eq!(local.len(), 8);
    }

    #[test]
    fn clients_that_say_nothing_make_room() {
        let admission = admission(8, 4);
        let client = |host| IpAddr::from([192, 0, 2, host]);
        let kept = admission.admit_settled(client(9), None).expect("a place");
        let silent: Vec<_> = [1, 1, 1, 2, 2, 3, 3]
            .map(|host| admission.admit(client(host)).expect("a place"))
            .into();
        let mut newcomers: Vec<_> =
            (4..=6).map(|host| admission.admit(client(host)).expect("a place")).collect();
        let evicted: Vec<bool> = silent.iter().map(|one| one.evicted().is_cancelled()).collect();
        // The oldest of the one with three, and then the oldest of those with two.
        assert_eq!(evicted, [true, true, false, true, false, false, false]);
        assert!(newcomers.iter_mut().all(|one| one.settle(None).is_ok()));
        assert!(!kept.evicted().is_cancelled());
        assert_eq!(admission.open(), 8);
        drop((silent, newcomers, kept));
        assert_eq!(admission.open(), 0);
    }

    //= hostile proxy
    //# a user who takes all places
    //= bound: `connections_per_user`
    #[test]
    fn a_user_leaves_room_for_others() {
        let admission = admission(10, 10);
        let client = |host| IpAddr::from([192, 0, 2, host]);
        let of_ada: Vec<_> = (1..=5)
            .filter_map(|host| admission.admit_settled(client(host), Some("ada")).ok())
            .collect();
        assert_eq!((of_ada.len(), admission.open()), (3, 3));
        assert!(admission.admit_settled(client(1), Some("bob")).is_ok());
        drop(of_ada);
        assert!(admission.admit_settled(client(1), Some("ada")).is_ok());
    }

    #[test]
    fn nobody_makes_room_for_a_user_with_too_many_connections() {
        let admission = admission(4, 4);
        let client = |host| IpAddr::from([192, 0, 2, host]);
        let of_ada: Vec<_> = (1..=3)
            .map(|host| admission.admit_settled(client(host), Some("ada")).expect("a place"))
            .collect();
        let pending = admission.admit(client(4)).expect("a place");
        assert!(admission.admit_settled(client(5), Some("ada")).is_err());
        assert!(!pending.evicted().is_cancelled());
        drop(of_ada);
    }

    #[test]
    fn only_a_few_that_were_evicted_remain_connected() {
        let admission = admission(MAX_EVICTED + 4, MAX_EVICTED + 4);
        let client = |host| IpAddr::from([192, 0, 2, host]);
        let pending: Vec<_> =
            (0..12).map(|host| admission.admit(client(host)).expect("a place")).collect();
        let settled: Vec<_> = (100..120)
            .filter_map(|host| admission.admit_settled(client(host), None).ok())
            .collect();
        assert_eq!(settled.len(), MAX_EVICTED);
        drop(pending);
        assert!(admission.admit_settled(client(200), None).is_ok());
    }

    proptest! {
        #[test]
        fn the_counts_are_those_of_the_permits(steps in prop::collection::vec((0_u8..4, 0_u8..4, any::<prop::sample::Index>()), 0..200)) {
            let admission = admission(6, 3);
            let mut permits: Vec<ClientPermit> = Vec::new();
            for (step, host, index) in steps {
                match step {
                    0 | 1 => permits.extend(admission.admit(IpAddr::from([192, 0, 2, host]))),
                    2 if !permits.is_empty() => {
                        let _ = index.get_mut(&mut permits[..]).settle(Some("ada"));
                    }
                    3 if !permits.is_empty() => drop(permits.swap_remove(index.index(permits.len()))),
                    _ => {}
                }
                let held = permits.iter().filter(|one| !one.evicted().is_cancelled()).count();
                prop_assert_eq!(admission.open(), held);
                prop_assert!(held <= 6);
            }
            drop(permits);
            let open = admission.open.lock().expect("not poisoned");
            prop_assert_eq!(open.evicted, 0);
            prop_assert!(open.total == 0 && open.by_client.is_empty() && open.by_user.is_empty() && open.pending.is_empty());
        }
    }
}
