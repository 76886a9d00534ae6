//! The identity of a server: a certificate chain and its key.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyas_race::target::TargetHost;
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::DtlsIdentity;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::CertificateError;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_cert::Certificate;
use x509_cert::der::{Decode, pem};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use crate::Error;
use crate::private_key::{pem_fault, private_key_from_encrypted_pem, private_key_from_pem};
use crate::security::{ClientKeyVerifier, ClientKeys, KeyExchangeGroups};

/// The prefix of the subject of a generated certificate.
const SELF_SIGNED_FOR: &str = "eyas self-signed for ";

/// The maximum length of a common name (X.520, ub-common-name), in characters.
const MAX_COMMON_NAME: usize = 64;

/// How long a generated certificate is valid, from [`CLOCK_TOLERANCE`] before it was generated. Apple's systems
/// reject a server certificate that is valid for more than 825 days, whoever trusts it, and those of a public
/// authority above 398 days, as browsers do: the shorter limit suits everybody.
const VALIDITY: Duration = Duration::from_secs(397 * 86_400);

/// How far the clock of a peer may be behind.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(86_400);

/// The certificate chain and private key of a server.
#[derive(Clone)]
pub struct ServerIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
}

impl ServerIdentity {
    /// Generates a key and a self-signed certificate for these DNS names and IP addresses. The
    /// certificate's subject says that it was generated, and contains the first name. It is valid
    /// for 396 days from now.
    ///
    /// Clients must be configured to trust it: see [`certificate`](Self::certificate) and
    /// [`SecurityParameters::with_added_root`](crate::SecurityParameters::with_added_root).
    pub fn self_signed<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Result<Self, Error> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let subject = match names.first() {
            Some(name) => format!("{SELF_SIGNED_FOR}{name}"),
            None => format!("{SELF_SIGNED_FOR}no name"),
        };
        Self::generate(names, subject.chars().take(MAX_COMMON_NAME).collect())
    }

    pub(crate) fn generate(names: Vec<String>, subject: String) -> Result<Self, Error> {
        let key = KeyPair::generate().map_err(unusable)?;
        let names =
            names.iter().map(|name| certificate_name(name)).collect::<Result<Vec<_>, _>>()?;
        let mut params = CertificateParams::new(names).map_err(unusable)?;
        params.distinguished_name.push(DnType::CommonName, subject);
        let not_before = SystemTime::now() - CLOCK_TOLERANCE;
        params.not_before = not_before.into();
        params.not_after = (not_before + VALIDITY).into();
        // Apple's systems require that of servers; the peers of a tunnel use it as clients, too.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.self_signed(&key).map_err(unusable)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Self { chain: vec![certificate.der().clone()], key: Arc::new(key.into()) })
    }

    /// Reads a certificate chain, end-entity certificate first, and its private key, both in PEM
    /// (RFC 7468).
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let chain = certificates_from_pem(chain)?;
        let key = private_key_from_pem(key)?;
        Ok(Self { chain, key: Arc::new(key) })
    }

    /// The same for a key that may be encrypted with this passphrase: see
    /// [`private_key_from_encrypted_pem`](crate::private_key_from_encrypted_pem).
    pub fn from_encrypted_pem(
        chain: &[u8],
        key: &[u8],
        passphrase: impl AsRef<[u8]>,
    ) -> Result<Self, Error> {
        let chain = certificates_from_pem(chain)?;
        let key = private_key_from_encrypted_pem(key, passphrase)?;
        Ok(Self { chain, key: Arc::new(key) })
    }

    /// Creates an identity from a DER certificate chain, end-entity certificate first, and its
    /// private key.
    pub fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, Error> {
        if chain.is_empty() {
            return Err(Error::Identity("the certificate chain is empty".into()));
        }
        Ok(Self { chain, key: Arc::new(key) })
    }

    /// Returns the end-entity certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.chain[0]
    }

    /// Returns the end-entity certificate in PEM (RFC 7468), for those who are to trust it.
    pub fn certificate_pem(&self) -> Result<String, Error> {
        pem::encode_string("CERTIFICATE", pem::LineEnding::LF, self.certificate()).map_err(unusable)
    }

    /// Returns the whole chain, end-entity certificate first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// Returns the DNS names of the end-entity certificate, which may begin with `*.`: those of its
    /// subject alternative name (RFC 5280 §4.2.1.6).
    pub fn dns_names(&self) -> Vec<String> {
        let Ok(certificate) = Certificate::from_der(self.certificate()) else { return Vec::new() };
        let parts = certificate.tbs_certificate();
        let names = parts.get_extension::<SubjectAltName>().ok().flatten();
        let names = names.into_iter().flat_map(|(_, names)| names.0);
        let dns = names.filter_map(|name| match name {
            GeneralName::DnsName(name) => Some(name.to_string()),
            _ => None,
        });
        dns.collect()
    }

    /// Returns when the end-entity certificate expires, or `None` if it cannot be parsed.
    pub fn expires(&self) -> Option<SystemTime> {
        let certificate = Certificate::from_der(self.certificate()).ok()?;
        let validity = certificate.tbs_certificate().validity();
        Some(SystemTime::UNIX_EPOCH + validity.not_after.to_unix_duration())
    }

    /// Returns whether this identity can serve SCTP over DTLS, which requires an ECDSA key.
    #[cfg(feature = "sctp")]
    pub fn suits_dtls(&self) -> bool {
        self.dtls_identity().is_ok()
    }

    /// Returns the same identity for SCTP over DTLS.
    ///
    /// # Errors
    /// If its key is not an ECDSA key.
    #[cfg(feature = "sctp")]
    pub fn dtls_identity(&self) -> Result<DtlsIdentity, Error> {
        Ok(DtlsIdentity::new(self.certificate(), &self.key)?)
    }

    /// Returns the same for clients that must present one of these keys. It supports only TLS 1.3,
    /// and every handshake is a full one, because a resumed session would not request the key
    /// again.
    pub(crate) fn server_config_for(
        &self,
        clients: &ClientKeys,
        groups: &KeyExchangeGroups,
    ) -> Result<rustls::ServerConfig, Error> {
        let provider = Arc::new(groups.provider()?);
        let verifier = Arc::new(ClientKeyVerifier::new(&provider, clients.clone()));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| {
                builder
                    .with_client_cert_verifier(verifier)
                    .with_single_cert(self.chain.clone(), self.key.clone_key())
            })
            .map_err(unusable_pair)?;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Returns the private key in PEM (RFC 7468). Write it only to files that nobody else can read.
    pub fn key_pem(&self) -> Result<String, Error> {
        let label = match *self.key {
            PrivateKeyDer::Pkcs8(_) => "PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            _ => return Err(Error::Identity("the key is of a kind that has no PEM here".into())),
        };
        pem::encode_string(label, pem::LineEnding::LF, self.key.secret_der()).map_err(unusable)
    }

    /// Returns the private key as bytes, to derive other secrets from.
    #[cfg(feature = "quic")]
    pub(crate) fn secret(&self) -> &[u8] {
        self.key.secret_der()
    }

    /// Returns the private key, for using this identity as a client.
    pub fn private_key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }

    /// Returns a rustls configuration for this identity: TLS 1.2 and 1.3, without ALPN.
    pub fn server_config(&self) -> Result<rustls::ServerConfig, Error> {
        self.config_for_all(&KeyExchangeGroups::default())
    }

    /// Returns the same with these groups, for the versions of TLS that can do that.
    pub(crate) fn config_for_all(
        &self,
        groups: &KeyExchangeGroups,
    ) -> Result<rustls::ServerConfig, Error> {
        rustls::ServerConfig::builder_with_provider(Arc::new(groups.provider()?))
            .with_protocol_versions(groups.versions())
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(self.chain.clone(), self.key.clone_key())
            })
            .map_err(unusable_pair)
    }
}

impl std::fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerIdentity")
            .field("certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

/// Reads all certificates from a PEM text. It is an error if there are none.
pub fn certificates_from_pem(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::Identity(pem_fault(&error, "certificate")))?;
    if chain.is_empty() {
        return Err(Error::Identity("the PEM text holds no certificate".into()));
    }
    let is_damaged = |certificate| {
        let parsed = rustls::server::ParsedCertificate::try_from(certificate);
        matches!(parsed, Err(rustls::Error::InvalidCertificate(CertificateError::BadEncoding)))
    };
    if let Some(at) = chain.iter().position(is_damaged) {
        let text = format!("certificate {} of {} is damaged", at + 1, chain.len());
        return Err(Error::Identity(text));
    }
    Ok(chain)
}

/// Returns whether a certificate claims to be generated by [`ServerIdentity::self_signed`].
pub fn is_self_signed_by_eyas(certificate: &CertificateDer<'_>) -> bool {
    let Ok(certificate) = Certificate::from_der(certificate) else { return false };
    let parts = certificate.tbs_certificate();
    let name = parts.subject().common_name().ok().flatten();
    parts.subject() == parts.issuer()
        && name.is_some_and(|name| name.value().starts_with(SELF_SIGNED_FOR))
}

/// Returns a name as certificates have it: an international one in its form for DNS (RFC 5280 §7.2).
fn certificate_name(name: &str) -> Result<String, Error> {
    let (wildcard, rest) = match name.strip_prefix("*.") {
        Some(rest) => ("*.", rest),
        None => ("", name),
    };
    match TargetHost::parse(rest) {
        Ok(TargetHost::Name(host)) => Ok(format!("{wildcard}{host}")),
        Ok(TargetHost::Literal(address, 0)) if wildcard.is_empty() => Ok(address.to_string()),
        _ => Err(Error::Identity(format!(
            "{name:?} cannot be in a certificate: give a host such as example.org, or an address"
        ))),
    }
}

fn unusable(error: impl std::fmt::Display) -> Error {
    Error::Identity(error.to_string())
}

fn unusable_pair(error: rustls::Error) -> Error {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            Error::Identity("the private key is not that of the certificate".into())
        }
        other => match Error::from(other) {
            Error::Security(why) => Error::Identity(why),
            other => other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_self_signed_certificate_contains_its_names() {
        let name = format!("{}.test", "x".repeat(60));
        for (names, subject) in [
            (vec!["peer.test", "127.0.0.1"], "CN=eyas self-signed for peer.test".to_owned()),
            (vec![name.as_str()], format!("CN=eyas self-signed for {}", "x".repeat(43))),
            (vec![], "CN=eyas self-signed for no name".to_owned()),
        ] {
            let identity = ServerIdentity::self_signed(names.clone()).expect("an identity");
            let parsed = Certificate::from_der(identity.certificate()).expect("a certificate");
            assert_eq!(parsed.tbs_certificate().subject().to_string(), subject);
            assert!(is_self_signed_by_eyas(identity.certificate()));
            let dns: Vec<_> = names.iter().filter(|name| **name != "127.0.0.1").copied().collect();
            assert_eq!(identity.dns_names(), dns);
            let pem = identity.certificate_pem().expect("PEM");
            assert_eq!(certificates_from_pem(pem.as_bytes()).expect("reads"), identity.chain);
        }
    }

    #[test]
    fn damaged_files_are_described() {
        let identity = ServerIdentity::self_signed(["a.test"]).expect("an identity");
        let certificate = identity.certificate_pem().expect("PEM");
        let whole = certificates_from_pem(certificate.as_bytes());
        assert_eq!(whole.expect("reads"), identity.chain);
        let begin = "-----BEGIN CERTIFICATE-----\n";
        let end = "-----END CERTIFICATE-----\n";
        for (text, expected) in [
            (String::new(), "holds no certificate"),
            (format!("{begin}aGVsbG8=\n"), "its line -----END is missing"),
            (format!("{begin}*\n{end}"), "base64 of the certificate is damaged"),
            (format!("-----BEGIN \n{end}"), "damaged line -----BEGIN"),
            (format!("{certificate}{begin}aGVsbG8=\n{end}"), "certificate 2 of 2 is damaged"),
        ] {
            let fault = certificates_from_pem(text.as_bytes()).expect_err(&text).to_string();
            assert!(fault.contains(expected) && !fault.contains('['), "{fault}");
        }
        let key = text_of_key("aGVsbG8=");
        let fault = private_key_from_pem(key.as_bytes()).expect_err("damaged").to_string();
        assert!(fault.contains("it is damaged, or none of P-256"), "{fault}");
    }

    fn text_of_key(base64: &str) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{base64}\n-----END PRIVATE KEY-----\n")
    }

    #[test]
    fn a_key_of_another_certificate_is_named() {
        let [one, other] = ["a.test", "b.test"]
            .map(|name| ServerIdentity::self_signed([name]).expect("an identity"));
        let mixed = ServerIdentity::from_der(one.chain.clone(), other.private_key());
        let fault = mixed.and_then(|mixed| mixed.server_config()).expect_err("mixed").to_string();
        assert!(fault.contains("the private key is not that of the certificate"), "{fault}");
    }

    #[test]
    fn names_are_those_of_hosts() {
        let identity = ServerIdentity::self_signed(["*.Bücher.example", "[::1]", "a.test."]);
        let identity = identity.expect("an identity");
        let text = String::from_utf8_lossy(identity.certificate()).into_owned();
        for name in ["*.xn--bcher-kva.example", "a.test"] {
            assert!(text.contains(name), "{name}");
        }
        for name in ["a b", "a..b", "", "*.::1", "\u{7f}"] {
            let refused = ServerIdentity::self_signed([name]).expect_err(name).to_string();
            assert!(refused.contains(&format!("{name:?} cannot be in a certificate")), "{refused}");
        }
    }

    #[test]
    fn every_platform_accepts_the_validity_of_a_self_signed_certificate() {
        let identity = ServerIdentity::self_signed(["peer.test"]).expect("an identity");
        let parsed = Certificate::from_der(identity.certificate()).expect("a certificate");
        let validity = parsed.tbs_certificate().validity();
        let days = |time: Duration| time.as_secs() / 86_400;
        let (from, to) =
            (validity.not_before.to_unix_duration(), validity.not_after.to_unix_duration());
        assert_eq!(days(to - from), 397);
        let expires = identity.expires().expect("a date");
        let left = expires.duration_since(SystemTime::now()).expect("not yet");
        assert!(days(left) >= 365, "a server runs for a year");
    }

    #[test]
    fn other_certificates_are_not_recognised_as_generated_by_eyas() {
        let other = ServerIdentity::generate(Vec::new(), "nobody.invalid".to_owned());
        assert!(!is_self_signed_by_eyas(other.expect("an identity").certificate()));
        assert!(!is_self_signed_by_eyas(&CertificateDer::from(b"eyas self-signed for x".to_vec())));
    }
}
