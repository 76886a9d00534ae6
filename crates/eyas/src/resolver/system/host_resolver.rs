//! The host's own resolver: getaddrinfo(3), which asks whatever this host is configured with.

use std::net::{IpAddr, SocketAddr};

use dns_lookup::{AddrInfoHints, LookupError, LookupErrorKind};
use eyas_race::candidate::AddressFamily;
use eyas_race::dns::DnsFailure;
use socket2::{Domain, Type};
use tokio::sync::{Semaphore, oneshot};

/// The maximum number of lookups at once in this process. Each blocks a thread for as long as the
/// host's sources take; further ones wait.
const MAX_LOOKUPS: usize = 16;

static LOOKUPS: Semaphore = Semaphore::const_new(MAX_LOOKUPS);

/// What a lookup found.
pub(super) type LookupResult = Result<Vec<IpAddr>, DnsFailure>;

/// Looks up the addresses of a name, of one family or of both in one call. If the future is dropped,
/// the call goes on until it is over, in its place among those at once.
pub(super) async fn look_up(name: String, family: Option<AddressFamily>) -> LookupResult {
    let place = LOOKUPS.acquire().await.map_err(|_| DnsFailure::Unreachable)?;
    let (sender, receiver) = oneshot::channel();
    // Not a thread of the runtime, whose end would wait for the call.
    let thread = std::thread::Builder::new().name("getaddrinfo".to_owned()).spawn(move || {
        let found = call(&name, family);
        drop(place);
        // Whoever asked may be gone.
        let _ = sender.send(found);
    });
    if let Err(error) = thread {
        tracing::warn!(%error, "no thread for getaddrinfo");
        return Err(DnsFailure::Unreachable);
    }
    receiver.await.unwrap_or(Err(DnsFailure::Unreachable))
}

fn call(name: &str, family: Option<AddressFamily>) -> LookupResult {
    /// `AF_UNSPEC`, on every platform.
    const EITHER: i32 = 0;
    let address = match family {
        None => EITHER,
        Some(AddressFamily::V4) => Domain::IPV4.into(),
        Some(AddressFamily::V6) => Domain::IPV6.into(),
    };
    // One entry for each address, instead of one for each type of socket.
    let hints =
        AddrInfoHints { address, socktype: Type::STREAM.into(), ..AddrInfoHints::default() };
    let found = dns_lookup::getaddrinfo(Some(name), None, Some(hints)).map_err(|error| {
        tracing::debug!(name, error = ?error.kind(), "getaddrinfo");
        classify(&error)
    })?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for found in found.flatten() {
        let address = found.sockaddr.ip().to_canonical();
        // A zone has no place in a DNS record, and without it the address leads nowhere.
        let needs_zone = matches!(found.sockaddr, SocketAddr::V6(v6) if v6.scope_id() != 0);
        if !needs_zone && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(DnsFailure::NoData) } else { Ok(addresses) }
}

fn classify(error: &LookupError) -> DnsFailure {
    /// A host that has addresses of the other family only.
    const EAI_ADDRFAMILY: i32 = -9;
    match error.kind() {
        LookupErrorKind::NoName => DnsFailure::NoSuchName,
        LookupErrorKind::NoData => DnsFailure::NoData,
        LookupErrorKind::Again | LookupErrorKind::Fail => DnsFailure::ServerFailure,
        _ if error.error_num() == EAI_ADDRFAMILY => DnsFailure::NoData,
        _ => DnsFailure::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal is answered without any source, so it says nothing of this host.
    #[tokio::test]
    async fn addresses_are_of_the_wanted_family() {
        let look_up = |name: &str, family| look_up(name.to_owned(), family);
        let v4: IpAddr = "192.0.2.1".parse().unwrap();
        let v6: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!(look_up("192.0.2.1", None).await, Ok(vec![v4]));
        assert_eq!(look_up("2001:db8::1", None).await, Ok(vec![v6]));
        assert_eq!(look_up("192.0.2.1", Some(AddressFamily::V4)).await, Ok(vec![v4]));
        assert!(look_up("192.0.2.1", Some(AddressFamily::V6)).await.is_err());
        assert_eq!(look_up("a\0b", None).await, Err(DnsFailure::Unreachable));
    }

    #[tokio::test]
    async fn many_lookups_take_turns_and_dropped_ones_give_their_place_back() {
        for _ in 0..2 * MAX_LOOKUPS {
            let lookup = look_up("192.0.2.1".to_owned(), None);
            tokio::select! {
                biased;
                _ = lookup => {}
                () = tokio::task::yield_now() => {}
            }
        }
        let all = (0..4 * MAX_LOOKUPS).map(|_| look_up("192.0.2.1".to_owned(), None));
        let all = futures_util::future::join_all(all).await;
        assert!(all.iter().all(Result::is_ok));
    }
}
