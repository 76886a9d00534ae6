//! Tests of convenience methods: authentication, queries, forms, JSON, and statuses as errors.

use std::collections::BTreeMap;

use eyas_http::{Client, Kind};
use http::{Method, StatusCode};

use crate::site::{Plan, Reply, Site, client, echo_path};

/// Starts a server that answers `{"a": [1, 2]}` and records requests.
async fn json() -> Site {
    Plan::quic().start(|_| Reply::text(r#"{"a": [1, 2]}"#)).await
}

#[tokio::test]
async fn json_is_sent_and_received() {
    let site = json().await;
    let sent = BTreeMap::from([("b", [3, 4])]);
    let response = client(&[&site]).post(site.url("/")).json(&sent).send().await.expect("a reply");
    let got: BTreeMap<String, Vec<u32>> = response.json().await.expect("JSON");
    assert_eq!(got, BTreeMap::from([("a".to_owned(), vec![1, 2])]));
    let seen = &site.seen()[0];
    assert_eq!((&seen.method, &seen.body[..]), (&Method::POST, &br#"{"b":[3,4]}"#[..]));
    assert_eq!(seen.headers["content-type"], "application/json");
}

#[tokio::test]
async fn mismatched_json_is_an_error_that_names_the_url() {
    let site = json().await;
    let response = client(&[&site]).get(site.url("/x")).send().await.expect("a reply");
    let error = response.json::<Vec<u32>>().await.expect_err("a map");
    assert_eq!(error.kind(), Kind::BodyJson);
    assert_eq!(error.url(), Some(site.url("/x").as_str()));
    // Keys of maps are text in JSON.
    let bad = BTreeMap::from([([1], 2)]);
    let error = client(&[&site]).post(site.url("/")).json(&bad).send().await;
    assert_eq!(error.expect_err("no JSON").kind(), Kind::Request);
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn forms_and_queries_are_escaped() {
    let site = json().await;
    let pairs = [("a b", "c&d"), ("e", "\u{e9}")];
    let request = client(&[&site]).post(site.url("/?f=g")).query(&pairs).form(&pairs);
    request.send().await.expect("a reply");
    let seen = &site.seen()[0];
    assert!(seen.target.ends_with("/?f=g&a+b=c%26d&e=%C3%A9"), "{}", seen.target);
    assert_eq!(&seen.body[..], b"a+b=c%26d&e=%C3%A9");
    assert_eq!(seen.headers["content-type"], "application/x-www-form-urlencoded");
    let none: [(&str, &str); 0] = [];
    client(&[&site]).get(site.url("/y")).query(&none).send().await.expect("a reply");
    assert!(site.seen()[1].target.ends_with("/y"), "{}", site.seen()[1].target);
    let own = client(&[&site]).post(site.url("/")).header("content-type", "own").form(&pairs);
    own.send().await.expect("a reply");
    let seen = &site.seen()[2];
    assert_eq!(seen.headers.get_all("content-type").iter().collect::<Vec<_>>(), ["own"]);
}

#[tokio::test]
async fn the_last_authorization_is_sent() {
    let site = json().await;
    let client = client(&[&site]);
    let request = client.get(site.url("/")).bearer_auth("old").basic_auth("us er", Some("p@:ss"));
    request.send().await.expect("a reply");
    client.get(site.url("/")).bearer_auth("token").send().await.expect("a reply");
    // base64("us er:p@:ss")
    let authorizations: Vec<_> =
        site.seen().iter().map(|seen| seen.headers["authorization"].clone()).collect();
    assert_eq!(authorizations, ["Basic dXMgZXI6cEA6c3M=", "Bearer token"]);
    for bad in [
        client.get(site.url("/")).basic_auth("a:b", None),
        client.get(site.url("/")).bearer_auth("a\nb"),
    ] {
        assert_eq!(bad.send().await.expect_err("refused").kind(), Kind::Request);
    }
    assert_eq!(site.seen().len(), 2);
}

#[tokio::test]
async fn a_status_becomes_an_error_if_requested() {
    let site = Plan::quic().start(|seen| match seen.target.as_str() {
        missing if missing.ends_with("/missing") => Reply::status(404),
        broken if broken.ends_with("/broken") => Reply::status(503),
        _ => echo_path(seen),
    });
    let site = site.await;
    let client = client(&[&site]);
    let fine = client.get(site.url("/fine")).send().await.expect("a reply");
    assert_eq!(fine.error_for_status().expect("200").text().await.expect("a body"), "/fine");
    for (path, status) in
        [("/missing", StatusCode::NOT_FOUND), ("/broken", StatusCode::SERVICE_UNAVAILABLE)]
    {
        let response = client.get(site.url(path)).send().await.expect("a reply");
        let error = response.error_for_status().expect_err("a failure");
        assert_eq!((error.kind(), error.status()), (Kind::Status, Some(status)));
        assert!(error.to_string().contains(status.as_str()), "{error}");
    }
}

#[cfg(feature = "server")]
#[tokio::test]
async fn a_root_is_trusted_in_addition_to_the_platforms() {
    let hello = tower::service_fn(async |_| {
        Ok::<_, std::convert::Infallible>(http::Response::new(eyas_http::Body::from("hello")))
    });
    let server = eyas_http::Server::builder().service(hello).start().await.expect("a server");
    let root = server.identity().expect("TLS").certificate().clone();
    let url = format!("https://localhost:{}/", server.local_addr().port());
    let client = || Client::builder().proxy(eyas_http::Proxy::none());
    let without_root = client().build().expect("a client");
    assert_eq!(
        without_root.get(&url).send().await.expect_err("an unknown issuer").kind(),
        Kind::Certificate
    );
    let with_root = client().add_root(root.clone()).build().expect("a client");
    assert_eq!(with_root.get(&url).send().await.expect("a reply").status(), StatusCode::OK);
    let endpoint = eyas::Endpoint::builder().build().expect("an endpoint");
    let both = client().endpoint(endpoint).add_root(root).build();
    assert_eq!(both.expect_err("an ambiguous choice").kind(), Kind::Tls);
}
