//! TLS over a stream that the caller supplies, such as a tunnel through a proxy.

use eyas_race::candidate::Alpn;
use eyas_race::evidence::{Cause, Failure, Level};
use eyas_race::target::Host;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Endpoint;
use crate::attempt::server_name;
use crate::failure::{failure, io_failure};

impl Endpoint {
    /// Establishes TLS over `stream`, with the security parameters of the endpoint. The certificate
    /// must be valid for `host`.
    ///
    /// # Errors
    /// Returns why the handshake failed, as an attempt of a race would.
    pub async fn secure<S>(
        &self,
        stream: S,
        host: &Host,
        alpn: &[Alpn],
    ) -> Result<TlsStream<S>, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = server_name(host)
            .map_err(|detail| failure(Cause::Certificate, Level::Transport, detail))?;
        let connector = &self.shared.connector;
        TlsConnector::from(connector.stream_tls(alpn)).connect(name.clone(), stream).await.map_err(
            |error| connector.rejections().explain(io_failure(&error, Level::Transport), &Ok(name)),
        )
    }
}
