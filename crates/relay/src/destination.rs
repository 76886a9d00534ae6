//! Where a client wants to go, and why it may not.

mod refusal;

use std::fmt;
use std::net::IpAddr;

use eyas::race::target::{TargetError, TargetHost};
use eyas::zone::{interface_name, parse_host};

pub use refusal::{RefusedRequest, RequestRefusal};

/// The destination that a client requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The host, by name or by address.
    pub host: TargetHost,
    /// Whether its name was given with a dot at the end: no search list applies to it
    /// ([`Target::absolute`](eyas::Target::absolute)).
    pub absolute: bool,
    /// The port, never 0.
    pub port: u16,
}

impl Destination {
    /// Returns the destination at this host, whose name is not absolute.
    pub const fn new(host: TargetHost, port: u16) -> Self {
        Self { host, absolute: false, port }
    }

    /// Parses a host that this host or another may connect to. The zone of a link-local address is
    /// an interface of the one that connects: its number stays a number, and its name stays part of
    /// a name in brackets, which no other host name has, [until then](Self::on_this_host).
    ///
    /// # Errors
    /// If it is no host, or the port is 0.
    pub fn parse(host: &str, port: u16) -> Result<Self, RequestRefusal> {
        let parsed = match TargetHost::parse(host) {
            Err(TargetError::Interface(zone)) if !zone.is_empty() => {
                let address = host.trim_start_matches('[').trim_end_matches(']');
                Ok(TargetHost::Name(format!("[{address}]")))
            }
            parsed => parsed,
        };
        let parsed = parsed.map_err(|cause| RequestRefusal::Malformed(cause.to_string()))?;
        let absolute = parsed.name().is_some() && host.ends_with('.');
        Ok(Self { absolute, ..Self::from_host(parsed, port)? })
    }

    /// Returns the host as it was given: with the dot of an absolute name.
    pub fn given_host(&self) -> String {
        format!("{}{}", self.host, if self.absolute { "." } else { "" })
    }

    /// Returns the destination with the number of the interface of this host that its zone names.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn on_this_host(&self) -> Result<Self, TargetError> {
        let host = match &self.host {
            TargetHost::Name(name) if name.starts_with('[') => parse_host(name)?,
            TargetHost::Literal(_, scope @ 1..) if interface_name(*scope).is_none() => {
                return Err(TargetError::Interface(scope.to_string()));
            }
            host => host.clone(),
        };
        Ok(Self { host, ..self.clone() })
    }

    fn from_host(host: TargetHost, port: u16) -> Result<Self, RequestRefusal> {
        match port {
            0 => Err(RequestRefusal::Malformed("port 0 cannot be connected to".to_owned())),
            port => Ok(Self::new(host, port)),
        }
    }

    /// Returns the destination at this address.
    pub(crate) fn literal(ip: IpAddr, port: u16) -> Result<Self, RequestRefusal> {
        Self::from_host(TargetHost::Literal(ip.to_canonical(), 0), port)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.given_host(), self.port)
    }
}
