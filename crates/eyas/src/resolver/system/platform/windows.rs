//! Windows, whose DNS client knows which servers a name belongs to (a VPN's, its policy table's). The servers of the
//! interfaces are asked for HTTPS records alone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eyas_host::name_servers;

use super::super::resolv_conf::ResolvConf;

/// Why the host's own resolver is asked for every address, if so.
pub(in super::super) const RESOLVES_ITSELF: Option<&str> =
    Some("names of this system are resolved by its DNS client");

/// How long they count: as long as a change of the network goes unnoticed.
const VALID: Duration = Duration::from_secs(2);
const DNS_PORT: u16 = 53;
/// The maximum number of servers that are asked, as in resolv.conf(5).
const MAX_SERVERS: usize = 3;

/// The name servers of the interfaces.
#[derive(Debug)]
pub(in super::super) struct NameServers(Mutex<Option<(Instant, Arc<ResolvConf>)>>);

impl NameServers {
    pub(in super::super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Returns the name servers. As long as they are equal, it is the same `Arc`.
    pub(in super::super) fn current(&self) -> Option<Arc<ResolvConf>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, conf)) = state.as_ref()
            && read.elapsed() < VALID
        {
            return Some(Arc::clone(conf));
        }
        let mut servers = name_servers::read();
        servers.truncate(MAX_SERVERS);
        let servers = servers.into_iter().map(|ip| (ip, DNS_PORT).into()).collect();
        let now = ResolvConf { servers, ..ResolvConf::default() };
        let conf = match state.take() {
            Some((_, before)) if *before == now => before,
            _ => Arc::new(now),
        };
        *state = Some((Instant::now(), Arc::clone(&conf)));
        Some(conf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_servers_are_the_same_configuration() {
        let servers = NameServers::new();
        let (first, second) = (servers.current().unwrap(), servers.current().unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        *servers.0.lock().unwrap() = Some((Instant::now() - 2 * VALID, Arc::clone(&first)));
        assert!(Arc::ptr_eq(&first, &servers.current().unwrap()));
    }
}
