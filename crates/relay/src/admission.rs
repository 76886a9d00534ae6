//! The limits on clients, in total and by address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use eyas::sockets::subscriber;

use crate::Limits;

/// Counts clients, in total and by address. The table has at most one entry for each connection, so the
/// limit on connections bounds it, too.
#[derive(Debug)]
pub(crate) struct Admission {
    connections: usize,
    per_client: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// The permit for one connection, released when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    client: IpAddr,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            connections: limits.connections,
            per_client: limits.connections_per_client,
            open: Mutex::default(),
        })
    }

    /// Returns the permit for one more connection.
    ///
    /// # Errors
    /// Returns the reason, for the client, if a limit is reached.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr) -> Result<Permit, String> {
        let client = subscriber(client);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= self.connections {
            return Err(format!("the proxy has {} connections, which is the limit", open.total));
        }
        let of_client = open.by_client.get(&client).copied().unwrap_or_default();
        if of_client >= self.per_client && !client.is_loopback() {
            return Err(format!("you have {of_client} connections, which is the limit"));
        }
        open.by_client.insert(client, of_client + 1);
        open.total += 1;
        Ok(Permit { admission: Arc::clone(self), client })
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        if let Some(of_client) = open.by_client.get_mut(&self.client) {
            *of_client -= 1;
            if *of_client == 0 {
                open.by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(connections: usize, connections_per_client: usize) -> Arc<Admission> {
        Admission::new(&Limits { connections, connections_per_client, ..Limits::default() })
    }

    #[test]
    fn a_dropped_permit_makes_room() {
        let admission = admission(1, 1);
        let client = IpAddr::from([192, 0, 2, 1]);
        let first = admission.admit(client);
        assert!(first.is_ok() && admission.admit(client).is_err());
        drop(first);
        assert_eq!(admission.open(), 0);
        assert!(admission.admit(client).is_ok());
    }

    #[test]
    fn one_client_leaves_room_for_others_unless_it_is_this_machine() {
        let admission = admission(10, 2);
        let in_network = |host| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, host]);
        let remote: Vec<_> =
            (1..=5).filter_map(|host| admission.admit(in_network(host)).ok()).collect();
        assert_eq!(remote.len(), 2, "one /64 is one client");
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let local: Vec<_> = (0..20).filter_map(|_| admission.admit(loopback).ok()).collect();
        assert_eq!(local.len(), 8);
    }
}
