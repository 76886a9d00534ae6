//! Tests of requests through a proxy.

use std::sync::{Arc, Mutex};

use eyas::race::candidate::Transport;
use eyas::{EchChoice, EchConfigList, EchPolicy, Endpoint, Resolver, SecurityParameters};
use eyas_http::{Client, Kind, Proxy};
use http::Version;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use crate::early::ech_configs;
use crate::site::{NAME, Plan, Site, builder, builder_for, echo_path};

/// A proxy that tunnels and forwards everything to `to`, regardless of the requested name.
pub(crate) struct TestProxy {
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl TestProxy {
    pub(crate) async fn start(to: Option<std::net::SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, to, Arc::clone(&log)));
            }
        });
        Self { port, heads }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://user:word@127.0.0.1:{}", self.port)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("whole").clone()
    }
}

async fn forward(
    mut stream: TcpStream,
    to: Option<std::net::SocketAddr>,
    log: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(octet) => head.push(octet),
            Err(_) => return,
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    log.lock().expect("whole").push(text.clone());
    let Some(to) = to else {
        let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
        return;
    };
    let Ok(mut peer) = TcpStream::connect(to).await else { return };
    let answered = match text.starts_with("CONNECT ") {
        true => stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await,
        false => peer.write_all(&head).await,
    };
    if answered.is_ok() {
        let _ = copy_bidirectional(&mut stream, &mut peer).await;
    }
}

fn client_through(test_proxy: &TestProxy, sites: &[&Site]) -> eyas_http::Client {
    builder(sites).proxy(Proxy::all(test_proxy.url(), "b.example")).build().expect("a client")
}

#[tokio::test]
async fn https_goes_through_a_tunnel_over_tcp() {
    let site = Plan::default().start(echo_path).await;
    let test_proxy = TestProxy::start(Some(site.address)).await;
    let client = client_through(&test_proxy, &[&site]);
    for _ in 0..2 {
        let response = client.get(site.url("/x")).send().await.expect("a response");
        assert_eq!(response.version(), Version::HTTP_2);
        assert_eq!(response.connection().transport, Transport::Tcp);
        assert_eq!(response.connection().remote.port(), test_proxy.port);
        let reasons = response.connection().reasons.join("\n");
        assert!(reasons.contains("proxy") && !reasons.contains("word"), "{reasons}");
        assert_eq!(response.text().await.expect("a body"), "/x");
    }
    let heads = test_proxy.heads();
    assert_eq!(heads.len(), 1, "one tunnel for all requests");
    let start = format!("CONNECT {NAME}:{} HTTP/1.1\r\n", site.address.port());
    assert!(heads[0].starts_with(&start), "{}", heads[0]);
    // base64("user:word")
    assert!(heads[0].contains("proxy-authorization: Basic dXNlcjp3b3Jk"), "{}", heads[0]);
    assert!(!site.seen()[0].headers.contains_key("proxy-authorization"));
}

#[tokio::test]
async fn http_is_forwarded_with_the_whole_uri() {
    let site = Plan::plain().start(echo_path).await;
    let test_proxy = TestProxy::start(Some(site.address)).await;
    let client = client_through(&test_proxy, &[&site]);
    let response = client.get(site.plain_url("/x")).send().await.expect("a response");
    assert_eq!(response.status(), 200);
    let head = test_proxy.heads().pop().expect("a request");
    assert!(head.starts_with(&format!("GET {} HTTP/1.1\r\n", site.plain_url("/x"))), "{head}");
    assert!(head.contains("proxy-authorization: Basic dXNlcjp3b3Jk"), "{head}");
}

#[tokio::test]
async fn hosts_excluded_from_the_proxy() {
    let site = Plan::plain().start(echo_path).await;
    let test_proxy = TestProxy::start(Some(site.address)).await;
    let direct = site.plain_url("/").replace("a.example", "b.example");
    let response = client_through(&test_proxy, &[&site]).get(direct).send().await;
    assert_eq!(response.expect("a response").connection().remote, site.address);
    assert!(test_proxy.heads().is_empty());
}

#[tokio::test]
async fn a_proxy_that_refuses_or_is_unreachable() {
    let site = Plan::default().start(echo_path).await;
    let test_proxy = TestProxy::start(None).await;
    let error =
        client_through(&test_proxy, &[&site]).get(site.url("/")).send().await.expect_err("403");
    assert_eq!(error.kind(), Kind::Proxy);
    assert!(error.to_string().contains("403"), "{error}");
    for proxy in ["http://127.0.0.1:9", "socks5://127.0.0.1:9"] {
        let client = builder_for(&[], &[]).proxy(Proxy::all(proxy, "")).build();
        let error = client
            .expect("a client")
            .get(site.url("/"))
            .send()
            .await
            .expect_err("a failure of the proxy");
        assert_eq!(error.kind(), Kind::Proxy, "{proxy}: {error}");
    }
    assert!(site.seen().is_empty());
}

#[tokio::test]
async fn the_certificate_behind_a_tunnel_is_checked() {
    let site = Plan::default().start(echo_path).await;
    let test_proxy = TestProxy::start(Some(site.address)).await;
    let client = builder_for(&[], &[]).proxy(Proxy::all(test_proxy.url(), "")).build();
    let error = client
        .expect("a client")
        .get(site.url("/"))
        .send()
        .await
        .expect_err("an untrusted certificate");
    assert_eq!(error.kind(), Kind::Certificate, "{error}");
}

/// As in curl, `--ech` is about the destination: the name of the proxy is in the clear.
#[tokio::test]
async fn ech_is_wanted_of_the_destination_and_not_of_a_proxy() {
    let https_proxy = Plan::tcp("http/1.1").start(echo_path).await;
    let port = https_proxy.address.port();
    let http_proxy = TestProxy::start(Some(https_proxy.address)).await;
    let configs = EchConfigList::from_bytes(ech_configs()).expect("a list");
    for (choice, why) in [
        (EchChoice::from(EchPolicy::Required), "has no configuration"),
        (configs.into(), "ech-broken"),
    ] {
        let client = |proxy: String| {
            let roots = [https_proxy.identity.certificate().clone()];
            let security = SecurityParameters::platform().with_roots(roots);
            let resolver = Resolver::server(([127, 0, 0, 1], 9).into());
            let endpoint = Endpoint::builder()
                .security(security.with_ech(choice.clone()))
                .resolver(resolver.overriding(NAME, port, vec![[127, 0, 0, 1].into()]));
            let endpoint = endpoint.build().expect("an endpoint");
            Client::builder().endpoint(endpoint).proxy(Proxy::all(proxy, "")).build()
        };
        let through_https = client(format!("https://{NAME}:{port}")).expect("a client");
        let response = through_https.get("http://b.example/x").send().await.expect("a response");
        assert_eq!(response.status(), 200, "{choice:?}");
        let through_http = client(http_proxy.url()).expect("a client");
        let refused =
            through_http.get(https_proxy.url("/")).send().await.expect_err("in the clear");
        let text = refused.to_string();
        assert!(text.contains("through the proxy") && text.contains(why), "{text}");
    }
}
