//! Serves a page of metrics, in the text format of Prometheus (version 0.0.4), at an address of its
//! own, so that a server's load is not visible to its clients.
//!
//! The page is served without TLS and without authentication to anyone who can reach the address.
//! The number of connections is small; a new one is always accepted, and closes one of the client
//! that has the most.

mod connections;
mod page;

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use eyas::sockets::{self, BindError, StreamProtocol, WantedSockets};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::connections::OpenConnections;
pub use self::page::Page;

/// How long a request's head may take to arrive.
const HEADER_READ_TIME: Duration = Duration::from_secs(5);

/// How long to pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Serves the output of `render` at `http://ADDRESS/metrics`, in tasks of `tasks`, until `stop` is
/// cancelled. Returns the address, with the port that was chosen. Must be called within a tokio
/// runtime.
///
/// # Errors
/// If it cannot listen on the address.
pub fn start(
    address: SocketAddr,
    render: impl Fn() -> String + Send + Sync + 'static,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<SocketAddr, BindError> {
    let wanted = WantedSockets { stream: Some(StreamProtocol::Tcp), udp: false };
    let bound = sockets::bind(&[address], wanted)?;
    let bound_address = bound.first().map_or(address, |socket| socket.address);
    let render = Arc::new(render);
    for listener in bound.into_iter().filter_map(|socket| socket.tcp) {
        tasks.spawn(accept(listener, Arc::clone(&render), tasks.clone(), stop.clone()));
    }
    Ok(bound_address)
}

async fn accept<R>(
    listener: TcpListener,
    render: Arc<R>,
    tasks: TaskTracker,
    stop: CancellationToken,
) where
    R: Fn() -> String + Send + Sync + 'static,
{
    let connections = Arc::<OpenConnections>::default();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((tcp, remote)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let guard = connections.register(remote.ip());
        let (render, stop) = (Arc::clone(&render), stop.clone());
        tasks.spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let response = respond(request.method(), request.uri().path(), &*render);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_READ_TIME)
                .serve_connection(TokioIo::new(tcp), service);
            tokio::select! {
                () = stop.cancelled() => {}
                () = guard.evicted.cancelled() => {}
                // An error only means that the client disconnected early.
                _ = connection => {}
            }
        });
    }
}

fn respond(method: &Method, path: &str, render: impl Fn() -> String) -> Response<Full<Bytes>> {
    let (status, text) = match (method, path) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, render()),
        (_, "/metrics") => (
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD are allowed
"
            .to_owned(),
        ),
        _ => (StatusCode::NOT_FOUND, "the metrics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
}
