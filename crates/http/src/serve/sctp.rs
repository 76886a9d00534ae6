//! HTTP/1 over SCTP: each association is one connection, on its stream 0.

use std::{io, net::SocketAddr, pin::pin, sync::Arc};

use eyas_sctp_tokio::{
    ENCAPSULATION_PORT, SctpAssociation, SctpListenParameters, SctpListener, SctpOverIp,
    protocol::identifier::StreamId,
};

use super::{
    Limits, ServeError, ServerIdentity, Transport, link::StreamInfo, metrics::Associations,
    shared::Shared, stats::Counters, stream, stream::Protocol,
};

/// The stream that carries HTTP.
const STREAM: StreamId = StreamId(0);

/// How SCTP is served besides TCP and QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SctpService {
    /// The UDP port for SCTP over UDP (RFC 6951), by default 9899. 0 chooses a free port, `None`
    /// disables it.
    pub encapsulation_port: Option<u16>,
    /// Whether SCTP is also served directly over IP.
    pub over_ip: SctpOverIp,
    /// Whether the server starts without SCTP if no socket for it can be opened.
    pub optional: bool,
}

impl Default for SctpService {
    fn default() -> Self {
        Self {
            encapsulation_port: Some(ENCAPSULATION_PORT),
            over_ip: SctpOverIp::IfPossible,
            optional: false,
        }
    }
}

impl SctpService {
    /// Serves SCTP over UDP at a free port, for tests.
    pub fn with_free_port() -> Self {
        Self { encapsulation_port: Some(0), over_ip: SctpOverIp::No, optional: false }
    }

    pub(super) fn bind(
        self,
        addresses: &[SocketAddr],
        dtls: Option<&ServerIdentity>,
        limits: &Limits,
    ) -> Result<Bound, ServeError> {
        let Some(first) = addresses.first().copied() else { return Ok(Bound::default()) };
        let mut parameters = SctpListenParameters::new(first);
        parameters.addresses = addresses.to_vec();
        parameters.encapsulation_port = self.encapsulation_port;
        parameters.over_ip = self.over_ip;
        parameters.association.shutdown_stall = Some(limits.idle_time);
        parameters.dtls = dtls.and_then(|identity| identity.dtls_identity().ok());
        match SctpListener::bind(&parameters) {
            Ok(listener) => Ok(Bound { listener: Some(Arc::new(listener)), missing: None }),
            Err(cause) if self.optional => {
                // A kernel that supports SCTP may occupy the UDP port.
                parameters.encapsulation_port = None;
                Ok(match SctpListener::bind(&parameters) {
                    Ok(listener) => Bound {
                        listener: Some(Arc::new(listener)),
                        missing: Some(cause.to_string()),
                    },
                    Err(directly) => {
                        let directly = eyas_sctp_tokio::direct_access()
                            .map_or_else(|missing| missing.to_string(), |_| directly.to_string());
                        let missing = format!("{cause}; directly over IP: {directly}");
                        Bound { listener: None, missing: Some(missing) }
                    }
                })
            }
            Err(cause) => Err(ServeError::Sctp { address: first, cause }),
        }
    }
}

/// The result of binding SCTP.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) listener: Option<Arc<SctpListener>>,
    /// Why SCTP inside UDP is not served, although it was requested.
    pub(super) missing: Option<String>,
}

impl Bound {
    /// Returns the port for SCTP inside UDP, if it is announced: without TLS no client would trust
    /// the announcement.
    pub(super) fn announced_port(&self, has_tls: bool) -> Option<u16> {
        self.listener.as_ref().filter(|_| has_tls)?.encapsulation_port()
    }

    /// Returns a function that counts the associations, if SCTP is served.
    pub(super) fn associations(&self) -> Option<Associations> {
        let listener = self.listener.clone()?;
        Some(Box::new(move || listener.associations() as u64))
    }
}

/// Accepts associations until the server stops.
pub(super) async fn accept(shared: Arc<Shared>, protocol: Protocol, listener: Arc<SctpListener>) {
    let mut draining = pin!(shared.drain.cancelled());
    let mut stopped = pin!(shared.abort.cancelled());
    // Inside DTLS the stream needs no TLS.
    let within_dtls = protocol.clone().encrypted_below();
    loop {
        let (association, protocol) = tokio::select! {
            association = listener.accept() => (association, &protocol),
            association = listener.accept_dtls() => (association, &within_dtls),
            () = &mut draining => return,
            () = &mut stopped => return,
        };
        Counters::count(&shared.counters.sctp_associations);
        let Some(remote) = association.remote() else { continue };
        let Some(permit) = shared.admission.admit(remote.ip(), Transport::Sctp) else {
            Counters::count(&shared.counters.connections_refused);
            association.abort("the server has too many connections");
            continue;
        };
        let (shared_task, protocol) = (Arc::clone(&shared), protocol.clone());
        shared.tasks.spawn(async move {
            let activity = permit.activity();
            let connection = Arc::clone(&activity);
            // The permit is held until the association has ended completely.
            association.keep_until_ended(permit);
            let transport = Transport::Sctp;
            let info = StreamInfo { remote, local: None, transport, is_encrypted: false, activity };
            let held = association.clone();
            let draining = shared_task.drain.clone();
            let serving = async {
                if let Err(error) = serve(shared_task, protocol, association, info).await {
                    tracing::debug!(%remote, %error, "an association ended before it was served");
                }
                // One with a request keeps its place until it has ended.
                if !connection.is_settled() {
                    tokio::select! {
                        _ = async { tokio::join!(held.shutdown(), discard(&held)) } => {}
                        () = draining.cancelled() => {}
                    }
                }
            };
            tokio::select! {
                biased;
                () = serving => {}
                // A graceful end would take as long as the peer likes.
                () = connection.eviction_ends() => held.abort("the place is needed"),
            }
        });
    }
}

/// Reads what nobody needs until the association ends.
async fn discard(association: &SctpAssociation) {
    while let Ok(Some(_)) = association.receive().await {}
}

async fn serve(
    shared: Arc<Shared>,
    protocol: Protocol,
    association: SctpAssociation,
    info: StreamInfo,
) -> io::Result<()> {
    let stream = association.stream(STREAM)?;
    drop(association);
    stream::serve_stream(shared, protocol, stream, info, None).await;
    Ok(())
}
