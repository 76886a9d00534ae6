//! Private keys in PEM, plain or encrypted.

use aes::{Aes128, Aes192, Aes256};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};
use des::TdesEde3;
use md5::{Digest, Md5};
use pkcs8::der::Decode;
use pkcs8::{EncryptedPrivateKeyInfoRef, ObjectIdentifier, PrivateKeyInfoRef};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

use crate::Error;

/// The kinds of keys that the provider of cryptography has no implementation of.
const UNSUPPORTED: [(ObjectIdentifier, &str); 4] = [
    (ObjectIdentifier::new_unwrap("1.3.132.0.35"), "P-521"),
    (ObjectIdentifier::new_unwrap("1.3.132.0.10"), "secp256k1"),
    (ObjectIdentifier::new_unwrap("1.3.101.113"), "Ed448"),
    (ObjectIdentifier::new_unwrap("1.2.840.10040.4.1"), "DSA"),
];

/// Reads the first private key (PKCS #8, PKCS #1 or SEC 1) from a PEM text. An encrypted key is an
/// error that says so.
pub fn private_key_from_pem(pem: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    private_key(pem, None)
}

/// Reads the first private key from a PEM text, and decrypts it with this passphrase if it is
/// encrypted: in PKCS #8 (RFC 5958 §3, with PBES2), or as OpenSSL used to (`Proc-Type: 4,ENCRYPTED`).
///
/// # Errors
/// Says so if the passphrase is wrong, or the encryption is not supported.
pub fn private_key_from_encrypted_pem(
    pem: &[u8],
    passphrase: impl AsRef<[u8]>,
) -> Result<PrivateKeyDer<'static>, Error> {
    private_key(pem, Some(passphrase.as_ref()))
}

fn private_key(pem: &[u8], passphrase: Option<&[u8]>) -> Result<PrivateKeyDer<'static>, Error> {
    let key = match EncryptedKey::find(pem) {
        None => PrivateKeyDer::from_pem_slice(pem)
            .map_err(|error| unusable(pem_fault(&error, "private key")))?,
        Some(encrypted) => match passphrase {
            Some(passphrase) => encrypted?.decrypt(passphrase)?,
            None => return Err(Error::PassphraseNeeded),
        },
    };
    match unsupported_kind(&key) {
        Some(kind) => Err(unusable(format!(
            "{kind} keys are not supported: use P-256, P-384, Ed25519 or RSA"
        ))),
        None => match rustls::crypto::ring::sign::any_supported_type(&key) {
            Ok(_) => Ok(key),
            Err(_) => Err(unusable(
                "the private key cannot be read: it is damaged, or none of P-256, P-384, Ed25519 and RSA",
            )),
        },
    }
}

/// Describes what is wrong with a PEM text (RFC 7468) that should hold one of these.
pub(crate) fn pem_fault(error: &pem::Error, what: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("the PEM text holds no {what}"),
        pem::Error::MissingSectionEnd { .. } => {
            format!("the PEM text of the {what} is cut off: its line -----END is missing")
        }
        pem::Error::IllegalSectionStart { .. } => {
            format!("the PEM text of the {what} has a damaged line -----BEGIN")
        }
        pem::Error::Base64Decode(_) => format!("the base64 of the {what} is damaged"),
        _ => format!("the PEM text of the {what} cannot be read"),
    }
}

fn unusable(why: impl Into<String>) -> Error {
    Error::Identity(why.into())
}

/// Returns an error with the command that converts the key.
fn unsupported_encryption(name: &str, is_legacy: bool) -> Error {
    let providers = if is_legacy { " -provider legacy -provider default" } else { "" };
    unusable(format!(
        "the private key is encrypted with {name}, which is not supported: convert it with \
         openssl pkey -in KEY -aes256 -out NEW{providers}"
    ))
}

/// Returns what kind of key this is, if nothing here can use it.
fn unsupported_kind(key: &PrivateKeyDer<'_>) -> Option<&'static str> {
    let named = |oid| UNSUPPORTED.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name);
    match key {
        PrivateKeyDer::Pkcs8(der) => {
            let info = PrivateKeyInfoRef::from_der(der.secret_pkcs8_der()).ok()?;
            let curve = info.algorithm.parameters_oid().ok().and_then(named);
            curve.or_else(|| named(info.algorithm.oid))
        }
        PrivateKeyDer::Sec1(der) => {
            let curve = sec1::EcPrivateKey::from_der(der.secret_sec1_der()).ok()?.parameters?;
            named(curve.named_curve()?)
        }
        _ => None,
    }
}

/// An encrypted key in a PEM text.
enum EncryptedKey {
    Pkcs8(Vec<u8>),
    /// RFC 1421 §4.6, as OpenSSL wrote it before PKCS #8.
    Legacy {
        label: &'static str,
        algorithm: String,
        iv: Vec<u8>,
        data: Vec<u8>,
    },
}

const LEGACY_LABELS: [&str; 3] = ["RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY"];

impl EncryptedKey {
    /// Returns the first private key, if it is encrypted.
    fn find(pem: &[u8]) -> Option<Result<Self, Error>> {
        let text = String::from_utf8_lossy(pem);
        let labels = LEGACY_LABELS.iter().chain(&["ENCRYPTED PRIVATE KEY", "PRIVATE KEY"]);
        let found = labels.filter_map(|label| {
            let begin = format!("-----BEGIN {label}-----");
            let (at, (_, rest)) = (text.find(&begin)?, text.split_once(&begin)?);
            Some((at, *label, rest.split("-----END").next()?))
        });
        let (_, label, block) = found.min_by_key(|(at, ..)| *at)?;
        if label == "ENCRYPTED PRIVATE KEY" {
            return Some(octets(block).map(Self::Pkcs8));
        }
        let lines = || block.lines().map(str::trim);
        let field = |name: &str| {
            lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
        };
        field("Proc-Type").filter(|value| value.ends_with("ENCRYPTED"))?;
        let data: String = lines().filter(|line| !line.contains(':')).collect();
        let parsed = field("DEK-Info").and_then(|info| {
            let (algorithm, iv) = info.split_once(',')?;
            Some((algorithm.trim().to_owned(), hex(iv.trim())?))
        });
        Some(match parsed {
            Some((algorithm, iv)) => {
                octets(&data).map(|data| Self::Legacy { label, algorithm, iv, data })
            }
            None => Err(unusable("the private key is encrypted, but does not say how")),
        })
    }

    fn decrypt(self, passphrase: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
        let wrong = || unusable("the passphrase does not fit the private key");
        match self {
            Self::Pkcs8(der) => {
                if let Some((name, is_legacy)) = scheme::unsupported(&der) {
                    return Err(unsupported_encryption(&name, is_legacy));
                }
                let info = EncryptedPrivateKeyInfoRef::try_from(&der[..]).map_err(|error| {
                    unusable(format!("the encrypted private key cannot be read: {error}"))
                })?;
                let plain = info.decrypt(passphrase).map_err(|_| wrong())?;
                Ok(PrivatePkcs8KeyDer::from(plain.as_bytes().to_vec()).into())
            }
            Self::Legacy { label, algorithm, iv, data } => {
                let plain = decrypt_legacy(&algorithm, &iv, &data, passphrase)?;
                let plain = plain.filter(|plain| is_sequence(plain)).ok_or_else(wrong)?;
                match label {
                    "RSA PRIVATE KEY" => Ok(PrivatePkcs1KeyDer::from(plain).into()),
                    "EC PRIVATE KEY" => Ok(PrivateSec1KeyDer::from(plain).into()),
                    _ => Err(unusable("DSA keys are not supported")),
                }
            }
        }
    }
}

/// Decrypts what OpenSSL encrypted; `None` if the padding is wrong.
fn decrypt_legacy(
    algorithm: &str,
    iv: &[u8],
    data: &[u8],
    passphrase: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    fn open<D: KeyIvInit + BlockModeDecrypt>(
        key: &[u8],
        iv: &[u8],
        data: &[u8],
    ) -> Option<Vec<u8>> {
        let mut data = data.to_vec();
        let decryptor = D::new_from_slices(key, iv).ok()?;
        Some(decryptor.decrypt_padded::<Pkcs7>(&mut data).ok()?.to_vec())
    }
    let Some(salt) = iv.get(..8) else {
        return Err(unusable("the private key is encrypted, but its DEK-Info has no salt"));
    };
    let key = |length| derive(passphrase, salt, length);
    Ok(match algorithm {
        "AES-128-CBC" => open::<Decryptor<Aes128>>(&key(16), iv, data),
        "AES-192-CBC" => open::<Decryptor<Aes192>>(&key(24), iv, data),
        "AES-256-CBC" => open::<Decryptor<Aes256>>(&key(32), iv, data),
        "DES-EDE3-CBC" => open::<Decryptor<TdesEde3>>(&key(24), iv, data),
        other => {
            let shown: String = other.chars().filter(|letter| letter.is_ascii_graphic()).collect();
            let is_legacy = ["DES-CBC", "DES-CFB", "DES-OFB", "RC2", "BF", "CAST", "IDEA", "SEED"]
                .iter()
                .any(|name| shown.starts_with(name));
            return Err(unsupported_encryption(&format!("{shown:.40}"), is_legacy));
        }
    })
}

/// OpenSSL's `EVP_BytesToKey` with MD5 and one round.
fn derive(passphrase: &[u8], salt: &[u8], length: usize) -> Vec<u8> {
    let mut key = Vec::new();
    let mut last = Vec::new();
    while key.len() < length {
        last = Md5::new()
            .chain_update(&last)
            .chain_update(passphrase)
            .chain_update(salt)
            .finalize()
            .to_vec();
        key.extend_from_slice(&last);
    }
    key.truncate(length);
    key
}

/// Returns whether this is one whole DER sequence: one in 256 wrong passphrases leaves a valid
/// padding.
fn is_sequence(der: &[u8]) -> bool {
    pkcs8::der::asn1::AnyRef::from_der(der)
        .is_ok_and(|any| pkcs8::der::Tagged::tag(&any) == pkcs8::der::Tag::Sequence)
}

fn octets(base64: &str) -> Result<Vec<u8>, Error> {
    let text: String = base64.chars().filter(|letter| !letter.is_whitespace()).collect();
    let decoded = BASE64_STANDARD.decode(text);
    decoded.map_err(|error| unusable(format!("not a PEM private key: {error}")))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|it| it as u8)).collect::<Option<_>>()?;
    digits
        .len()
        .is_multiple_of(2)
        .then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[path = "private_key/scheme.rs"]
mod scheme;
#[cfg(test)]
#[path = "private_key/tests.rs"]
mod tests;
