//! Tests of a server with threads of its own.

use std::{convert::Infallible, time::Duration};

use eyas_http::serve::{RequestBody, Server};
use http::{Request, Response};
use tokio::{net::TcpStream, runtime::Handle, time::timeout};
use tower::service_fn;

use crate::clients::{Speak, fetch, get};

/// Long enough for anything here; what takes longer has hung.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Responds with the runtime that serves it.
async fn runtime(_: Request<RequestBody>) -> Result<Response<String>, Infallible> {
    Ok(Response::new(Handle::current().id().to_string()))
}

#[tokio::test]
async fn streams_are_served_by_the_threads_and_end_with_the_server() {
    let server = Server::builder().threads(2).service(service_fn(runtime));
    let running = server.start().await.expect("a server");
    let own = Handle::current().id().to_string();
    let held = TcpStream::connect(running.local_addr()).await.expect("a connection");
    for speak in Speak::SECURE {
        let served = fetch(&running, speak, get("/")).await.into_body();
        assert_eq!(served == own, speak == Speak::Http3, "{speak:?}");
    }
    let cut = timeout(TIMEOUT, running.shutdown(Duration::from_millis(1))).await;
    assert!(cut.expect("an end") <= 1);
    let mut end = [0];
    held.readable().await.expect("its end");
    assert!(matches!(held.try_read(&mut end), Ok(0) | Err(_)));
}
