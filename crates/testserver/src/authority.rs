//! The certificates of a test: an authority, with valid and invalid certificates.

use eyas_http::serve::{ServeError, ServerIdentity};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::ServerCredentials;

/// The name in certificates for another host.
const OTHER_NAME: &str = "other.test";

/// A generated certificate authority.
pub struct TestAuthority {
    root: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    names: Vec<String>,
}

impl TestAuthority {
    /// Creates an authority whose valid certificates are for these names and addresses, and also
    /// for `localhost`, 127.0.0.1 and ::1.
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Result<Self, ServeError> {
        let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
        all.extend(names.into_iter().map(Into::into));
        let (root, issuer) = authority("eyas test authority")?;
        Ok(Self { root, issuer, names: all })
    }

    /// Returns the root certificate that a client must trust.
    pub fn root(&self) -> &CertificateDer<'static> {
        &self.root
    }

    /// Returns a server's certificate and key.
    pub fn identity(&self, credentials: ServerCredentials) -> Result<ServerIdentity, ServeError> {
        let names = match credentials {
            ServerCredentials::WrongName => vec![OTHER_NAME.to_owned()],
            _ => self.names.clone(),
        };
        let key = KeyPair::generate().map_err(unusable)?;
        let mut params = CertificateParams::new(names).map_err(unusable)?;
        params.distinguished_name.push(DnType::CommonName, "eyas test server");
        if credentials == ServerCredentials::Expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let certificate = if credentials == ServerCredentials::UnknownIssuer {
            let (_, untrusted) = authority("untrusted test authority")?;
            params.signed_by(&key, &untrusted)
        } else {
            params.signed_by(&key, &self.issuer)
        };
        let certificate = certificate.map_err(unusable)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        ServerIdentity::from_der(vec![certificate.der().clone()], key.into()).map_err(unusable)
    }
}

impl std::fmt::Debug for TestAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestAuthority").field("names", &self.names).finish_non_exhaustive()
    }
}

fn authority(
    name: &str,
) -> Result<(CertificateDer<'static>, Issuer<'static, KeyPair>), ServeError> {
    let key = KeyPair::generate().map_err(unusable)?;
    let mut params = CertificateParams::new(Vec::new()).map_err(unusable)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let root = params.self_signed(&key).map_err(unusable)?;
    Ok((root.der().clone(), Issuer::new(params, key)))
}

fn unusable(cause: impl std::fmt::Display) -> ServeError {
    ServeError::Identity(cause.to_string())
}
