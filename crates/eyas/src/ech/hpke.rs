//! Hybrid public key encryption (RFC 9180) for ECH, that of the crate `hpke`: with X25519 and HKDF-SHA256.

use std::fmt;
use std::marker::PhantomData;

use hpke::aead::{Aead, AeadCtxR, AeadCtxS, AesGcm128, AesGcm256, ChaCha20Poly1305};
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{
    Deserializable as _, HpkeError, Kem as _, OpModeR, OpModeS, Serializable as _, setup_receiver,
    setup_sender,
};
use rustls::Error;
use rustls::crypto::hpke::{
    EncapsulatedSecret, Hpke, HpkeOpener, HpkePrivateKey, HpkePublicKey, HpkeSealer, HpkeSuite,
};
use rustls::crypto::ring::kx_group::X25519;
use rustls::internal::msgs::enums::{HpkeAead, HpkeKdf, HpkeKem};
use rustls::internal::msgs::handshake::HpkeSymmetricCipherSuite;

/// The suites that are supported: RFC 9849 §9 demands the first one.
pub(super) static HPKE_SUITES: [&dyn Hpke; 3] = [
    &X25519Suite::<AesGcm128>::new(HpkeAead::AES_128_GCM),
    &X25519Suite::<AesGcm256>::new(HpkeAead::AES_256_GCM),
    &X25519Suite::<ChaCha20Poly1305>::new(HpkeAead::CHACHA20_POLY_1305),
];

type SuiteKem = X25519HkdfSha256;
type SuiteKdf = HkdfSha256;

/// A suite with this AEAD.
struct X25519Suite<A> {
    id: HpkeAead,
    aead: PhantomData<fn() -> A>,
}

struct SuiteSealer<A: Aead>(AeadCtxS<A, SuiteKdf, SuiteKem>);

struct SuiteOpener<A: Aead>(AeadCtxR<A, SuiteKdf, SuiteKem>);

impl<A> X25519Suite<A> {
    const fn new(id: HpkeAead) -> Self {
        Self { id, aead: PhantomData }
    }
}

impl<A: Aead + 'static> Hpke for X25519Suite<A>
where
    AeadCtxS<A, SuiteKdf, SuiteKem>: Send + Sync,
    AeadCtxR<A, SuiteKdf, SuiteKem>: Send + Sync,
{
    fn seal(
        &self,
        info: &[u8],
        aad: &[u8],
        plaintext: &[u8],
        pub_key: &HpkePublicKey,
    ) -> Result<(EncapsulatedSecret, Vec<u8>), Error> {
        let (secret, mut sealer) = self.setup_sealer(info, pub_key)?;
        Ok((secret, sealer.seal(aad, plaintext)?))
    }

    fn setup_sealer(
        &self,
        info: &[u8],
        pub_key: &HpkePublicKey,
    ) -> Result<(EncapsulatedSecret, Box<dyn HpkeSealer + 'static>), Error> {
        let key = <SuiteKem as hpke::Kem>::PublicKey::from_bytes(&pub_key.0).map_err(failed)?;
        let (secret, context) =
            setup_sender::<A, SuiteKdf, SuiteKem>(&OpModeS::Base, &key, info).map_err(failed)?;
        let secret = EncapsulatedSecret(secret.to_bytes().to_vec());
        Ok((secret, Box::new(SuiteSealer(context))))
    }

    fn open(
        &self,
        enc: &EncapsulatedSecret,
        info: &[u8],
        aad: &[u8],
        ciphertext: &[u8],
        secret_key: &HpkePrivateKey,
    ) -> Result<Vec<u8>, Error> {
        self.setup_opener(enc, info, secret_key)?.open(aad, ciphertext)
    }

    fn setup_opener(
        &self,
        enc: &EncapsulatedSecret,
        info: &[u8],
        secret_key: &HpkePrivateKey,
    ) -> Result<Box<dyn HpkeOpener + 'static>, Error> {
        let key = <SuiteKem as hpke::Kem>::PrivateKey::from_bytes(secret_key.secret_bytes());
        let secret = <SuiteKem as hpke::Kem>::EncappedKey::from_bytes(&enc.0).map_err(failed)?;
        let context = setup_receiver::<A, SuiteKdf, SuiteKem>(
            &OpModeR::Base,
            &key.map_err(failed)?,
            &secret,
            info,
        );
        Ok(Box::new(SuiteOpener(context.map_err(failed)?)))
    }

    fn generate_key_pair(&self) -> Result<(HpkePublicKey, HpkePrivateKey), Error> {
        let (private, public) = SuiteKem::gen_keypair();
        Ok((HpkePublicKey(public.to_bytes().to_vec()), private.to_bytes().to_vec().into()))
    }

    fn suite(&self) -> HpkeSuite {
        let sym = HpkeSymmetricCipherSuite { kdf_id: HpkeKdf::HKDF_SHA256, aead_id: self.id };
        HpkeSuite { kem: HpkeKem::DHKEM_X25519_HKDF_SHA256, sym }
    }
}

impl<A: Aead + 'static> HpkeSealer for SuiteSealer<A>
where
    AeadCtxS<A, SuiteKdf, SuiteKem>: Send + Sync,
{
    fn seal(&mut self, aad: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        self.0.seal(plaintext, aad).map_err(failed)
    }
}

impl<A: Aead + 'static> HpkeOpener for SuiteOpener<A>
where
    AeadCtxR<A, SuiteKdf, SuiteKem>: Send + Sync,
{
    fn open(&mut self, aad: &[u8], ciphertext: &[u8]) -> Result<Vec<u8>, Error> {
        self.0.open(ciphertext, aad).map_err(failed)
    }
}

/// The suite of GREASE (RFC 9849 §6.2), which encrypts nothing: what it sends looks like what the first suite sends, and
/// takes a fifth of its time.
#[derive(Debug)]
pub(super) struct GreaseSuite;

const ENCRYPTS_NOTHING: &str = "GREASE encrypts nothing";

impl Hpke for GreaseSuite {
    fn setup_sealer(
        &self,
        _: &[u8],
        _: &HpkePublicKey,
    ) -> Result<(EncapsulatedSecret, Box<dyn HpkeSealer + 'static>), Error> {
        // The public half of a new key, as an encapsulated secret is: not every number of that length is one.
        let secret = EncapsulatedSecret(X25519.start()?.pub_key().to_vec());
        Ok((secret, Box::new(GreaseSuite)))
    }

    fn seal(
        &self,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &HpkePublicKey,
    ) -> Result<(EncapsulatedSecret, Vec<u8>), Error> {
        Err(Error::General(ENCRYPTS_NOTHING.to_owned()))
    }

    fn open(
        &self,
        _: &EncapsulatedSecret,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &HpkePrivateKey,
    ) -> Result<Vec<u8>, Error> {
        Err(Error::General(ENCRYPTS_NOTHING.to_owned()))
    }

    fn setup_opener(
        &self,
        _: &EncapsulatedSecret,
        _: &[u8],
        _: &HpkePrivateKey,
    ) -> Result<Box<dyn HpkeOpener + 'static>, Error> {
        Err(Error::General(ENCRYPTS_NOTHING.to_owned()))
    }

    fn generate_key_pair(&self) -> Result<(HpkePublicKey, HpkePrivateKey), Error> {
        Err(Error::General(ENCRYPTS_NOTHING.to_owned()))
    }

    fn suite(&self) -> HpkeSuite {
        HPKE_SUITES[0].suite()
    }
}

impl HpkeSealer for GreaseSuite {
    fn seal(&mut self, _: &[u8], _: &[u8]) -> Result<Vec<u8>, Error> {
        Err(Error::General(ENCRYPTS_NOTHING.to_owned()))
    }
}

fn failed(error: HpkeError) -> Error {
    Error::General(format!("HPKE: {error}"))
}

impl<A> fmt::Debug for X25519Suite<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("X25519Suite").field(&self.id).finish()
    }
}

impl<A: Aead> fmt::Debug for SuiteSealer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuiteSealer").finish_non_exhaustive()
    }
}

impl<A: Aead> fmt::Debug for SuiteOpener<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuiteOpener").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_with_each_suite() {
        for suite in HPKE_SUITES {
            let (public, private) = suite.generate_key_pair().expect("randomness");
            let (secret, mut sealer) = suite.setup_sealer(b"info", &public).expect("a key");
            let mut opener = suite.setup_opener(&secret, b"info", &private).expect("a key");
            // A second ClientHello is sealed with the same context (RFC 9849 §6.1.5).
            for text in [b"first".as_slice(), b"second"] {
                let sealed = sealer.seal(b"outer", text).expect("room");
                assert_eq!(opener.open(b"outer", &sealed).expect("intact"), text);
            }
            let (secret, sealed) = suite.seal(b"info", b"outer", b"x", &public).expect("a key");
            let open = |aad: &[u8]| suite.open(&secret, b"info", aad, &sealed, &private);
            assert_eq!(open(b"outer").expect("intact"), b"x");
            assert!(open(b"other").is_err());
        }
    }

    #[test]
    fn the_vector_of_the_rfc_is_opened() {
        // RFC 9180 §A.1.1, with its first encryption.
        let bytes = |hex: &str| -> Vec<u8> {
            let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
            (0..hex.len()).step_by(2).map(digit).collect()
        };
        let info = bytes("4f6465206f6e2061204772656369616e2055726e");
        let secret = bytes("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431");
        let private = bytes("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8");
        let sealed = bytes(
            "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a9\
             6d8770ac83d07bea87e13c512a",
        );
        let opened = HPKE_SUITES[0].open(
            &EncapsulatedSecret(secret),
            &info,
            &bytes("436f756e742d30"),
            &sealed,
            &private.into(),
        );
        assert_eq!(opened.expect("the vector"), b"Beauty is truth, truth beauty");
    }

    #[test]
    fn keys_that_are_none_are_errors() {
        for key in [&[][..], &[1; 31], &[1; 33], &[0; 32]] {
            assert!(HPKE_SUITES[0].setup_sealer(b"", &HpkePublicKey(key.to_vec())).is_err());
        }
    }
}
