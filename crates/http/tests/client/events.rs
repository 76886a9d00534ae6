//! The events and counters of requests, and the conveniences of a client.

use eyas_http::{Client, Kind, Versions};
use http::Method;

use crate::{
    observer::Observer,
    site::{NAME, Plan, Reply, builder},
};

#[tokio::test]
async fn requests_and_reuse_are_told_and_counted() {
    let (observer, _guard) = Observer::start(&["eyas::race", "eyas_http::request"]);
    let site = Plan::tcp("h2").start(|_| Reply::text("hello")).await;
    let client = builder(&[&site]).versions(Versions { http3: false, ..Versions::ALL });
    let client = client.user_agent("mine/1").build().expect("a client");
    let url = format!("https://{NAME}:{}/secret?path", site.address.port());
    for method in [Method::GET, Method::PATCH] {
        let response = client.request(method, &url).send().await.expect("a response");
        response.text().await.expect("a body");
    }
    client.patch(&url).send().await.expect("a response");
    let request = observer.first("request").expect("an event");
    assert!(request.contains("method=GET") && request.contains("reused=false"), "{request}");
    assert!(request.contains(NAME) && !request.contains("secret"), "{request}");
    let reuse = observer.first("reuse").expect("an event");
    assert!(reuse.contains("transport=tcp"), "{reuse}");
    assert!(observer.first("win").is_some(), "{:?}", observer.events());
    let stats = client.stats();
    assert_eq!((stats.requests, stats.reuses, stats.connections), (3, 2, 1));
    assert_eq!((stats.retries, stats.failures, stats.connections_open), (0, 0, 1));
    assert_eq!(client.endpoint().races().won, 1);
    let seen = site.seen();
    assert!(seen.iter().all(|one| one.headers["user-agent"] == "mine/1"));
    assert_eq!(seen[2].method, Method::PATCH);
}

#[tokio::test]
async fn a_client_has_the_names_that_users_of_reqwest_know() {
    let client = Client::new();
    let error = client.patch("https://").timeout(std::time::Duration::from_secs(1)).send().await;
    assert_eq!(error.expect_err("no host").kind(), Kind::Url);
    let error = Client::builder().user_agent("a\nb").build().expect_err("no field value");
    assert_eq!(error.kind(), Kind::Request);
}
