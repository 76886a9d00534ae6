//! Tests of alternative services with real servers (RFC 7838).

use eyas_http::{Client, HttpPolicy, Versions};
use http::Version;

use crate::ports::own_port;
use crate::site::{NAME, Plan, Reply, SOON, Seen, Site, builder, builder_for, identity};

fn announcing(field: impl Into<String>) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let field = field.into();
    move |_| Reply::text("here").header("alt-svc", field.clone())
}

/// Returns a client that waits long enough for an alternative, on any machine.
fn browser(sites: &[&Site]) -> Client {
    let builder = builder(sites).policy(HttpPolicy::AltSvc).alternative_wait(SOON);
    builder.build().expect("a client")
}

async fn fetch(client: &Client, site: &Site) -> Version {
    let response = client.get(site.url("/")).send().await.expect("a response");
    let version = response.version();
    response.bytes().await.expect("a body");
    version
}

/// Starts an origin on TCP that announces an alternative on QUIC at another port.
async fn pair(parameters: &str) -> (Site, Site) {
    let id = identity(&[NAME]);
    let quic = Plan::quic().identity(&id).start(|_| Reply::text("there")).await;
    let field = format!("h3=\":{}\"{parameters}", quic.address.port());
    let origin = Plan::tcp("h2").identity(&id).start(announcing(field)).await;
    (origin, quic)
}

//= rfc7838 §2.4, §5
//# an alternative is used from the next request on, with `Alt-Used`
#[tokio::test]
async fn tcp_first_and_http_3_on_the_next_request() {
    let site = Plan::default();
    let id = identity(&[NAME]);
    let site = site.identity(&id).start(|_| Reply::text("here")).await;
    let (origin, quic) = pair("").await;
    let client = browser(&[&origin, &quic, &site]);
    assert_eq!(fetch(&client, &site).await, Version::HTTP_2, "nothing was announced");
    assert_eq!(fetch(&client, &site).await, Version::HTTP_2, "nothing was announced");
    assert_eq!(fetch(&client, &origin).await, Version::HTTP_2);
    assert_eq!(fetch(&client, &origin).await, Version::HTTP_3);
    assert_eq!(fetch(&client, &origin).await, Version::HTTP_3);
    assert_eq!((origin.seen().len(), quic.seen().len()), (1, 2));
    let used = quic.seen()[0].headers["alt-used"].to_str().expect("text").to_owned();
    assert_eq!(used, format!("{NAME}:{}", quic.address.port()));
    let authority = format!("{NAME}:{}", origin.address.port());
    assert!(quic.seen()[0].target.contains(&authority), "the origin is requested");
}

//= rfc7838 §2
//# URL, Host and certificate stay the origin's; the report names the alternative
#[tokio::test]
async fn the_reasons_include_the_use_of_an_alternative() {
    let (origin, quic) = pair("").await;
    let client = browser(&[&origin, &quic]);
    fetch(&client, &origin).await;
    let response = client.get(origin.url("/")).send().await.expect("a response");
    let reasons = response.connection().reasons.join("\n");
    assert!(reasons.contains("alternative h3=:"), "{reasons}");
    assert_eq!(response.connection().remote, quic.address);
}

//= rfc7838 §2.1, §2.3, §9.2
//# an alternative is used only over TLS, with SNI and certificate of the origin
//= rfc9460 §2.3, §9.1, §9.4, §12
//# certificate and SNI are the origin's
#[tokio::test]
async fn another_host_must_show_the_certificate_of_the_origin() {
    for (certificate, version) in [(NAME, Version::HTTP_3), ("b.example", Version::HTTP_2)] {
        let id = identity(&[certificate]);
        let quic = Plan::quic().identity(&id).start(|_| Reply::text("there")).await;
        let field = format!("h3=\"b.example:{}\"", quic.address.port());
        let origin = Plan::tcp("h2").start(announcing(field)).await;
        let client = browser(&[&origin, &quic]);
        fetch(&client, &origin).await;
        assert_eq!(fetch(&client, &origin).await, version, "{certificate}");
    }
}

//= rfc7838 §2.4
//# an alternative that failed is avoided
#[tokio::test]
async fn a_failed_alternative_is_avoided_afterwards() {
    let id = identity(&["unused.example"]);
    let quic = Plan::quic().identity(&id).start(|_| Reply::text("there")).await;
    let field = format!("h3=\":{}\"", quic.address.port());
    let origin = Plan::tcp("h2").start(announcing(field)).await;
    let client = browser(&[&origin, &quic]);
    for _ in 0..4 {
        assert_eq!(fetch(&client, &origin).await, Version::HTTP_2);
    }
    assert_eq!(origin.connections(), 1);
    assert!(quic.seen().is_empty());
}

//= rfc7838 §2.4
//# of several alternatives the first that works is used
#[tokio::test]
async fn the_first_working_one_of_several_alternatives() {
    let (origin, quic) = {
        let id = identity(&[NAME]);
        let quic = Plan::quic().identity(&id).start(|_| Reply::text("there")).await;
        // An unknown protocol, a port without a listener, and then the one that works.
        let closed = own_port();
        let field = format!("h9=\":1\", h3=\":{closed}\", h3=\":{}\"; x=y", quic.address.port());
        (Plan::tcp("h2").identity(&id).start(announcing(field)).await, quic)
    };
    // The first one is silent; the request must not wait for it.
    let client = builder(&[&origin, &quic]).policy(HttpPolicy::AltSvc).build().expect("a client");
    let works = async {
        while fetch(&client, &origin).await != Version::HTTP_3 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON * 2, works).await.expect("HTTP/3 in the end");
}

#[tokio::test]
async fn clear_and_a_zero_lifetime() {
    for field in ["clear", "h3=\":443\"; ma=0"] {
        let id = identity(&[NAME]);
        let quic = Plan::quic().identity(&id).start(|_| Reply::text("there")).await;
        let announced = format!("h3=\":{}\"", quic.address.port());
        let count = std::sync::atomic::AtomicUsize::new(0);
        let origin = Plan::tcp("h2")
            .identity(&id)
            .start(move |_| {
                let first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
                let field = if first { announced.clone() } else { field.to_owned() };
                Reply::text("here").header("alt-svc", field)
            })
            .await;
        // Two requests at once: the second field comes before the first is used.
        let client = browser(&[&origin, &quic]);
        let (one, two) = tokio::join!(fetch(&client, &origin), fetch(&client, &origin));
        assert_eq!([one, two], [Version::HTTP_2; 2]);
        assert_eq!(fetch(&client, &origin).await, Version::HTTP_2, "{field}");
        assert!(quic.seen().is_empty());
    }
}

#[tokio::test]
async fn a_malformed_field_is_counted_and_ignored() {
    let origin = Plan::tcp("h2").start(announcing("h3=:443; what")).await;
    let client = browser(&[&origin]);
    assert_eq!(fetch(&client, &origin).await, Version::HTTP_2);
    assert_eq!(fetch(&client, &origin).await, Version::HTTP_2);
    assert_eq!(client.malformed_alt_svc(), 2);
}

//= rfc7838 §2.2
//# a change of network removes what does not persist
#[tokio::test]
async fn a_change_of_network_forgets_what_does_not_persist() {
    for (parameters, version) in [("", Version::HTTP_2), ("; persist=1", Version::HTTP_3)] {
        let (origin, quic) = pair(parameters).await;
        let client = browser(&[&origin, &quic]);
        fetch(&client, &origin).await;
        client.network_changed();
        assert_eq!(fetch(&client, &origin).await, version, "{parameters}");
    }
}

//= rfc7838 §6
//# 421 removes the alternative; the request goes to the origin once
#[tokio::test]
async fn an_alternative_that_returns_421_is_not_authoritative() {
    let id = identity(&[NAME]);
    let quic = Plan::quic().identity(&id).start(|_| Reply::status(421)).await;
    let field = format!("h3=\":{}\"", quic.address.port());
    let origin = Plan::tcp("h2").identity(&id).start(announcing(field)).await;
    let client = browser(&[&origin, &quic]);
    client.get(origin.url("/")).send().await.expect("a response");
    let request = client.post(origin.url("/")).body("data");
    let response = request.send().await.expect("a response");
    assert_eq!(response.status(), 200);
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(quic.seen().len(), 1);
    assert_eq!(&origin.seen()[1].body[..], b"data");
}

//= rfc7838 §6
//# the `Alt-Svc` of a 421 is ignored
/// RFC 7838 §6: a server that is not authoritative for the origin cannot announce alternatives for
/// it.
#[tokio::test]
async fn alternatives_in_a_421_are_ignored() {
    let id = identity(&[NAME]);
    let elsewhere = Plan::quic().identity(&id).start(|_| Reply::text("elsewhere")).await;
    let announced = format!("h3=\":{}\"", elsewhere.address.port());
    let quic = Plan::quic()
        .identity(&id)
        .start(move |_| Reply::status(421).header("alt-svc", announced.clone()))
        .await;
    let field = format!("h3=\":{}\"", quic.address.port());
    let count = std::sync::atomic::AtomicUsize::new(0);
    let origin = Plan::tcp("h2")
        .identity(&id)
        .start(move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::text("here").header("alt-svc", field.clone()),
            _ => Reply::text("here"),
        })
        .await;
    let client = browser(&[&origin, &quic, &elsewhere]);
    for _ in 0..3 {
        assert_eq!(fetch(&client, &origin).await, Version::HTTP_2);
    }
    assert_eq!((origin.seen().len(), quic.seen().len()), (3, 1));
    assert!(elsewhere.seen().is_empty());
}

//= rfc7838 §2.4
//# another protocol than the announced one MUST count as a failure
//= rfc9460 §9.3
//# an alternative of Alt-Svc is reached only by the announced protocol
/// RFC 7838 §2.4: an alternative that does not negotiate what was announced has failed.
#[tokio::test]
async fn an_alternative_that_negotiates_something_else_is_not_used() {
    let id = identity(&[NAME]);
    let plan = Plan { alpn: vec![], ..Plan::tcp("h2") };
    let there = plan.identity(&id).start(|_| Reply::text("there")).await;
    let field = format!("h2=\":{}\"", there.address.port());
    let origin = Plan::tcp("h2").identity(&id).start(announcing(field)).await;
    let client = browser(&[&origin, &there]);
    for _ in 0..3 {
        assert_eq!(fetch(&client, &origin).await, Version::HTTP_2);
    }
    assert_eq!((origin.seen().len(), there.seen().len()), (3, 0));
}

//= rfc9460 §9.3
//# an alternative of Alt-Svc is reached by a race with its own records
#[tokio::test]
async fn http_2_at_another_port_is_an_alternative_too() {
    let id = identity(&[NAME]);
    let there = Plan::tcp("h2").identity(&id).start(|_| Reply::text("there")).await;
    let field = format!("h2=\":{}\"", there.address.port());
    let origin = Plan::tcp("h2").identity(&id).start(announcing(field)).await;
    let client = browser(&[&origin, &there]);
    fetch(&client, &origin).await;
    fetch(&client, &origin).await;
    assert_eq!((origin.seen().len(), there.seen().len()), (1, 1));
}

#[tokio::test]
async fn the_race_finds_an_alternative_elsewhere_only_if_enabled() {
    for (policy, patience, is_found) in [
        (HttpPolicy::Race, std::time::Duration::from_millis(500), false),
        (HttpPolicy::RaceAltSvc, SOON, true),
    ] {
        let (origin, quic) = pair("").await;
        let client = builder(&[&origin, &quic]).policy(policy).build().expect("a client");
        let finding = async {
            while fetch(&client, &origin).await != Version::HTTP_3 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        assert_eq!(tokio::time::timeout(patience, finding).await.is_ok(), is_found, "{policy}");
    }
}

#[tokio::test]
async fn fields_of_plain_http_and_disallowed_versions_are_ignored() {
    let (origin, quic) = pair("").await;
    let client = builder(&[&origin, &quic])
        .policy(HttpPolicy::AltSvc)
        .versions(Versions { http3: false, ..Versions::ALL });
    let client = client.build().expect("a client");
    fetch(&client, &origin).await;
    assert_eq!(fetch(&client, &origin).await, Version::HTTP_2);

    let field = format!("h3=\":{}\"", quic.address.port());
    let plain = Plan::plain().start(announcing(field)).await;
    let client = builder_for(&[plain.address.port()], &[&quic.identity]);
    let client = client.policy(HttpPolicy::AltSvc).build().expect("a client");
    for _ in 0..2 {
        let response = client.get(plain.plain_url("/")).send().await.expect("a response");
        assert_eq!(response.version(), Version::HTTP_11);
    }
    assert!(quic.seen().is_empty());
}
