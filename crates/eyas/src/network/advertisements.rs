//! NAT64 prefixes in router advertisements (RFC 8781), which the kernel passes on as they arrive.
//!
//! It does not keep them, so a program only learns those that arrive while it listens. Routers repeat them every few
//! minutes, and send them when a link comes up.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use eyas_host::errno;
use eyas_host::routes::HostRoute;
use eyas_host::watcher::subscribed;
use tokio::net::UdpSocket;

use super::pref64::{Ipv6Prefix, masked};

/// The group `RTNLGRP_ND_USEROPT` of `linux/rtnetlink.h`, as a bit of the mask.
const GROUP: u32 = 1 << (20 - 1);
/// `RTM_NEWNDUSEROPT` of `linux/rtnetlink.h`.
const NEW_OPTIONS: u16 = 68;
/// `NDUSEROPT_SRCADDR` of `linux/rtnetlink.h`.
const SOURCE_ADDRESS: u16 = 1;
/// The lengths of `struct nlmsghdr` and `struct nduseroptmsg`.
const HEADERS: [usize; 2] = [16, 16];
/// The option PREF64 (RFC 8781 §4) and its length, in units of eight octets.
const PREF64: [u8; 2] = [38, 2];
/// The largest message: the options of one advertisement.
const BUFFER: usize = 4096;
/// The maximum number of prefixes that are kept, whatever routers send.
const MAX_ADVERTISED: usize = 16;

/// A prefix as a router has advertised it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AdvertisedPrefix {
    prefix: Ipv6Prefix,
    /// Zero if the router withdraws it.
    lifetime: Duration,
    interface: u32,
    router: Ipv6Addr,
}

/// Receives the advertised prefixes. Only the kernel sends here: user programs need privileges to (netlink(7)).
#[derive(Debug)]
pub(super) struct RouterAdvertisements(UdpSocket);

impl RouterAdvertisements {
    pub(super) fn new() -> io::Result<Self> {
        subscribed(GROUP).map(Self)
    }

    /// Waits for advertised options, and returns the prefixes among them.
    pub(super) async fn next(&self) -> io::Result<Vec<AdvertisedPrefix>> {
        let mut message = [0; BUFFER];
        match self.0.recv(&mut message).await {
            Ok(len) => Ok(parse(message.get(..len).unwrap_or_default())),
            // Some were lost; routers repeat them.
            Err(error) if error.raw_os_error() == Some(errno::ENOBUFS) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// Reads the messages of a datagram.
fn parse(mut messages: &[u8]) -> Vec<AdvertisedPrefix> {
    let mut found = Vec::new();
    while let Some(len) = u32_at(messages, 0).and_then(|len| usize::try_from(len).ok())
        && let Some(message) = messages.get(HEADERS[0]..len)
    {
        if u16_at(messages, 4) == Some(NEW_OPTIONS) {
            found.extend(prefixes(message).unwrap_or_default());
        }
        messages = messages.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// Reads a `struct nduseroptmsg` and what follows it: options, then attributes.
fn prefixes(message: &[u8]) -> Option<Vec<AdvertisedPrefix>> {
    let options_len = usize::from(u16_at(message, 2)?);
    let interface = u32_at(message, 4)?;
    let rest = message.get(HEADERS[1]..)?;
    let (mut options, attributes) = rest.split_at_checked(options_len)?;
    let router = router(attributes.get(options_len.next_multiple_of(4) - options_len..)?)?;
    let mut found = Vec::new();
    while let [kind, units, ..] = *options {
        let (option, others) = options.split_at_checked(usize::from(units) * 8)?;
        if option.is_empty() {
            return None;
        }
        if [kind, units] == PREF64
            && let Some((prefix, lifetime)) = prefix(option)
        {
            found.push(AdvertisedPrefix { prefix, lifetime, interface, router });
        }
        options = others;
    }
    Some(found)
}

/// Returns the sender of the advertisement.
fn router(mut attributes: &[u8]) -> Option<Ipv6Addr> {
    loop {
        let (len, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        let value = attributes.get(4..len)?;
        if kind == SOURCE_ADDRESS {
            return value.first_chunk::<16>().copied().map(Ipv6Addr::from);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
}

/// Reads an option: a lifetime in units of eight seconds with a code for the length in its last three bits, and the
/// first 96 bits of the prefix (RFC 8781 §4).
fn prefix(option: &[u8]) -> Option<(Ipv6Prefix, Duration)> {
    const LENGTHS: [u8; 6] = [96, 64, 56, 48, 40, 32];
    let scaled = u16::from_be_bytes(*option.get(2..4)?.first_chunk()?);
    let len = *LENGTHS.get(usize::from(scaled & 7))?;
    let mut octets = [0; 16];
    octets[..12].copy_from_slice(option.get(4..16)?);
    let prefix = masked(octets.into(), len);
    Some(((prefix, len), Duration::from_secs((scaled & !7).into())))
}

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    octets.get(at..at + 2)?.first_chunk().copied().map(u16::from_ne_bytes)
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    octets.get(at..at + 4)?.first_chunk().copied().map(u32::from_ne_bytes)
}

/// The prefixes that were advertised and still hold.
#[derive(Debug, Default)]
pub(super) struct HeldPrefixes(VecDeque<(AdvertisedPrefix, Instant)>);

impl HeldPrefixes {
    /// Takes a prefix over; returns whether that changes which ones hold.
    pub(super) fn add(&mut self, now: Instant, new: AdvertisedPrefix) -> bool {
        let before = self.0.len();
        let is_other = |one: &AdvertisedPrefix| {
            (one.prefix, one.interface, one.router) != (new.prefix, new.interface, new.router)
        };
        self.0.retain(|(one, until)| now < *until && is_other(one));
        let is_known = self.0.len() < before;
        if new.lifetime.is_zero() {
            return is_known;
        }
        if self.0.len() >= MAX_ADVERTISED {
            self.0.pop_front();
        }
        self.0.push_back((new, now + new.lifetime));
        !is_known
    }

    /// Returns the prefixes of the routers that these routes lead to, and until when the first of them holds.
    pub(super) fn prefixes(
        &mut self,
        now: Instant,
        routes: &[HostRoute],
        interface: impl Fn(u32) -> Option<String>,
    ) -> (Vec<Ipv6Prefix>, Option<Instant>) {
        self.0.retain(|(_, until)| now < *until);
        let is_current = |one: &AdvertisedPrefix| {
            let Some(name) = interface(one.interface) else { return false };
            routes.iter().any(|route| {
                route.is_default()
                    && route.gateway == Some(one.router.into())
                    && route.interface == name
            })
        };
        let current: Vec<_> = self.0.iter().filter(|(one, _)| is_current(one)).collect();
        let until = current.iter().map(|(_, until)| *until).min();
        let mut prefixes = Vec::new();
        for (one, _) in current {
            if !prefixes.contains(&one.prefix) {
                prefixes.push(one.prefix);
            }
        }
        (prefixes, until)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

    /// A message as the kernel sends it, with this option.
    fn message(option: &[u8]) -> Vec<u8> {
        let len = u16::try_from(option.len()).unwrap();
        let head = [
            &[10, 0][..],
            &len.to_ne_bytes(),
            &7_u32.to_ne_bytes(),
            // The ICMP type and code, and padding.
            &[134, 0, 0, 0, 0, 0, 0, 0],
        ];
        let attribute =
            [&20_u16.to_ne_bytes()[..], &SOURCE_ADDRESS.to_ne_bytes(), &ROUTER.octets()];
        let body = [head.concat(), option.to_vec(), attribute.concat()].concat();
        let total = u32::try_from(HEADERS[0] + body.len()).unwrap();
        [&total.to_ne_bytes()[..], &NEW_OPTIONS.to_ne_bytes(), &[0; 10], &body].concat()
    }

    fn option(lifetime_and_code: u16, prefix: &str) -> Vec<u8> {
        let prefix: Ipv6Addr = prefix.parse().unwrap();
        [&PREF64[..], &lifetime_and_code.to_be_bytes(), &prefix.octets()[..12]].concat()
    }

    fn advertised(prefix: &str, len: u8, seconds: u64) -> AdvertisedPrefix {
        let lifetime = Duration::from_secs(seconds);
        AdvertisedPrefix {
            prefix: (prefix.parse().unwrap(), len),
            lifetime,
            interface: 7,
            router: ROUTER,
        }
    }

    #[test]
    fn each_length_has_its_code() {
        let lengths = [("64:ff9b::", 96), ("2001:db8::", 64), ("2001:db8::", 56)];
        let more = [("2001:db8::", 48), ("2001:db8::", 40), ("2001:db8::", 32)];
        for (code, (prefix, len)) in (0..).zip(lengths.into_iter().chain(more)) {
            let found = parse(&message(&option(1800 | code, prefix)));
            assert_eq!(found, [advertised(prefix, len, 1800)]);
        }
        for code in [6, 7] {
            assert_eq!(parse(&message(&option(1800 | code, "64:ff9b::"))), [], "not assigned");
        }
        // Bits after the prefix are ignored (RFC 8781 §4 leaves them to the sender).
        let found = parse(&message(&option(8 | 5, "2001:db8:ffff::")));
        assert_eq!(found, [advertised("2001:db8::", 32, 8)]);
    }

    #[test]
    fn other_messages_are_ignored() {
        let whole = message(&option(1800, "64:ff9b::"));
        for len in 0..whole.len() {
            assert_eq!(parse(&whole[..len]), [], "{len} octets");
        }
        let two = [whole.clone(), whole.clone()].concat();
        assert_eq!(parse(&two).len(), 2);
        let name_server = [&[25, 3][..], &[0; 22]].concat();
        assert_eq!(parse(&message(&name_server)), []);
        assert_eq!(parse(&message(&[38, 0, 0, 0, 0, 0, 0, 0])), [], "no length");
        let mut other = whole;
        other[4] = 16;
        assert_eq!(parse(&other), []);
    }

    #[test]
    fn a_prefix_holds_for_its_lifetime_and_behind_its_router() {
        let (mut held, now) = (HeldPrefixes::default(), Instant::now());
        let new = advertised("64:ff9b::", 96, 100);
        assert!(held.add(now, new));
        assert!(!held.add(now, new), "it is repeated");
        let route = |gateway: &str, interface: &str| HostRoute {
            destination: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            prefix_len: 0,
            gateway: Some(gateway.parse().unwrap()),
            metric: 0,
            interface: interface.into(),
        };
        let name = |index| (index == 7).then(|| "wlan0".to_owned());
        let later = now + Duration::from_secs(99);
        let (prefixes, until) = held.prefixes(later, &[route("fe80::1", "wlan0")], name);
        assert_eq!((prefixes, until), (vec![new.prefix], Some(now + new.lifetime)));
        for elsewhere in [route("fe80::2", "wlan0"), route("fe80::1", "eth0")] {
            assert_eq!(held.prefixes(now, &[elsewhere], name), (vec![], None));
        }
        assert!(held.add(now, AdvertisedPrefix { lifetime: Duration::ZERO, ..new }), "withdrawn");
        assert!(!held.add(now, AdvertisedPrefix { lifetime: Duration::ZERO, ..new }));
        held.add(now, new);
        let end = now + new.lifetime;
        assert_eq!(held.prefixes(end, &[route("fe80::1", "wlan0")], name), (vec![], None));
    }

    #[test]
    fn prefixes_are_bounded() {
        let (mut held, now) = (HeldPrefixes::default(), Instant::now());
        for number in 0..1000 {
            held.add(now, advertised(&format!("2001:db8:{number:x}::"), 48, 600));
        }
        assert_eq!(held.0.len(), MAX_ADVERTISED);
    }
}
