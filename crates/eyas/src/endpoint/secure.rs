//! TLS over a stream that the caller supplies, such as a tunnel through a proxy.

use eyas_race::candidate::{AlpnName, Security};
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use eyas_race::target::TargetHost;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Endpoint;
use crate::attempt::{server_name, tls};
use crate::ech::EchAttempt;
use crate::failure::failure;
use crate::security::observed;

impl Endpoint {
    /// Establishes TLS over `stream`, with the security parameters of the endpoint. The certificate
    /// must be valid for `host`. Records are not asked for: the ClientHello is encrypted if [the
    /// parameters](crate::SecurityParameters::with_ech) have the configurations, and there is no other try.
    ///
    /// # Errors
    /// Returns why the handshake failed, as an attempt of a race would.
    pub async fn secure<S>(
        &self,
        stream: S,
        host: &TargetHost,
        alpn: &[AlpnName],
    ) -> Result<TlsStream<S>, AttemptFailure>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = server_name(host).map_err(|error| {
            failure(FailureCause::Certificate, EvidenceLevel::Transport, error.to_string())
        })?;
        let connector = &self.shared.connector;
        let ech =
            EchAttempt::begin(Security::Tls, None, connector.ech(), connector.has_tls13_alone())?;
        let config = connector.stream_tls(alpn, ech.offer()).map_err(|error| {
            failure(FailureCause::Unsupported, EvidenceLevel::Transport, error.to_string())
        })?;
        let connecting = TlsConnector::from(config.tls).connect(name.clone(), stream);
        let (secured, rejection) = observed(connecting).await;
        secured.map_err(|error| {
            let reached = EvidenceLevel::Transport;
            let failure = tls::handshake_failure(&error, reached, &ech, Some(&name), rejection);
            ech.end().err().unwrap_or(failure)
        })
    }
}
