//! Encrypted DNS that finds itself: which encrypted transports the network's own servers designate, and when they are
//! used.
//!
//! | module | job | source |
//! | --- | --- | --- |
//! | [`policy`] | what a caller wants | |
//! | [`way`] | the rules: where a query goes; pure | RFC 9462 §4.1 |
//! | [`owner`] | the names that belong to a network; pure | RFC 6761, RFC 6303 |
//! | [`designation`] | what records designate; pure | RFC 9461, RFC 9462 §4 |
//! | [`systemd`] | what systemd says of the servers | resolved.conf(5), RFC 9463 |
//! | [`certificate`] | whether a designated server is whom its designator means | RFC 9462 §4.2, §4.3 |
//! | [`remembered`] | what is known of this network: which resolvers are designated, and which work | RFC 9462 §4.1.1 |
//! | [`row`] | designations as rows of the memory; pure | |
//! | [`report`] | what was found, for people | |
//!
//! `name_servers::discovery` looks for the resolvers, `name_servers::opening` connects to them, and
//! `name_servers::designated` asks them.

mod certificate;
pub(super) mod designation;
mod owner;
mod policy;
mod remembered;
mod report;
mod row;
mod systemd;
pub(super) mod way;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;

use crate::{Error, SecurityParameters};

pub use policy::{EncryptedDnsPolicy, EncryptedDnsPolicyError};
pub use report::{DesignatedResolver, DnsProtocol, ServerEncryption, UnencryptedReason};

use certificate::designated_verifier;
pub(super) use certificate::{ProofResult, RequiredProof};
use designation::ResolverEndpoint;
use owner::NetworkNames;
pub(crate) use remembered::ResolverMemory;
pub(super) use remembered::{EndpointOutcome, NetworkMemory};
pub(super) use row::RememberedAnswer;
use systemd::{KnownServer, SystemSetting};
use way::{EncryptionMode, NameOwner};

/// The port of unencrypted queries.
const PLAIN_PORT: u16 = 53;

/// How the servers of one configuration are asked.
#[derive(Debug)]
pub(super) struct EncryptionSetting {
    mode: EncryptionMode,
    /// Whom to trust.
    security: SecurityParameters,
    names: NetworkNames,
    /// What the system knows of servers, by which they need not designate anything.
    known: BTreeMap<IpAddr, KnownServer>,
    /// Whether the mode is the system's, too.
    is_as_system: bool,
    /// What the endpoint of the resolver remembers, once there is one.
    memory: SharedResolverMemory,
}

/// The memory of the endpoint that a resolver belongs to: of the first one, if several share it.
pub(super) type SharedResolverMemory = Arc<OnceLock<ResolverMemory>>;

impl EncryptionSetting {
    /// Returns the setting for a server that the caller named.
    pub(super) fn of_named_server(
        policy: EncryptedDnsPolicy,
        security: SecurityParameters,
        memory: SharedResolverMemory,
    ) -> Arc<Self> {
        Arc::new(Self {
            memory,
            mode: policy.mode().unwrap_or(EncryptionMode::Off),
            security,
            names: NetworkNames::new(&[]),
            known: BTreeMap::new(),
            is_as_system: false,
        })
    }

    /// Returns the setting for the servers of the system's configuration, which has this search list.
    pub(super) fn of_system(
        policy: EncryptedDnsPolicy,
        security: SecurityParameters,
        memory: SharedResolverMemory,
        search: &[String],
    ) -> Arc<Self> {
        let system = match policy {
            EncryptedDnsPolicy::Off => SystemSetting::default(),
            _ => systemd::read(),
        };
        Arc::new(Self {
            memory,
            mode: policy.mode().unwrap_or(system.mode),
            security,
            names: NetworkNames::new(search),
            known: system.servers,
            is_as_system: policy == EncryptedDnsPolicy::System,
        })
    }

    /// Returns whether queries to this server are encrypted.
    pub(super) fn mode(&self, server: SocketAddr) -> EncryptionMode {
        match self.known.get(&server.ip()) {
            _ if !self.is_as_system => self.mode,
            // It does what the system has it do.
            _ if server.ip().is_loopback() => EncryptionMode::Off,
            Some(KnownServer::OverTls { mode: Some(mode), .. }) => *mode,
            _ => self.mode,
        }
    }

    /// Returns whom a name belongs to, which is in lower case and without a dot at its end.
    pub(super) fn owner(&self, name: &str) -> NameOwner {
        self.names.owner(name)
    }

    /// Returns whether this server encrypts on its own behalf, so that nothing in the clear leaves this host.
    pub(super) fn is_encrypting_stub(&self, server: SocketAddr) -> bool {
        matches!(self.known.get(&server.ip()), Some(KnownServer::EncryptingStub))
    }

    /// Returns the encrypted resolver of a server if the system knows it, with what it has to prove. By the system's own
    /// policy that is the server itself, over TLS; by another one only a name counts.
    pub(super) fn known_endpoint(
        &self,
        server: SocketAddr,
    ) -> Option<(ResolverEndpoint, RequiredProof)> {
        let (name, given) = match self.known.get(&server.ip()) {
            Some(KnownServer::OverTls { name, port, .. }) => (name.as_ref(), *port),
            _ => (None, None),
        };
        let is_of_system = self.is_as_system && self.mode(server) != EncryptionMode::Off;
        if name.is_none() && !is_of_system {
            return None;
        }
        let protocol = DnsProtocol::Tls;
        let mut address = server;
        // That of plain queries may stand there for both.
        let given = given.filter(|port| *port != PLAIN_PORT);
        address.set_port(given.unwrap_or_else(|| designation::port(protocol)));
        let endpoint = ResolverEndpoint {
            name: name.cloned().unwrap_or_default(),
            protocol,
            address,
            path: String::new(),
        };
        let is_nameless = name.is_none();
        let proof = RequiredProof {
            designator: is_nameless.then_some(server.ip()),
            is_optional: is_nameless && self.mode(server) != EncryptionMode::Required,
        };
        Some((endpoint, proof))
    }

    /// Returns what an encrypted resolver at this address, which a server has designated, has to prove.
    pub(super) fn proof(&self, server: SocketAddr, resolver: SocketAddr) -> RequiredProof {
        let is_the_same = server.ip() == resolver.ip() && designation::is_local(server.ip());
        RequiredProof {
            designator: Some(server.ip()),
            is_optional: is_the_same && self.mode(server) != EncryptionMode::Required,
        }
    }

    /// Returns what is remembered of this network, if there is a memory and the network is certain.
    pub(super) fn network_memory(&self) -> Option<NetworkMemory> {
        NetworkMemory::of_current(&self.memory)
    }

    /// Returns the verifier of the caller's trust.
    pub(super) fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        self.security.server_verifier()
    }

    /// Returns the TLS configuration of a resolver that has to prove this, and where the result will be.
    pub(super) fn client_config(
        &self,
        inner: Arc<dyn ServerCertVerifier>,
        proof: RequiredProof,
    ) -> Result<(ClientConfig, ProofResult), Error> {
        let (verifier, result) = designated_verifier(inner, proof);
        Ok((self.security.client_config(Arc::new(verifier))?, result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(policy: EncryptedDnsPolicy, mode: EncryptionMode) -> EncryptionSetting {
        let named =
            KnownServer::OverTls { name: Some("dns.example".to_owned()), port: None, mode: None };
        EncryptionSetting {
            mode: policy.mode().unwrap_or(mode),
            security: SecurityParameters::platform(),
            names: NetworkNames::new(&[]),
            known: [("192.0.2.1".parse().unwrap(), named)].into(),
            is_as_system: policy == EncryptedDnsPolicy::System,
            memory: SharedResolverMemory::default(),
        }
    }

    #[test]
    fn the_system_s_own_policy_asks_its_servers_over_tls() {
        use EncryptionMode::{Auto, Off, Required};
        let [named, other, stub] =
            ["192.0.2.1:53", "192.0.2.2:53", "127.0.0.53:53"].map(|text| text.parse().unwrap());
        for mode in [Auto, Required] {
            let system = setting(EncryptedDnsPolicy::System, mode);
            assert_eq!((system.mode(other), system.mode(stub)), (mode, Off));
            let (endpoint, proof) = system.known_endpoint(other).unwrap();
            assert_eq!((&*endpoint.name, endpoint.address), ("", "192.0.2.2:853".parse().unwrap()));
            assert_eq!(proof.designator, Some(other.ip()));
            assert_eq!(proof.is_optional, mode == Auto);
            assert_eq!(system.known_endpoint(stub), None);
        }
        for (policy, mode) in
            [(EncryptedDnsPolicy::Auto, Off), (EncryptedDnsPolicy::System, Required)]
        {
            let (endpoint, proof) = setting(policy, mode).known_endpoint(named).unwrap();
            assert_eq!(endpoint.name, "dns.example");
            assert_eq!(proof, RequiredProof { designator: None, is_optional: false });
        }
        let auto = setting(EncryptedDnsPolicy::Auto, Off);
        assert_eq!(auto.known_endpoint(other), None, "it has to designate one");
        assert_eq!(setting(EncryptedDnsPolicy::System, Off).known_endpoint(other), None);
    }
}
