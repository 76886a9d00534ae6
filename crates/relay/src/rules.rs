//! The rules for destinations.

mod address;
mod pattern;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use eyas::Resolver;
use eyas::race::io::NetworkView;
use eyas::race::target::TargetHost;

use address::{is_local, is_own, spellings};
pub use pattern::{PatternError, RulePattern};

use crate::destination::Destination;

/// Where clients may connect to: anywhere except `deny` and, for clients on other machines, what is
/// local to the proxy: this machine by any of its addresses, the networks that it is attached to, and
/// ranges that are not part of the Internet, such as private networks (RFC 6890). `allow` takes
/// precedence over everything else.
///
/// `deny` and what is local apply to every spelling of an address: as it is, and to the IPv4 address
/// that it embeds, also by a NAT64 prefix of the network, and to the loopback address that a kernel
/// takes an unspecified one for. `allow` applies to the address as it is: whoever allows an IPv4
/// address has not allowed what is behind a translator or a 6to4 router.
#[derive(Clone, Debug, Default)]
pub struct DestinationRules {
    /// Destinations that are always allowed.
    pub allow: Vec<RulePattern>,
    /// Destinations that are denied.
    pub deny: Vec<RulePattern>,
    /// Whether names are looked up elsewhere, so that their addresses are not known here. A server that
    /// reaches destinations through another proxy sets it.
    pub resolved_elsewhere: bool,
}

/// The verdict on a destination before it is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleVerdict {
    /// It is allowed, whatever its addresses are.
    Allowed,
    /// It depends on its addresses.
    ByAddress,
    /// It is denied.
    Denied(DenialReason),
}

/// Why a destination is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// A rule denies it.
    Rule,
    /// It is local to the proxy, and the client is on another machine.
    Local,
}

impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rule => "a rule of this proxy (--deny) forbids it",
            Self::Local => {
                "it is on the proxy's own machine or network, or on none of the Internet, which \
                 clients on other machines may use only where --allow permits it"
            }
        })
    }
}

/// The rules as they apply to one client, on the network that the proxy is on.
#[derive(Clone, Debug)]
pub struct ClientRules {
    rules: Arc<DestinationRules>,
    client: IpAddr,
    network: Arc<NetworkView>,
}

impl ClientRules {
    /// Returns the rules for a client at this address.
    pub fn new(rules: &Arc<DestinationRules>, client: IpAddr, network: Arc<NetworkView>) -> Self {
        Self { rules: Arc::clone(rules), client: client.to_canonical(), network }
    }

    /// Returns the address of the client.
    pub fn client(&self) -> IpAddr {
        self.client
    }

    /// Continues on another network.
    pub fn move_to(&mut self, network: Arc<NetworkView>) {
        self.network = network;
    }

    /// Returns the verdict on this destination as the client named it.
    pub fn of_destination(&self, to: &Destination) -> RuleVerdict {
        match &to.host {
            TargetHost::Literal(ip, _) => match self.of_address(*ip, to.port) {
                Ok(()) => RuleVerdict::Allowed,
                Err(why) => RuleVerdict::Denied(why),
            },
            TargetHost::Name(name) if self.rules.allows_name(name, to.port) => RuleVerdict::Allowed,
            TargetHost::Name(name) if self.rules.denies_name(name, to.port) => {
                RuleVerdict::Denied(DenialReason::Rule)
            }
            name if name.is_localhost() => self.of_localhost(to.port),
            TargetHost::Name(_) => RuleVerdict::ByAddress,
        }
    }

    /// Returns the destination as it is to be resolved on this host. A search list may stand for
    /// another spelling of a denied name: `intern` for `intern.corp.example`. Such a name is taken
    /// as it is, as if it had a dot at the end.
    pub fn to_resolve(&self, to: &Destination, resolver: &Resolver) -> Destination {
        let (rules, port) = (&self.rules, to.port);
        // The search list is only looked at where a rule could deny one of its names.
        let may_spell_another = !rules.deny.is_empty()
            && to.host.name().is_some_and(|name| !rules.allows_name(name, port));
        let is_denied =
            |name: &String| !rules.allows_name(name, port) && rules.denies_name(name, port);
        let absolute = to.absolute
            || (may_spell_another
                && resolver.searched_names(&to.given_host()).iter().any(is_denied));
        Destination { absolute, ..to.clone() }
    }

    /// Returns the verdict on this machine's own name, which is not looked up in DNS (RFC 6761 §6.3): it is
    /// loopback in both families.
    fn of_localhost(&self, port: u16) -> RuleVerdict {
        let both = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let verdict = both.into_iter().try_for_each(|ip| self.of_address(ip, port));
        verdict.map_or_else(RuleVerdict::Denied, |()| RuleVerdict::Allowed)
    }

    /// Returns an error if the client may not connect to this address.
    pub fn of_address(&self, ip: IpAddr, port: u16) -> Result<(), DenialReason> {
        let (ip, rules) = (ip.to_canonical(), &self.rules);
        if rules.allow.iter().any(|one| one.has_address(ip, port)) {
            return Ok(());
        }
        let mut spellings = spellings(ip, &self.network).into_iter();
        if spellings.any(|ip| rules.deny.iter().any(|one| one.has_address(ip, port))) {
            return Err(DenialReason::Rule);
        }
        match !is_own(self.client, &self.network) && is_local(ip, &self.network) {
            true => Err(DenialReason::Local),
            false => Ok(()),
        }
    }
}

impl DestinationRules {
    /// Returns whether a name is allowed whatever its addresses are.
    fn allows_name(&self, name: &str, port: u16) -> bool {
        self.allow.iter().any(|one| one.has_name(name, port))
    }

    /// Returns whether a name is denied whatever its addresses are. `*` leaves those that are allowed as
    /// addresses, if they are known here.
    fn denies_name(&self, name: &str, port: u16) -> bool {
        let may_be_allowed =
            !self.resolved_elsewhere && self.allow.iter().any(|one| one.is_network(port));
        let denies = |one: &RulePattern| !(may_be_allowed && one.is_any());
        self.deny.iter().any(|one| one.has_name(name, port) && denies(one))
    }
}

#[cfg(test)]
mod tests;
