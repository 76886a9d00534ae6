//! TLS over SCTP: one session for each pair of streams of the same number (RFC 3436 §4).

use std::fmt;

use eyas_race::evidence::{AttemptFailure, EvidenceLevel};
use eyas_sctp_tokio::{SctpAssociation, SctpStream};
use rustls_pki_types::ServerName;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::failure::io_failure;
use crate::security::{explained, observed};

/// How TLS sessions of an association are established; each side has the same role in all of them.
#[derive(Clone)]
pub(crate) enum Role {
    /// Checks the peer's certificate against this name.
    Client(TlsConnector, ServerName<'static>),
    /// Presents its own certificate.
    Server(TlsAcceptor),
}

impl Role {
    /// Starts a session on these streams; the peer must start one on the same streams.
    pub(crate) async fn secure(
        &self,
        stream: SctpStream,
    ) -> Result<TlsStream<SctpStream>, AttemptFailure> {
        match self {
            Self::Client(connector, name) => {
                let connecting = connector.connect(name.clone(), stream);
                let (secured, rejection) = observed(connecting).await;
                let secured = secured.map(TlsStream::from);
                secured.map_err(|error| {
                    explained(io_failure(&error, EvidenceLevel::Transport), rejection)
                })
            }
            Self::Server(acceptor) => {
                let accepted = acceptor.accept(stream).await.map(TlsStream::from);
                accepted.map_err(|error| io_failure(&error, EvidenceLevel::Transport))
            }
        }
    }
}

/// The session on stream 0, and how others are established.
pub(crate) struct Secured {
    pub(crate) tls: TlsStream<SctpStream>,
    role: Role,
}

impl Secured {
    pub(crate) fn new(tls: TlsStream<SctpStream>, role: Role) -> Self {
        Self { tls, role }
    }

    pub(crate) fn association(&self) -> &SctpAssociation {
        self.tls.get_ref().0.association()
    }

    pub(crate) fn role(&self) -> &Role {
        &self.role
    }
}

impl fmt::Debug for Secured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secured").field("stream", self.tls.get_ref().0).finish_non_exhaustive()
    }
}
