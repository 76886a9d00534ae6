//! Names how a PKCS #8 key is encrypted (RFC 8018 §6), for the message about what is not supported.

use pkcs8::der::asn1::{AnyRef, ObjectIdentifier};
use pkcs8::der::{self, Decode, Reader};
use pkcs8::pkcs5::pbes2::{self, PBES2_OID};
use pkcs8::spki::AlgorithmIdentifierRef;

/// RFC 8018 §B.1.2; the library keeps these to itself.
const HMAC_WITH_SHA224_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.2.8");
const HMAC_WITH_SHA256_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.2.9");
const HMAC_WITH_SHA384_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.2.10");
const HMAC_WITH_SHA512_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.2.11");

/// What is supported: PBES2, its ways to derive a key, and its ciphers.
const SUPPORTED: [ObjectIdentifier; 14] = [
    PBES2_OID,
    pbes2::PBKDF2_OID,
    pbes2::SCRYPT_OID,
    pbes2::HMAC_WITH_SHA1_OID,
    HMAC_WITH_SHA224_OID,
    HMAC_WITH_SHA256_OID,
    HMAC_WITH_SHA384_OID,
    HMAC_WITH_SHA512_OID,
    pbes2::AES_128_CBC_OID,
    pbes2::AES_192_CBC_OID,
    pbes2::AES_256_CBC_OID,
    pbes2::AES_128_GCM_OID,
    pbes2::AES_256_GCM_OID,
    pbes2::DES_EDE3_CBC_OID,
];

/// Others, as OpenSSL names them, and whether OpenSSL 3 leaves them to its legacy provider.
const OTHERS: [(&str, &str, bool); 30] = [
    ("1.2.840.113549.1.5.1", "pbeWithMD2AndDES-CBC", true),
    ("1.2.840.113549.1.5.4", "pbeWithMD2AndRC2-CBC", true),
    ("1.2.840.113549.1.5.3", "pbeWithMD5AndDES-CBC", true),
    ("1.2.840.113549.1.5.6", "pbeWithMD5AndRC2-CBC", true),
    ("1.2.840.113549.1.5.10", "pbeWithSHA1AndDES-CBC", true),
    ("1.2.840.113549.1.5.11", "pbeWithSHA1AndRC2-CBC", true),
    ("1.2.840.113549.1.12.1.1", "pbeWithSHA1And128BitRC4", true),
    ("1.2.840.113549.1.12.1.2", "pbeWithSHA1And40BitRC4", true),
    ("1.2.840.113549.1.12.1.3", "pbeWithSHA1And3-KeyTripleDES-CBC", false),
    ("1.2.840.113549.1.12.1.4", "pbeWithSHA1And2-KeyTripleDES-CBC", false),
    ("1.2.840.113549.1.12.1.5", "pbeWithSHA1And128BitRC2-CBC", true),
    ("1.2.840.113549.1.12.1.6", "pbeWithSHA1And40BitRC2-CBC", true),
    ("1.2.840.113549.2.6", "hmacWithMD5", false),
    ("1.2.840.113549.2.12", "hmacWithSHA512-224", false),
    ("1.2.840.113549.2.13", "hmacWithSHA512-256", false),
    ("1.2.156.10197.1.401.2", "hmacWithSM3", false),
    ("1.3.14.3.2.7", "des-cbc", true),
    ("1.2.840.113549.3.2", "rc2-cbc", true),
    ("1.2.840.113549.3.4", "rc4", true),
    ("1.3.6.1.4.1.3029.1.2", "bf-cbc", true),
    ("1.2.840.113533.7.66.10", "cast5-cbc", true),
    ("1.2.410.200004.1.4", "seed-cbc", true),
    ("1.2.392.200011.61.1.1.1.2", "camellia-128-cbc", false),
    ("1.2.392.200011.61.1.1.1.3", "camellia-192-cbc", false),
    ("1.2.392.200011.61.1.1.1.4", "camellia-256-cbc", false),
    ("1.2.410.200046.1.1.2", "aria-128-cbc", false),
    ("1.2.410.200046.1.1.12", "aria-256-cbc", false),
    ("1.2.156.10197.1.104.2", "sm4-cbc", false),
    ("2.16.840.1.101.3.4.1.44", "aes-256-cfb", false),
    ("2.16.840.1.101.3.4.1.43", "aes-256-ofb", false),
];

/// Returns what is not supported of the encryption of this `EncryptedPrivateKeyInfo`, and whether
/// OpenSSL 3 decrypts it only with its legacy provider; `None` if it is supported or unreadable.
pub(super) fn unsupported(der: &[u8]) -> Option<(String, bool)> {
    let unsupported = algorithms(der).ok()?.into_iter().find(|oid| !SUPPORTED.contains(oid))?;
    let known = OTHERS.iter().find(|(oid, ..)| ObjectIdentifier::new_unwrap(oid) == unsupported);
    Some(match known {
        Some((_, name, is_legacy)) => ((*name).to_owned(), *is_legacy),
        None => (format!("the algorithm {unsupported}"), false),
    })
}

/// Returns the scheme and, for PBES2, how the key is derived and the cipher (RFC 8018 §A.4).
fn algorithms(der: &[u8]) -> der::Result<Vec<ObjectIdentifier>> {
    AnyRef::from_der(der)?.sequence(|reader| {
        let scheme = AlgorithmIdentifierRef::decode(reader)?;
        let mut found = vec![scheme.oid];
        if let (PBES2_OID, Some(parameters)) = (scheme.oid, scheme.parameters) {
            parameters.sequence(|reader| -> der::Result<()> {
                let derivation = AlgorithmIdentifierRef::decode(reader)?;
                found.push(derivation.oid);
                found.extend(pseudo_random_function(&derivation));
                found.push(AlgorithmIdentifierRef::decode(reader)?.oid);
                Ok(())
            })?;
        }
        reader.read_slice(reader.remaining_len())?;
        Ok(found)
    })
}

/// Returns the pseudorandom function of PBKDF2 if it is not the default (RFC 8018 §A.2).
fn pseudo_random_function(derivation: &AlgorithmIdentifierRef<'_>) -> Option<ObjectIdentifier> {
    let parameters = derivation.parameters.filter(|_| derivation.oid == pbes2::PBKDF2_OID)?;
    let last = parameters.sequence(|reader| -> der::Result<_> {
        let mut last = None;
        while !reader.is_finished() {
            last = Some(AnyRef::decode(reader)?);
        }
        Ok(last)
    });
    Some(last.ok()??.decode_as::<AlgorithmIdentifierRef<'_>>().ok()?.oid)
}
