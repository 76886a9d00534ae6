//! What the caller wants of the encryption of queries, and the name servers that come of it.

use std::net::SocketAddr;
#[cfg(feature = "encrypted-dns")]
use std::sync::Arc;

#[cfg(feature = "encrypted-dns")]
use super::encryption::{EncryptedDnsPolicy, EncryptionSetting, SharedResolverMemory};
use super::name_servers::{NameServers, ServerOptions};

/// What the caller wants.
#[derive(Clone, Debug, Default)]
pub(super) struct EncryptionChoice {
    #[cfg(feature = "encrypted-dns")]
    pub(super) policy: EncryptedDnsPolicy,
    /// The trust in encrypted resolvers.
    #[cfg(feature = "encrypted-dns")]
    pub(super) security: crate::SecurityParameters,
    #[cfg(feature = "encrypted-dns")]
    pub(super) memory: SharedResolverMemory,
}

#[cfg(feature = "encrypted-dns")]
impl EncryptionChoice {
    /// Returns the servers of the system's configuration, which has this search list.
    pub(super) fn servers(
        &self,
        servers: &[SocketAddr],
        search: &[String],
        options: ServerOptions,
    ) -> NameServers {
        let (security, memory) = (self.security.clone(), Arc::clone(&self.memory));
        let setting = EncryptionSetting::of_system(self.policy, security, memory, search);
        NameServers::with_encryption(servers.iter().copied(), options, &setting)
    }

    /// Returns the server that the caller named.
    pub(super) fn named_server(&self, server: SocketAddr, options: ServerOptions) -> NameServers {
        let (security, memory) = (self.security.clone(), Arc::clone(&self.memory));
        let setting = EncryptionSetting::of_named_server(self.policy, security, memory);
        NameServers::with_encryption([server], options, &setting)
    }

    /// Returns why the host's own resolver cannot be asked, if that is so: nobody can tell how it asks others.
    pub(super) fn refusal_of_host_resolver(&self) -> Option<String> {
        (self.policy == EncryptedDnsPolicy::Required).then(|| {
            "encrypted DNS is required, and nobody can tell whether the host's own resolver \
             encrypts, which has to be asked for this name; name a server that does"
                .to_owned()
        })
    }
}

#[cfg(not(feature = "encrypted-dns"))]
#[expect(clippy::unused_self, reason = "with encrypted DNS there is a choice")]
impl EncryptionChoice {
    /// Returns the servers of the system's configuration.
    pub(super) fn servers(
        &self,
        servers: &[SocketAddr],
        _search: &[String],
        options: ServerOptions,
    ) -> NameServers {
        NameServers::new(servers.iter().copied(), options)
    }

    /// Returns the server that the caller named.
    pub(super) fn named_server(&self, server: SocketAddr, options: ServerOptions) -> NameServers {
        NameServers::new([server], options)
    }

    /// Returns why the host's own resolver cannot be asked, if that is so.
    pub(super) const fn refusal_of_host_resolver(&self) -> Option<String> {
        None
    }
}
