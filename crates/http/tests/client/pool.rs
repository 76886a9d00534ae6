//! Tests of connection reuse and of the limits on connections.

use std::{sync::Arc, time::Duration};

use eyas_http::{Client, PoolLimits, Versions};
use futures_util::future::join_all;
use tokio::sync::Barrier;

use crate::site::{End, Plan, Reply, Site, builder, echo_path, until};

async fn fetch(client: &Client, site: &Site, path: &str) {
    let response = client.get(site.url(path)).send().await.expect("a response");
    assert_eq!(response.text().await.expect("a body"), path);
}

fn limited(site: &Site, versions: Versions, limits: PoolLimits) -> Client {
    builder(&[site]).versions(versions).pool(limits).build().expect("a client")
}

#[tokio::test]
async fn requests_one_after_another_share_a_connection() {
    let site = Plan::default().start(echo_path).await;
    for (number, versions) in
        [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3].into_iter().enumerate()
    {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        for request in 0..5 {
            let response = client.get(site.url("/")).send().await.expect("a response");
            assert_eq!(response.connection_was_reused(), request > 0);
            response.bytes().await.expect("a body");
        }
        assert_eq!(site.connections(), number + 1, "{versions:?}");
    }
}

#[tokio::test]
async fn concurrent_requests_share_one_connection() {
    let site = Plan::default().start(echo_path).await;
    for (number, versions) in [Versions::HTTP_2, Versions::HTTP_3].into_iter().enumerate() {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        join_all((0..50).map(|_| fetch(&client, &site, "/"))).await;
        assert_eq!(site.connections(), number + 1, "{versions:?}");
    }
}

#[tokio::test]
async fn http_1_opens_several_connections_and_no_more_than_allowed() {
    let barrier = Arc::new(Barrier::new(3));
    let site = Plan::default().start(echo_path).await;
    let limits = PoolLimits { per_origin: 3, ..PoolLimits::default() };
    let client = limited(&site, Versions::HTTP_1, limits);
    let run = |_| {
        let (client, barrier, site) = (client.clone(), Arc::clone(&barrier), &site);
        async move {
            let response = client.get(site.url("/x")).send().await.expect("a response");
            // Three are open at once, all before any body is read.
            barrier.wait().await;
            response.bytes().await.expect("a body");
        }
    };
    join_all((0..9).map(run)).await;
    assert_eq!(site.connections(), 3);
}

#[tokio::test]
async fn the_total_is_bounded_by_closing_idle_connections() {
    let (one, two) =
        (Plan::default().start(echo_path).await, Plan::default().start(echo_path).await);
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let limits = PoolLimits { total: 1, ..PoolLimits::default() };
        let client = builder(&[&one, &two]).versions(versions).pool(limits).build();
        let client = client.expect("a client");
        for _ in 0..2 {
            fetch(&client, &one, "/").await;
            fetch(&client, &two, "/").await;
        }
    }
    assert_eq!(one.connections(), 6);
    assert_eq!(two.connections(), 6);
}

#[tokio::test]
async fn a_connection_idle_for_too_long_is_closed() {
    let site = Plan::default().start(echo_path).await;
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let idle_timeout = Duration::from_millis(100);
        let limits = PoolLimits { idle_timeout, ..PoolLimits::default() };
        let client = limited(&site, versions, limits);
        let before = site.connections();
        fetch(&client, &site, "/").await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        fetch(&client, &site, "/").await;
        assert_eq!(site.connections(), before + 2, "{versions:?}");
    }
}

#[tokio::test]
async fn a_connection_in_use_is_not_idle() {
    let site = Plan::default()
        .start(|seen| match seen.target.ends_with("/long") {
            true => Reply::text("half").end(End::Never),
            false => echo_path(seen),
        })
        .await;
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let idle_timeout = Duration::from_millis(100);
        let limits = PoolLimits { idle_timeout, ..PoolLimits::default() };
        let client = limited(&site, versions, limits);
        let before = site.connections();
        let long = client.get(site.url("/long")).send().await.expect("a head");
        tokio::time::sleep(Duration::from_millis(600)).await;
        fetch(&client, &site, "/").await;
        assert_eq!(site.connections(), before + 1, "{versions:?}");
        drop(long);
    }
}

#[tokio::test]
async fn a_cancelled_connect_lets_the_next_request_connect() {
    let site = Plan::default().start(echo_path).await;
    let client = builder(&[&site]).build().expect("a client");
    let first = tokio::time::timeout(Duration::from_micros(1), fetch(&client, &site, "/"));
    let second = fetch(&client, &site, "/");
    let (_, ()) = tokio::join!(first, second);
}

#[tokio::test]
async fn a_change_of_network_opens_new_connections() {
    let site = Plan::default().start(echo_path).await;
    let client = builder(&[&site]).build().expect("a client");
    fetch(&client, &site, "/").await;
    let before = site.connections();
    client.network_changed();
    fetch(&client, &site, "/").await;
    until("another connection", || site.connections() > before).await;
}
