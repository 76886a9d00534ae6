//! A server on sockets that were bound before.

use eyas::sockets::{StreamProtocol, Wanted, bind};
use eyas_http::serve::{ServeError, Server};

use crate::clients::{Speak, fetch, get};

#[tokio::test]
async fn it_serves_on_the_sockets_that_it_is_given() {
    let wanted = Wanted { stream: Some(StreamProtocol::Tcp), udp: true };
    let bound = bind(&["127.0.0.1:0".parse().unwrap()], wanted).expect("sockets");
    let address = bound[0].address;
    let running = Server::builder().start_on(bound).expect("a server");
    assert_eq!(running.local_addr(), address);
    for speak in Speak::SECURE {
        assert_eq!(fetch(&running, speak, get("/eyas")).await.status(), 200);
    }
}

#[tokio::test]
async fn without_a_socket_there_is_no_server() {
    let error = Server::builder().start_on(Vec::new()).expect_err("no socket");
    assert!(matches!(error, ServeError::NoSocket), "{error}");
}
