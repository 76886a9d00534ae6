//! Upgraded connections, whose data is forwarded in both directions without being parsed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use eyas_http::pipe::{PipeBody, PipeWriter, pipe};
use eyas_relay::copy::{ByteCounts, CopyStream, CopyUntil, bidirectional};
use futures_util::TryStreamExt as _;
use http::Response;
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::join;
use tokio_util::either::Either;
use tokio_util::io::StreamReader;

use crate::received::{Http3Received, ReceivedBody};
use crate::request_body::UploadBody;
use crate::response_body::ConnectionLease;
use crate::shared::SharedGateway;
use crate::stats::GatewayCounters;

/// The upstream's side of a tunnel.
pub(crate) struct UpstreamTunnel {
    stream: UpstreamStream,
    lease: ConnectionLease,
}

enum UpstreamStream {
    /// A connection over HTTP/1.1, or a stream over HTTP/2.
    Hyper(OnUpgrade),
    /// Both directions of a stream over HTTP/3.
    Http3(Box<Http3Received>, PipeWriter),
}

impl UpstreamTunnel {
    /// Takes the tunnel from the response that opens it.
    pub(crate) fn from_response(
        mut response: Response<ReceivedBody>,
        lease: ConnectionLease,
    ) -> (Response<()>, Self) {
        let upgrade = hyper::upgrade::on(&mut response);
        let (head, body) = response.into_parts();
        let stream = match body {
            ReceivedBody::WebSocket(received, upload) => UpstreamStream::Http3(received, upload),
            ReceivedBody::Hyper(_) | ReceivedBody::Http3(_) => UpstreamStream::Hyper(upgrade),
        };
        (Response::from_parts(head, ()), Self { stream, lease })
    }
}

impl UpstreamStream {
    async fn opened(self) -> hyper::Result<impl CopyStream> {
        Ok(match self {
            Self::Hyper(upgrade) => Either::Left(TokioIo::new(upgrade.await?)),
            Self::Http3(received, upload) => {
                let download = ReceivedBody::Http3(received).into_data_stream();
                Either::Right(join(StreamReader::new(download.map_err(io::Error::other)), upload))
            }
        })
    }
}

/// Forwards data once both sides are upgraded, until one breaks, both have ended, or the idle time is over. The lease of
/// the upstream's connection lasts as long.
pub(crate) fn open(shared: &Arc<SharedGateway>, client: OnUpgrade, upstream: UpstreamTunnel) {
    let UpstreamTunnel { stream, lease } = upstream;
    // A body that was not requested is not sent any more.
    lease.upload.gate.close();
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let (Ok(client), Ok(upstream)) = tokio::join!(client, stream.opened()) else { return };
        forward(&shared, TokioIo::new(client), upstream).await;
        drop(lease);
    });
}

/// Does the same for a client that sends data in the body of its request, and returns the body of the response.
pub(crate) fn open_on_stream(
    shared: &Arc<SharedGateway>,
    client: UploadBody,
    upstream: UpstreamTunnel,
) -> PipeBody {
    let UpstreamTunnel { stream, lease } = upstream;
    // A body that was not requested is not sent any more.
    lease.upload.gate.close();
    let shared = Arc::clone(shared);
    let (writer, download) = pipe();
    tokio::spawn(async move {
        let reader = StreamReader::new(client.into_data_stream().map_err(io::Error::other));
        let Ok(upstream) = stream.opened().await else { return };
        forward(&shared, join(reader, writer), upstream).await;
        drop(lease);
    });
    download
}

async fn forward(
    shared: &SharedGateway,
    mut client: impl CopyStream,
    mut upstream: impl CopyStream,
) {
    let counters = &shared.counters;
    GatewayCounters::count(&counters.tunnels_opened);
    counters.tunnels.fetch_add(1, Relaxed);
    let until = (CopyUntil::Both, shared.limits.tunnel_idle_time);
    let mut bytes = ByteCounts::default();
    let end = bidirectional(&mut client, &mut upstream, until, &mut bytes).await;
    tracing::debug!(?end, ?bytes, "a tunnel has ended");
    counters.tunnels.fetch_sub(1, Relaxed);
}
