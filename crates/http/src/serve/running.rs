//! A running server, and how to stop it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use eyas_h3::code::ErrorCode;
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::SctpListener;
use http::HeaderValue;

#[cfg(feature = "sctp")]
use super::sctp;
use super::{
    ClientCertificates, ServeError, ServerIdentity, Stats, Versions, shared::Shared,
    stream_server::StreamServer, tls::Tls,
};

/// How long a stopped server waits for its QUIC endpoints to send their closes.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// A running server. Dropping it stops the server at once.
#[derive(Debug)]
pub struct Running {
    pub(super) shared: Arc<Shared>,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) versions: Versions,
    pub(super) tls: Option<Tls>,
    pub(super) endpoints: Vec<quinn::Endpoint>,
    #[cfg(feature = "sctp")]
    pub(super) sctp: sctp::Bound,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) streams: StreamServer,
}

impl Running {
    /// Returns the first address that it listens on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Returns all addresses that it listens on.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the versions of HTTP that it serves.
    pub fn versions(&self) -> Versions {
        self.versions
    }

    /// Returns the certificate and key with which it started, the first if there are several; `None`
    /// if it serves without TLS, or a resolver chooses its certificates.
    pub fn identity(&self) -> Option<&ServerIdentity> {
        self.tls.as_ref().and_then(Tls::identity)
    }

    /// Uses another certificate and key from the next handshake on, over every transport.
    /// Connections go on, and sessions can still be resumed.
    ///
    /// # Errors
    /// [`ServeError::NoOwnIdentity`] if the server has none, and [`ServeError::Identity`] if this
    /// one cannot be used, which for SCTP inside DTLS is a key other than ECDSA; the old one then
    /// stays everywhere.
    pub fn replace_identity(&self, identity: &ServerIdentity) -> Result<(), ServeError> {
        self.replace_identities(std::slice::from_ref(identity))
    }

    /// The same for several, among which the name that a client asks for chooses
    /// ([`ServerBuilder::identities`](super::ServerBuilder::identities)). If SCTP is served inside DTLS,
    /// its certificate is the first.
    ///
    /// # Errors
    /// Those of [`replace_identity`](Self::replace_identity), and [`ServeError::NoOwnIdentity`] if there is none.
    pub fn replace_identities(&self, identities: &[ServerIdentity]) -> Result<(), ServeError> {
        let tls = self.tls.as_ref().ok_or(ServeError::NoOwnIdentity)?;
        #[cfg(feature = "sctp")]
        let first = identities.first().ok_or(ServeError::NoOwnIdentity)?;
        #[cfg(feature = "sctp")]
        let listener = self.sctp.listener.as_ref();
        #[cfg(feature = "sctp")]
        let listener = listener.filter(|_| tls.dtls_identity().is_some_and(|old| old.suits_dtls()));
        #[cfg(feature = "sctp")]
        let renewed = match listener {
            None => None,
            Some(listener) => {
                let identity = first.dtls_identity().map_err(|_| {
                    let why = "DTLS, which this server serves, needs an ECDSA key (P-256 or P-384)";
                    ServeError::identity(why)
                })?;
                Some((listener, identity))
            }
        };
        tls.replace(identities)?;
        #[cfg(feature = "sctp")]
        if let Some((listener, identity)) = renewed {
            listener.replace_identity(&identity);
        }
        Ok(())
    }

    /// Verifies the certificates of clients in this way from the next handshake on, over every
    /// transport. Connections go on.
    ///
    /// # Errors
    /// [`ServeError::ClientRoots`] if the roots cannot be used, or the server did not ask for
    /// certificates when it started; the old roots then stay.
    pub fn replace_client_certificates(
        &self,
        certificates: &ClientCertificates,
    ) -> Result<(), ServeError> {
        let tls = self.tls.as_ref().ok_or(ServeError::NoOwnIdentity)?;
        tls.replace_clients(certificates)
    }

    /// Returns the `Alt-Svc` field of its responses over HTTP/1 and HTTP/2, if there is one.
    pub fn alt_svc(&self) -> Option<&HeaderValue> {
        self.shared.alt_svc.as_ref()
    }

    /// Returns the SCTP listener, with its ports and counters, if SCTP is served.
    #[cfg(feature = "sctp")]
    pub fn sctp(&self) -> Option<&SctpListener> {
        self.sctp.listener.as_deref()
    }

    /// Returns why SCTP over UDP, or SCTP at all, is not served although it was requested: which
    /// process has the port, or the system's error.
    #[cfg(feature = "sctp")]
    pub fn sctp_missing(&self) -> Option<&str> {
        self.sctp.missing.as_deref()
    }

    /// Returns the address of its metrics, if they are served.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Returns a handle that serves streams accepted elsewhere. The handle keeps the server's
    /// resources, but serves nothing once the server has stopped.
    pub fn streams(&self) -> StreamServer {
        self.streams.clone()
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Stops accepting connections, tells peers to go elsewhere (`Connection: close`, GOAWAY), lets
    /// responses in progress finish for at most `grace`, and then closes the rest. Peers that have
    /// vanished are not waited for over QUIC. Returns the number of connections that were cut off.
    pub async fn shutdown(self, grace: Duration) -> usize {
        self.shared.drain.cancel();
        self.shared.tasks.close();
        let cut = match tokio::time::timeout(grace, self.shared.tasks.wait()).await {
            Ok(()) => 0,
            Err(_) => self.shared.admission.open(),
        };
        self.shared.abort.cancel();
        self.shared.tasks.wait().await;
        for endpoint in &self.endpoints {
            endpoint.close(h3_no_error(), b"the server has stopped");
            // Wait until the peers have been informed.
            let _ = tokio::time::timeout(CLOSE_TIME, endpoint.wait_idle()).await;
        }
        cut
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.drain.cancel();
        self.shared.abort.cancel();
        self.shared.workers.stop();
        self.shared.tasks.close();
        for endpoint in &self.endpoints {
            endpoint.close(h3_no_error(), b"the server has stopped");
        }
    }
}

fn h3_no_error() -> quinn::VarInt {
    quinn::VarInt::from_u64(ErrorCode::NoError.value()).unwrap_or_default()
}
