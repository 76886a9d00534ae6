//! Who answers for a name, and why.

use std::fmt;
use std::net::SocketAddr;

/// Who answers for a name, as [`Resolver::source_of`](crate::Resolver::source_of) finds it in the
/// configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameSource {
    /// The caller, by [`Resolver::overriding`](crate::Resolver::overriding).
    Override,
    /// Nobody needs to: the name is this host's own (RFC 6761 §6.3).
    Localhost,
    /// The hosts file.
    HostsFile {
        /// Its path.
        path: String,
    },
    /// The server that the caller named.
    Server {
        /// Its address or URL.
        server: String,
    },
    /// The host's name servers, by queries of our own.
    Queries {
        /// The servers, in the order of the configuration.
        servers: Vec<SocketAddr>,
        /// The names that are asked for one after the other, until one has an address.
        names: Vec<String>,
    },
    /// The host's own resolver, getaddrinfo(3).
    HostResolver {
        /// What in the configuration is left to it.
        why: String,
    },
}

impl NameSource {
    /// Returns the name used in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Localhost => "localhost",
            Self::HostsFile { .. } => "hosts-file",
            Self::Server { .. } => "server",
            Self::Queries { .. } => "queries",
            Self::HostResolver { .. } => "host-resolver",
        }
    }
}

impl fmt::Display for NameSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Override => f.write_str("the given addresses"),
            Self::Localhost => f.write_str("this host: the name is its own"),
            Self::HostsFile { path } => write!(f, "{path} alone"),
            Self::Server { server } => write!(f, "queries to {server}, as given"),
            Self::Queries { servers, names } => {
                let servers: Vec<String> = servers.iter().map(short).collect();
                write!(f, "queries to {}", servers.join(", "))?;
                match names.as_slice() {
                    [] | [_] => Ok(()),
                    names => write!(f, " for {}", names.join(", then ")),
                }
            }
            Self::HostResolver { why } => {
                write!(f, "the host's own resolver (getaddrinfo), because {why}")
            }
        }
    }
}

/// Formats a server without the usual port.
fn short(server: &SocketAddr) -> String {
    let text = server.to_string();
    let Some(without_port) = text.strip_suffix(":53") else { return text };
    without_port.trim_start_matches('[').trim_end_matches(']').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_read_as_sentences() {
        let servers = ["192.0.2.1:53", "[fe80::1%2]:53", "[::1]:5353"];
        let queries = |names: &[&str]| NameSource::Queries {
            servers: servers.iter().map(|server| server.parse().unwrap()).collect(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(
            queries(&["a.x", "a"]).to_string(),
            "queries to 192.0.2.1, fe80::1%2, [::1]:5353 for a.x, then a"
        );
    }
}
