//! Tests of redirects between real servers, with cookies.

use eyas_http::{Body, Kind, Versions};
use http::Method;

use crate::site::{Plan, Reply, Seen, builder, client, status};

fn path(seen: &Seen) -> &str {
    seen.target.rfind('/').map_or("", |at| &seen.target[at..])
}

/// `/307` redirects with 307 to `/end`.
fn by_number(seen: &Seen) -> Reply {
    match path(seen).trim_start_matches('/').parse() {
        Ok(code) => Reply::status(code).header("location", "/end"),
        Err(_) => Reply::text("the end"),
    }
}

#[tokio::test]
async fn the_status_determines_the_method_and_body_of_a_redirect() {
    let site = Plan::default().start(by_number).await;
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        for (code, method, body) in
            [(301, Method::GET, ""), (303, Method::GET, ""), (307, Method::POST, "data")]
        {
            let client = builder(&[&site]).versions(versions).build().expect("a client");
            let request = client.post(site.url(&format!("/{code}"))).body("data");
            let response = request.send().await.expect("a response");
            assert_eq!(response.url().path(), "/end");
            assert_eq!(response.redirects(), 1);
            assert_eq!(response.text().await.expect("a body"), "the end");
            let last = site.seen().pop().expect("a request");
            assert_eq!((last.method, &last.body[..]), (method, body.as_bytes()), "{code}");
        }
    }
}

#[tokio::test]
async fn a_redirect_uses_the_same_connection() {
    let site = Plan::default().start(by_number).await;
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let before = site.connections();
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        client.get(site.url("/302")).send().await.expect("a response");
        assert_eq!(site.connections(), before + 1, "{versions:?}");
    }
}

#[tokio::test]
async fn a_stream_cannot_follow_a_307() {
    let site = Plan::default().start(by_number).await;
    let data = futures_util::stream::iter([Ok::<_, std::io::Error>("data".into())]);
    let request = client(&[&site]).post(site.url("/307")).body(Body::from_stream(data));
    let error = request.send().await.expect_err("a stream can be sent only once");
    assert_eq!(error.kind(), Kind::Redirect, "{error}");
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn an_endless_chain_has_an_end() {
    let site = Plan::default().start(|_| Reply::status(302).header("location", "/302")).await;
    let client_of_three = builder(&[&site]).redirects(3).build().expect("a client");
    let error = client_of_three.get(site.url("/302")).send().await.expect_err("endless");
    assert_eq!(error.kind(), Kind::Redirect, "{error}");
    assert_eq!(site.seen().len(), 4);
    let none = builder(&[&site]).redirects(0).build().expect("a client");
    let response = none.get(site.url("/302")).send().await.expect("a response");
    assert_eq!(response.status(), status(302));
    assert_eq!(response.headers()["location"], "/302");
}

#[tokio::test]
async fn a_request_can_follow_fewer_or_more_redirects_than_its_client() {
    let site = Plan::default().start(by_number).await;
    let none = builder(&[&site]).redirects(0).build().expect("a client");
    let followed = none.get(site.url("/302")).redirects(1).send().await.expect("a response");
    assert_eq!(followed.url().path(), "/end");
    let response = client(&[&site]).get(site.url("/302")).redirects(0).send().await;
    assert_eq!(response.expect("a response").status(), status(302));
}

#[cfg(feature = "cookies")]
#[tokio::test]
async fn credentials_and_cookies_stay_with_their_origin() {
    let other = Plan::default().start(|_| Reply::text("other")).await;
    let there = other.url("/").replace("a.example", "b.example");
    let identity = crate::site::identity(&["a.example"]);
    let site = Plan::default()
        .identity(&identity)
        .start(move |_| {
            Reply::status(302).header("location", &*there).header("set-cookie", "own=1")
        })
        .await;
    let client = builder(&[&site, &other]).cookies(true).build().expect("a client");
    let request = client.get(site.url("/")).header("authorization", "Bearer secret");
    // The other server's certificate is not valid for its second name.
    let error = request.send().await.expect_err("another name");
    assert_eq!(error.kind(), Kind::Certificate, "{error}");
    let _ = client.get(site.url("/")).send().await;
    assert_eq!(site.seen()[0].headers["authorization"], "Bearer secret");
    assert_eq!(site.seen()[1].headers["cookie"], "own=1");

    let other = Plan::default().identity(&crate::site::identity(&["b.example"]));
    let other = other.start(|_| Reply::text("other")).await;
    let there = other.url("/").replace("a.example", "b.example");
    let site = Plan::default()
        .start(move |_| {
            Reply::status(302).header("location", &*there).header("set-cookie", "own=1")
        })
        .await;
    let client = builder(&[&site, &other]).cookies(true).build().expect("a client");
    let request = client.get(site.url("/")).header("authorization", "Bearer secret");
    request.send().await.expect("a response");
    let seen = other.seen().pop().expect("a request");
    assert!(!seen.headers.contains_key("authorization") && !seen.headers.contains_key("cookie"));
}

#[tokio::test]
async fn https_does_not_redirect_to_http_unless_allowed() {
    let plain = Plan::plain().start(|_| Reply::text("plain")).await;
    let there = plain.plain_url("/");
    let site = Plan::default().start(move |_| Reply::status(301).header("location", &*there)).await;
    let strict = client(&[&site, &plain]);
    let error = strict.get(site.url("/")).send().await.expect_err("a downgrade");
    assert_eq!(error.kind(), Kind::Redirect);
    assert!(plain.seen().is_empty());
    let lax = builder(&[&site, &plain]).allow_downgrade(true).build().expect("a client");
    let response = lax.get(site.url("/")).send().await.expect("a response");
    assert_eq!(response.text().await.expect("a body"), "plain");
}
