//! What the caller says about the fields of a request, over every version: the same as in curl.

use eyas_http::{Body, Kind, Versions};
use http::{Method, Request, header};
use tower_service::Service as _;

use crate::site::{Plan, Reply, Seen, builder, echo_path};

const EACH: [Versions; 3] = [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3];

/// Returns the host that a server saw: `Host`, or the authority.
fn host(seen: &Seen) -> String {
    match seen.headers.get("host") {
        Some(host) => host.to_str().expect("text").to_owned(),
        None => {
            let target: http::Uri = seen.target.parse().expect("a target");
            target.authority().map(ToString::to_string).unwrap_or_default()
        }
    }
}

#[tokio::test]
async fn a_host_of_the_caller_is_the_authority_over_every_version() {
    let site = Plan::default().start(echo_path).await;
    let own = site.url("/").replace("https://", "").replace('/', "");
    for versions in EACH {
        let mut client = builder(&[&site]).versions(versions).build().expect("a client");
        for (set, seen) in [
            (None, own.as_str()),
            (Some("b.example"), "b.example"),
            (Some("b.example:81"), "b.example:81"),
            (Some("[::1]"), "[::1]"),
            (Some("B.Example"), "B.Example"),
        ] {
            let mut request = client.get(site.url("/x?y"));
            if let Some(set) = set {
                request = request.header("host", set);
            }
            request.send().await.expect("a response");
            let last = site.seen().pop().expect("a request");
            assert_eq!(host(&last), seen, "{versions:?}");
            assert!(last.target.ends_with("/x?y"), "{}", last.target);
            // The same through tower.
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = site.url("/x?y").parse().expect("a URI");
            if let Some(set) = set {
                request.headers_mut().insert("host", set.parse().expect("a value"));
            }
            client.call(request).await.expect("a response");
            assert_eq!(host(&site.seen().pop().expect("a request")), seen, "{versions:?}");
        }
    }
}

#[tokio::test]
async fn a_host_that_cannot_be_sent_is_an_error() {
    let site = Plan::default().start(echo_path).await;
    for versions in [Versions::HTTP_2, Versions::HTTP_3] {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let request = client.get(site.url("/")).header("host", "a b");
        let error = request.send().await.expect_err("not a host");
        assert_eq!(error.kind(), Kind::Request, "{error}");
    }
}

#[tokio::test]
async fn a_host_of_the_caller_stays_with_its_origin() {
    let other = Plan::default().start(echo_path).await;
    let to = other.url("/end");
    let site = Plan::default()
        .start(move |seen| match seen.target.ends_with("/away") {
            true => Reply::status(307).header("location", to.clone()),
            false => Reply::status(307).header("location", "/away"),
        })
        .await;
    for versions in EACH {
        let client = builder(&[&site, &other]).versions(versions).build().expect("a client");
        let request = client.get(site.url("/")).header("host", "b.example");
        request.send().await.expect("a response");
        let seen = site.seen();
        let last = &seen[seen.len() - 2..];
        assert!(last.iter().all(|seen| host(seen) == "b.example"), "{versions:?}");
        let end = other.seen().pop().expect("a request");
        assert!(other.url("/end").contains(&host(&end)), "{versions:?}: {}", host(&end));
    }
}

#[tokio::test]
async fn fields_are_omitted_or_sent_empty() {
    let site = Plan::default().start(echo_path).await;
    for versions in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        for name in [header::ACCEPT, header::ACCEPT_ENCODING, header::USER_AGENT] {
            let request = client.get(site.url("/")).without_header(name.clone());
            request.send().await.expect("a response");
            let last = site.seen().pop().expect("a request");
            assert!(!last.headers.contains_key(&name), "{versions:?} {name}");
            client.get(site.url("/")).header(name.clone(), "").send().await.expect("a response");
            let last = site.seen().pop().expect("a request");
            assert_eq!(last.headers[&name], "", "{versions:?}");
        }
        let set = client.get(site.url("/")).header("accept", "x").without_header(header::ACCEPT);
        set.send().await.expect("a response");
        assert_eq!(site.seen().pop().expect("a request").headers["accept"], "x");
    }
}

#[tokio::test]
async fn methods_that_anticipate_content_say_that_there_is_none() {
    let site = Plan::default().start(echo_path).await;
    for versions in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        for (method, length) in [
            (Method::POST, Some("0")),
            (Method::PUT, Some("0")),
            (Method::PATCH, Some("0")),
            (Method::QUERY, Some("0")),
            (Method::GET, None),
            (Method::HEAD, None),
            (Method::DELETE, None),
        ] {
            for body in [Body::empty(), Body::from("")] {
                let request = client.request(method.clone(), site.url("/")).body(body);
                request.send().await.expect("a response");
                let last = site.seen().pop().expect("a request");
                let seen = last.headers.get("content-length").map(|it| it.to_str().expect("text"));
                assert_eq!(seen, length, "{versions:?} {method}");
                assert!(!last.headers.contains_key("transfer-encoding"), "{versions:?} {method}");
            }
        }
    }
}

/// `/307` redirects with 307 to `/end`.
fn by_number(seen: &Seen) -> Reply {
    match seen.target.rsplit('/').next().and_then(|last| last.parse().ok()) {
        Some(code) => Reply::status(code).header("location", "/end"),
        None => Reply::text("the end"),
    }
}

#[tokio::test]
async fn a_stream_that_can_be_made_again_is_sent_again_for_a_redirect() {
    let site = Plan::default().start(by_number).await;
    let chunks = [vec![1; 70_000], vec![2; 5], vec![3; 70_000]];
    let whole = chunks.concat();
    let body = || {
        let chunks = chunks.clone();
        Body::from_repeatable_stream(move || {
            let chunks = chunks.clone().into_iter().map(|chunk| std::io::Result::Ok(chunk.into()));
            futures_util::stream::iter(chunks)
        })
    };
    for versions in EACH {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        for (body, length) in [(body(), None), (body().with_length(140_005), Some("140005"))] {
            let response = client.put(site.url("/308")).body(body).send().await;
            assert_eq!(response.expect("a response").text().await.expect("a body"), "the end");
            let last = site.seen().pop().expect("a request");
            assert_eq!((&last.method, &last.body[..]), (&Method::PUT, &whole[..]));
            let announced = last.headers.get("content-length");
            assert_eq!(announced.map(|value| value.to_str().expect("text")), length);
        }
        let wrong = client.put(site.url("/end")).body(body().with_length(140_006)).send().await;
        wrong.map(drop).expect_err("it is shorter than announced");
    }
}

#[tokio::test]
async fn a_file_is_read_again_for_a_redirect() {
    let site = Plan::default().start(by_number).await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    let content: Vec<u8> = (0..300_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    std::fs::write(file.path(), &content).expect("written");
    for versions in EACH {
        for code in [307, 308, 301] {
            let client = builder(&[&site]).versions(versions).build().expect("a client");
            let body = Body::from_file(file.path()).await.expect("a body");
            let url = site.url(&format!("/{code}"));
            let response = client.put(url).body(body).send().await.expect("a response");
            assert_eq!(response.text().await.expect("a body"), "the end");
            let last = site.seen().pop().expect("a request");
            assert_eq!((&last.method, last.body.len()), (&Method::PUT, content.len()));
            assert_eq!(last.body, content);
        }
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let stream = Body::from_reader(std::io::Cursor::new(content.clone()));
        let error = client.put(site.url("/307")).body(stream).send().await.expect_err("once only");
        assert_eq!(error.kind(), Kind::Redirect);
        assert!(error.to_string().contains("pipe"), "{error}");
    }
}
