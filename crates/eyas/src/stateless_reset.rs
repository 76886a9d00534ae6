//! Stateless resets (RFC 9000 §10.3): how a QUIC server that has lost its connections, because it
//! was restarted, tells clients that still send on them.
//!
//! A client ends its connection at once if it receives the token that the server has assigned to a
//! connection ID. Here both are derived from what a restarted server has again: the private key of
//! its identity, its address and its host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use quinn::crypto::{CryptoError, HmacKey};
use quinn::{ConnectionId, ConnectionIdGenerator};
use quinn_proto::InvalidCid;
use rustls::crypto::ring::default_provider;
use sha2::Sha256;

use crate::ServerIdentity;

/// Length of a derived key in bytes: that of the hash.
const KEY: usize = 32;
/// The random part of a connection ID in bytes. Every client knows the tokens of its own connection
/// IDs, so a connection ID must not come again (RFC 9000 §10.3.2: it "MUST NOT be reused for new
/// connections at nodes that share a static key"), however often the server is restarted.
const NONCE: usize = 6;
/// The rest of a connection ID: a check that this server has issued it, so that few datagrams from
/// elsewhere are answered.
const CHECK: usize = 2;
/// The minimum time between two resets. After a restart all clients have to learn of it, and the
/// check keeps off nearly all others.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// A key of HMAC-SHA-256.
#[derive(Clone)]
struct ResetKey([u8; KEY]);

impl ResetKey {
    /// Derives a key for one purpose. The parts are preceded by their lengths, so that no two lists
    /// of parts are the same text.
    fn derive(secret: &[u8], parts: &[&[u8]]) -> Self {
        let mut mac = mac(secret);
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        Self(mac.finalize().into_bytes().into())
    }

    fn hash(&self, data: &[u8]) -> [u8; KEY] {
        let mut mac = mac(&self.0);
        mac.update(data);
        mac.finalize().into_bytes().into()
    }
}

/// Returns HMAC under a key of any length.
fn mac(key: &[u8]) -> Hmac<Sha256> {
    // Keys longer than a block are hashed (RFC 2104 §2), so no length is an error.
    <Hmac<Sha256> as KeyInit>::new_from_slice(key)
        .unwrap_or_else(|_| Hmac::<Sha256>::new(&Default::default()))
}

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        signature_out.copy_from_slice(&self.hash(data)[..signature_out.len()]);
    }

    fn signature_len(&self) -> usize {
        KEY
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut mac = mac(&self.0);
        mac.update(data);
        mac.verify_slice(signature).map_err(|_| CryptoError)
    }
}

/// Generates connection IDs that it recognises after a restart.
struct ConnectionIds(ResetKey);

impl ConnectionIds {
    fn check(&self, nonce: &[u8]) -> [u8; CHECK] {
        let hash = self.0.hash(nonce);
        [hash[0], hash[1]]
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; NONCE + CHECK];
        let (nonce, check) = id.split_at_mut(NONCE);
        if default_provider().secure_random.fill(nonce).is_err() {
            // QUIC does not work without randomness either; quinn asks again if the ID is taken.
            tracing::warn!("no random numbers for a QUIC connection ID");
        }
        check.copy_from_slice(&self.check(nonce));
        ConnectionId::new(&id)
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        match id.split_at_checked(NONCE) {
            Some((nonce, check)) if check == self.check(nonce) => Ok(()),
            _ => Err(InvalidCid),
        }
    }

    fn cid_len(&self) -> usize {
        NONCE + CHECK
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

impl ServerIdentity {
    /// Returns the configuration of a QUIC endpoint that serves with this identity at `address`.
    ///
    /// If the server is restarted with the same private key at the same address of the same host, it
    /// answers packets of connections from before with a stateless reset (RFC 9000 §10.3), so that
    /// their clients notice at once. Servers that differ in one of these share no tokens: otherwise
    /// one could be made to reveal those of another's connections (RFC 9000 §21.11).
    pub fn quic_endpoint_config(&self, address: SocketAddr) -> quinn::EndpointConfig {
        self.endpoint_config_on(address, &machine_id())
    }

    fn endpoint_config_on(&self, address: SocketAddr, machine: &[u8]) -> quinn::EndpointConfig {
        let address = address.to_string();
        let derive = |purpose: &str| {
            let parts: [&[u8]; 3] = [purpose.as_bytes(), address.as_bytes(), machine];
            ResetKey::derive(self.secret(), &parts)
        };
        let mut config =
            quinn::EndpointConfig::new(Arc::new(derive("eyas QUIC stateless reset tokens")));
        let ids = derive("eyas QUIC connection IDs");
        config
            .cid_generator(move || Box::new(ConnectionIds(ids.clone())))
            .min_reset_interval(MIN_INTERVAL);
        config
    }
}

/// Returns what identifies this installation of an operating system, as machine-id(5) says; nothing
/// where there is no such file.
fn machine_id() -> Vec<u8> {
    std::fs::read("/etc/machine-id").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the reset token that a server assigns to a connection ID.
    fn token(identity: &ServerIdentity, address: &str, machine: &[u8]) -> [u8; KEY] {
        let address: SocketAddr = address.parse().expect("an address");
        let address = address.to_string();
        let parts: [&[u8]; 3] = [b"eyas QUIC stateless reset tokens", address.as_bytes(), machine];
        ResetKey::derive(identity.secret(), &parts).hash(b"an ID")
    }

    //= hostile reset
    //# the token of another client's connection (RFC 9000 §21.11)
    //= bound: address, port and host are part of its key; `NONCE`
    #[test]
    fn tokens_are_the_same_after_a_restart_and_differ_everywhere_else() {
        let made = || ServerIdentity::self_signed(["server.test"]).expect("an identity");
        let (one, other) = (made(), made());
        let pem = (one.certificate_pem().expect("PEM"), one.key_pem().expect("PEM"));
        let restarted = ServerIdentity::from_pem(pem.0.as_bytes(), pem.1.as_bytes());
        let first = token(&one, "[::1]:443", b"host");
        assert_eq!(token(&restarted.expect("an identity"), "[::1]:443", b"host"), first);
        for different in [
            token(&other, "[::1]:443", b"host"),
            token(&one, "[::1]:444", b"host"),
            token(&one, "[::]:443", b"host"),
            token(&one, "[::1]:443", b"guest"),
        ] {
            assert_ne!(different, first);
        }
    }

    //= hostile reset
    //# datagrams that look like packets of a former connection
    //= bound: one in 65,536 passes; `MIN_INTERVAL`; a reset is shorter than its packet
    #[test]
    fn a_connection_id_is_recognised_under_its_key_only() {
        let ids = |secret: &[u8]| ConnectionIds(ResetKey::derive(secret, &[b"IDs"]));
        let (mut issuer, restarted, other) = (ids(b"secret"), ids(b"secret"), ids(b"other"));
        let mut accepted = 0;
        for _ in 0..1000 {
            let id = issuer.generate_cid();
            assert_eq!(id.len(), issuer.cid_len());
            assert!(restarted.validate(&id).is_ok());
            accepted += usize::from(other.validate(&id).is_ok());
        }
        // One in 65,536 passes by chance.
        assert!(accepted < 10, "{accepted}");
        // The maximum length is 20 (RFC 9000 §17.2).
        for length in 0..=20 {
            assert!(other.validate(&ConnectionId::new(&vec![7; length])).is_err(), "{length}");
        }
    }
}
