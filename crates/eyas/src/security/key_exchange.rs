//! The key exchange of TLS 1.3, with X25519MLKEM768 (RFC 10024) first: what was recorded today cannot be read by a quantum
//! computer of tomorrow, and is as safe as with X25519 alone if ML-KEM should fall.
//!
//! X25519 is ring's, and ML-KEM-768 (FIPS 203) that of libcrux. RFC 10024 concatenates their shares and their secrets.

use std::cell::Cell;

#[cfg(target_arch = "x86_64")]
use libcrux_ml_kem::mlkem768::avx2::unpacked as avx2;
#[cfg(target_arch = "aarch64")]
use libcrux_ml_kem::mlkem768::neon::unpacked as neon;
#[cfg(not(target_arch = "aarch64"))]
use libcrux_ml_kem::mlkem768::portable::unpacked as portable;
use libcrux_ml_kem::mlkem768::{self, MlKem768Ciphertext, MlKem768PublicKey, validate_public_key};
use rustls::crypto::ring::{default_provider, kx_group};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, GetRandomFailed, SharedSecret,
    SupportedKxGroup,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// The sizes of an encapsulation key and of a ciphertext of ML-KEM-768, in bytes (FIPS 203 §8, table 3). In a share
/// they come first, and that of X25519 follows.
const KEY_SIZE: usize = 1184;
const CIPHERTEXT_SIZE: usize = 1088;

/// "MUST … abort with an illegal_parameter alert": for a share that is none.
const BAD_SHARE: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

thread_local! {
    /// The group whose exchange was completed last by this thread.
    static COMPLETED: Cell<Option<NamedGroup>> = const { Cell::new(None) };
}

/// Returns the cryptography of all connections: ring's, with the key exchange X25519MLKEM768 (RFC 10024) as the most
/// preferred one in TLS 1.3, also of QUIC. A client sends a share of X25519 beside it, so that a server without it
/// answers as fast as before.
///
/// ```
/// use eyas::rustls::NamedGroup;
///
/// let groups = eyas::crypto_provider().kx_groups;
/// assert_eq!(groups[0].name(), NamedGroup::X25519MLKEM768);
/// assert_eq!(groups[1].name(), NamedGroup::X25519);
/// ```
pub fn crypto_provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: vec![
            &X25519MlKem768,
            &OBSERVED_GROUPS[0],
            &OBSERVED_GROUPS[1],
            &OBSERVED_GROUPS[2],
        ],
        ..default_provider()
    }
}

/// Calls a function, and returns the group whose exchange it has completed beside its result: a stream of TLS tells of no
/// handshake that is not complete.
pub(crate) fn recorded_call<R>(call: impl FnOnce() -> R) -> (R, Option<NamedGroup>) {
    COMPLETED.set(None);
    let result = call();
    (result, COMPLETED.take())
}

/// X25519MLKEM768.
#[derive(Debug)]
struct X25519MlKem768;

impl SupportedKxGroup for X25519MlKem768 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let classical = kx_group::X25519.start()?;
        let post_quantum = DecapsulationKey::from_seed(random()?);
        let key = post_quantum.encapsulation_key();
        let share = [&key.as_slice()[..], classical.pub_key()].concat();
        Ok(Box::new(ActiveX25519MlKem768 { classical, post_quantum, share }))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, classical) = share.split_first_chunk::<KEY_SIZE>().ok_or(BAD_SHARE)?;
        let key = MlKem768PublicKey::from(key);
        // "The server MUST perform the encapsulation key check described in Section 7.2 of [FIPS203]."
        if !validate_public_key(&key) {
            return Err(BAD_SHARE);
        }
        let (ciphertext, secret) = mlkem768::encapsulate(&key, random()?);
        let classical = kx_group::X25519.start_and_complete(classical)?;
        let share = [&ciphertext.as_slice()[..], &classical.pub_key].concat();
        let secret = combined(secret, &classical.secret);
        COMPLETED.set(Some(self.name()));
        Ok(CompletedKeyExchange { group: self.name(), pub_key: share, secret })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// A client's half of an exchange.
struct ActiveX25519MlKem768 {
    classical: Box<dyn ActiveKeyExchange>,
    post_quantum: DecapsulationKey,
    share: Vec<u8>,
}

impl ActiveKeyExchange for ActiveX25519MlKem768 {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, classical) =
            share.split_first_chunk::<CIPHERTEXT_SIZE>().ok_or(BAD_SHARE)?;
        let secret = self.post_quantum.decapsulate(&MlKem768Ciphertext::from(ciphertext));
        let secret = combined(secret, &self.classical.complete(classical)?);
        COMPLETED.set(Some(NamedGroup::X25519MLKEM768));
        Ok(secret)
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.classical.group(), self.classical.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        COMPLETED.set(Some(self.classical.group()));
        self.classical.complete(share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

/// A client's key of ML-KEM-768, with the matrix that it was made from: decapsulation encrypts anew (FIPS 203 §6.3), and
/// from the key's bytes it would sample that matrix a second time, which is half of its work. libcrux chooses the
/// implementation for the processor in its other functions only.
enum DecapsulationKey {
    #[cfg(target_arch = "x86_64")]
    Avx2(Box<avx2::MlKem768KeyPairUnpacked>),
    #[cfg(target_arch = "aarch64")]
    Neon(Box<neon::MlKem768KeyPairUnpacked>),
    #[cfg(not(target_arch = "aarch64"))]
    Portable(Box<portable::MlKem768KeyPairUnpacked>),
}

impl DecapsulationKey {
    fn from_seed(seed: [u8; 64]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            let mut pair = Box::default();
            avx2::generate_key_pair_mut(seed, &mut pair);
            return Self::Avx2(pair);
        }
        // Each processor of this architecture has it.
        #[cfg(target_arch = "aarch64")]
        {
            let mut pair = Box::default();
            neon::generate_key_pair_mut(seed, &mut pair);
            Self::Neon(pair)
        }
        #[cfg(not(target_arch = "aarch64"))]
        Self::portable_from_seed(seed)
    }

    #[cfg(not(target_arch = "aarch64"))]
    fn portable_from_seed(seed: [u8; 64]) -> Self {
        let mut pair = Box::default();
        portable::generate_key_pair_mut(seed, &mut pair);
        Self::Portable(pair)
    }

    fn encapsulation_key(&self) -> MlKem768PublicKey {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(pair) => avx2::key_pair_serialized_public_key(pair),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(pair) => neon::key_pair_serialized_public_key(pair),
            #[cfg(not(target_arch = "aarch64"))]
            Self::Portable(pair) => portable::key_pair_serialized_public_key(pair),
        }
    }

    fn decapsulate(&self, ciphertext: &MlKem768Ciphertext) -> [u8; 32] {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(pair) => avx2::decapsulate(pair, ciphertext),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(pair) => neon::decapsulate(pair, ciphertext),
            #[cfg(not(target_arch = "aarch64"))]
            Self::Portable(pair) => portable::decapsulate(pair, ciphertext),
        }
    }
}

/// A group of ring, which records the exchanges that it completes.
#[derive(Debug)]
struct ObservedGroup(&'static dyn SupportedKxGroup);

/// Those of ring's default.
static OBSERVED_GROUPS: [ObservedGroup; 3] = [
    ObservedGroup(kx_group::X25519),
    ObservedGroup(kx_group::SECP256R1),
    ObservedGroup(kx_group::SECP384R1),
];

impl SupportedKxGroup for ObservedGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(ActiveObserved(self.0.start()?)))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let completed = self.0.start_and_complete(share)?;
        COMPLETED.set(Some(self.name()));
        Ok(completed)
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.0.ffdhe_group()
    }

    fn name(&self) -> NamedGroup {
        self.0.name()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.0.usable_for_version(version)
    }
}

/// A client's half of an exchange whose completion is recorded.
struct ActiveObserved(Box<dyn ActiveKeyExchange>);

impl ActiveKeyExchange for ActiveObserved {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let group = self.0.group();
        let secret = self.0.complete(share)?;
        COMPLETED.set(Some(group));
        Ok(secret)
    }

    fn pub_key(&self) -> &[u8] {
        self.0.pub_key()
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.0.ffdhe_group()
    }

    fn group(&self) -> NamedGroup {
        self.0.group()
    }
}

/// Returns the secret of both exchanges, that of ML-KEM first.
fn combined(post_quantum: [u8; 32], classical: &SharedSecret) -> SharedSecret {
    SharedSecret::from([&post_quantum, classical.secret_bytes()].concat())
}

fn random<const N: usize>() -> Result<[u8; N], GetRandomFailed> {
    let mut bytes = [0; N];
    default_provider().secure_random.fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of_client() -> Box<dyn ActiveKeyExchange> {
        X25519MlKem768.start().unwrap()
    }

    //= rfc10024 §4.1
    //# When the X25519MLKEM768 group is negotiated, the client's key_exchange value is the
    //# concatenation of the client's ML-KEM-768 encapsulation key and the client's X25519
    //# ephemeral share. The size of the client share is 1216 bytes.
    #[test]
    fn both_ends_get_the_secret_of_ml_kem_and_then_that_of_x25519() {
        let client = share_of_client();
        assert_eq!(client.pub_key().len(), 1216);
        let server = X25519MlKem768.start_and_complete(client.pub_key()).unwrap();
        assert_eq!(server.pub_key.len(), 1120);
        let (secret, group) = recorded_call(|| client.complete(&server.pub_key).unwrap());
        assert_eq!(secret.secret_bytes().len(), 64);
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
        assert_eq!(group, Some(NamedGroup::X25519MLKEM768));
    }

    #[test]
    fn a_server_without_ml_kem_answers_the_share_of_x25519() {
        let client = share_of_client();
        let (group, share) = client.hybrid_component().unwrap();
        assert_eq!((group, &client.pub_key()[KEY_SIZE..]), (NamedGroup::X25519, share));
        let server = OBSERVED_GROUPS[0].start_and_complete(share).unwrap();
        let (secret, group) =
            recorded_call(|| client.complete_hybrid_component(&server.pub_key).unwrap());
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
        assert_eq!(group, Some(NamedGroup::X25519));
    }

    /// Of the serialized key libcrux chooses the implementation, as for the server.
    #[test]
    fn a_key_with_its_matrix_is_the_one_of_its_bytes() {
        for seed in 0..8 {
            let (secret, key) = mlkem768::generate_key_pair([seed; 64]).into_parts();
            let (ciphertext, shared) = mlkem768::encapsulate(&key, [seed + 1; 32]);
            let mut forged = ciphertext.as_slice().to_owned();
            forged[0] ^= 1;
            let forged = MlKem768Ciphertext::from(forged);
            let rejection = mlkem768::decapsulate(&secret, &forged);
            assert_ne!(rejection, shared);
            let keys = [
                DecapsulationKey::from_seed([seed; 64]),
                #[cfg(not(target_arch = "aarch64"))]
                DecapsulationKey::portable_from_seed([seed; 64]),
            ];
            for unpacked in keys {
                assert_eq!(unpacked.encapsulation_key().as_slice(), key.as_slice());
                assert_eq!(unpacked.decapsulate(&ciphertext), shared);
                assert_eq!(unpacked.decapsulate(&forged), rejection);
            }
        }
    }

    //= rfc10024 §4.2
    //# For all groups, the server MUST perform the encapsulation key check described in
    //# Section 7.2 of [FIPS203] on the client's encapsulation key, and abort with an
    //# illegal_parameter alert if it fails.
    #[test]
    fn a_server_refuses_shares_that_are_none() {
        let client = share_of_client();
        let share = client.pub_key();
        let refused = |share: &[u8]| X25519MlKem768.start_and_complete(share).map(drop);
        for length in [0, 1, KEY_SIZE - 1, KEY_SIZE, share.len() - 1] {
            assert_eq!(refused(&share[..length]), Err(BAD_SHARE), "{length} bytes");
        }
        assert_eq!(refused(&[share, &[0]].concat()), Err(BAD_SHARE), "a byte more");
        // A coefficient of 4095, which is no residue of 3329.
        let mut no_residue = share.to_vec();
        no_residue[..2].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(refused(&no_residue), Err(BAD_SHARE));
    }

    //= rfc10024 §4.2
    //# For all groups, the client MUST check if the ciphertext length matches the selected
    //# group, and abort with an illegal_parameter alert if it fails.
    #[test]
    fn a_client_refuses_shares_that_are_none() {
        let server = X25519MlKem768.start_and_complete(share_of_client().pub_key()).unwrap();
        let refused = |share: &[u8]| share_of_client().complete(share).map(drop);
        for length in [0, 32, CIPHERTEXT_SIZE - 1, CIPHERTEXT_SIZE, server.pub_key.len() - 1] {
            assert_eq!(refused(&server.pub_key[..length]), Err(BAD_SHARE), "{length} bytes");
        }
        assert_eq!(refused(&[&server.pub_key[..], &[0]].concat()), Err(BAD_SHARE));
    }

    //= rfc10024 §4.3
    //# As specified in [RFC8446], both client and server MUST check whether the computed
    //# X25519 shared secret is the all-zero value and abort if so.
    #[test]
    fn a_share_of_small_order_is_refused() {
        let mut share = share_of_client().pub_key().to_vec();
        share[KEY_SIZE..].fill(0);
        assert_eq!(X25519MlKem768.start_and_complete(&share).map(drop), Err(BAD_SHARE));
    }

    /// Implicit rejection (FIPS 203 §6.3): a changed ciphertext gives another secret, no error.
    #[test]
    fn a_changed_ciphertext_gives_another_secret() {
        let client = share_of_client();
        let mut server = X25519MlKem768.start_and_complete(client.pub_key()).unwrap();
        server.pub_key[0] ^= 1;
        let secret = client.complete(&server.pub_key).unwrap();
        assert_ne!(secret.secret_bytes(), server.secret.secret_bytes());
        assert_eq!(secret.secret_bytes()[32..], server.secret.secret_bytes()[32..]);
    }
}
