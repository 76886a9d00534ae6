//! Tests of the client as a tower service.

use eyas::{ConnectionInfo, race::candidate::Transport};
use eyas_http::{Body, Kind};
use http::{Request, Version};
use tower::{ServiceBuilder, ServiceExt};

use crate::site::{Plan, client, echo_path};

#[tokio::test]
async fn a_request_through_a_stack_of_services() {
    let site = Plan::quic().start(echo_path).await;
    let service = ServiceBuilder::new()
        .map_request(|mut request: Request<Body>| {
            request.headers_mut().insert("x-layer", http::HeaderValue::from_static("yes"));
            request
        })
        .service(client(&[&site]));
    let request = Request::get(site.url("/x")).body(Body::empty()).expect("a request");
    let response = service.oneshot(request).await.expect("a response");
    assert_eq!(response.version(), Version::HTTP_3);
    let info = response.extensions().get::<ConnectionInfo>().expect("the connection");
    assert_eq!(info.transport, Transport::Quic);
    assert_eq!(response.into_body().bytes().await.expect("a body"), "/x");
    assert_eq!(site.seen()[0].headers["x-layer"], "yes");
}

#[tokio::test]
async fn a_request_without_an_absolute_uri_is_refused() {
    let site = Plan::quic().start(echo_path).await;
    let request = Request::get("/x").body(Body::empty()).expect("a request");
    let error = client(&[&site]).oneshot(request).await.expect_err("no destination");
    assert_eq!(error.kind(), Kind::Url);
}

#[tokio::test]
async fn a_bad_field_is_reported_when_the_request_is_sent() {
    let site = Plan::quic().start(echo_path).await;
    let request = client(&[&site]).get(site.url("/")).header("bad name", "x");
    assert_eq!(request.send().await.expect_err("refused").kind(), Kind::Request);
    let request = client(&[&site]).get(site.url("/")).header("x", "bad\nvalue");
    assert_eq!(request.send().await.expect_err("refused").kind(), Kind::Request);
    assert!(site.seen().is_empty());
}
