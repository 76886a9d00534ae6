//! Tests of a server on sockets that are already bound.

use std::convert::Infallible;

use eyas::sockets::{StreamProtocol, WantedSockets, bind};
use eyas_http::serve::{RequestBody, ServeError, Server};
use http::{Request, Response};
use tower::service_fn;

use crate::clients::{Speak, fetch, get};

async fn greet(_: Request<RequestBody>) -> Result<Response<String>, Infallible> {
    Ok(Response::new("hello".into()))
}

#[tokio::test]
async fn it_serves_on_bound_sockets() {
    let wanted = WantedSockets { stream: Some(StreamProtocol::Tcp), udp: true };
    let bound = bind(&["127.0.0.1:0".parse().unwrap()], wanted).expect("sockets");
    let address = bound[0].address;
    let running = Server::builder().service(service_fn(greet)).start_on(bound).expect("a server");
    assert_eq!(running.local_addr(), address);
    for speak in Speak::SECURE {
        assert_eq!(fetch(&running, speak, get("/")).await.body(), "hello");
    }
}

#[tokio::test]
async fn without_a_socket_there_is_no_server() {
    let error = Server::builder().start_on(Vec::new()).expect_err("no socket");
    assert!(matches!(error, ServeError::NoSocket), "{error}");
}

#[tokio::test]
async fn without_a_service_everything_is_not_found() {
    let running = Server::builder().start().await.expect("a server");
    for speak in Speak::SECURE {
        assert_eq!(fetch(&running, speak, get("/")).await.status(), 404);
    }
}
