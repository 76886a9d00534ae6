//! Tests of connections from the pool that have died without a word.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    time::Duration,
};

use eyas_http::{Client, Kind, Proxy, ReuseVerdict, Versions};
use futures_util::future::join_all;
use http::Method;
use tokio::{net::UdpSocket, task::JoinSet};

use crate::{
    namespace,
    proxy::TestProxy,
    site::{End, Plan, Reply, SOON, Site, builder_for, echo_path, identity},
};

/// A path for UDP whose far end can be replaced by another host that knows nothing of what went
/// before, as a server that has restarted.
pub(crate) struct Path {
    pub(crate) port: u16,
    server: Arc<AtomicU16>,
    /// Datagrams from the client.
    forward: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Path {
    async fn to(site: &Site) -> Self {
        Self::to_port(site.address.port()).await
    }

    pub(crate) async fn to_port(server: u16) -> Self {
        let inside = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = inside.local_addr().expect("an address").port();
        let server = Arc::new(AtomicU16::new(server));
        let forward = Arc::<AtomicUsize>::default();
        let mut tasks = JoinSet::new();
        let (to, count) = (Arc::clone(&server), Arc::clone(&forward));
        tasks.spawn(async move {
            let outside = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let (mut there, mut back) = ([0; 65_536], [0; 65_536]);
            let mut client = None;
            loop {
                tokio::select! {
                    received = inside.recv_from(&mut there) => {
                        let Ok((size, from)) = received else { continue };
                        client = Some(from);
                        count.fetch_add(1, Ordering::SeqCst);
                        let server = (Ipv4Addr::LOCALHOST, to.load(Ordering::SeqCst));
                        let _ = outside.send_to(&there[..size], server).await;
                    }
                    received = outside.recv_from(&mut back) => {
                        let (Ok((size, from)), Some(client)) = (received, client) else { continue };
                        if from.port() == to.load(Ordering::SeqCst) {
                            let _ = inside.send_to(&back[..size], client).await;
                        }
                    }
                }
            }
        });
        Self { port, server, forward, _tasks: tasks }
    }

    fn restart(&self, as_site: &Site) {
        self.server.store(as_site.address.port(), Ordering::SeqCst);
    }

    /// Swallows everything from now on.
    #[cfg(feature = "sctp")]
    pub(crate) fn cut(&self) {
        // The discard service (RFC 863), which answers nothing where there is one.
        self.server.store(9, Ordering::SeqCst);
    }

    fn forwarded(&self) -> usize {
        self.forward.load(Ordering::SeqCst)
    }

    fn url(&self, path: &str) -> String {
        format!("https://a.example:{}{path}", self.port)
    }
}

async fn fetch(client: &Client, url: &str) -> eyas_http::Response {
    let sent = tokio::time::timeout(SOON, client.get(url).send()).await;
    sent.expect("no request hangs").expect("a response")
}

/// A client that has used a connection to a server, which has restarted since.
async fn after_a_restart() -> (Client, Path, Site, Site) {
    let same = identity(&[crate::site::NAME]);
    let before = Plan::quic().identity(&same).start(echo_path).await;
    let after = Plan::quic().identity(&same).start(echo_path).await;
    let path = Path::to(&before).await;
    let client = builder_for(&[path.port], &[&same]).versions(Versions::HTTP_3);
    let client = client.build().expect("a client");
    fetch(&client, &path.url("/first")).await.bytes().await.expect("a body");
    path.restart(&after);
    (client, path, before, after)
}

#[tokio::test]
async fn a_quic_server_that_restarted_costs_a_race() {
    let (client, path, before, after) = after_a_restart().await;
    let url = path.url("/then");
    // Those that find it, at once, and one that comes later.
    let responses = join_all((0..5).map(|_| fetch(&client, &url))).await;
    for response in &responses {
        let reuse = response.reuse().expect("it was given the connection of the pool");
        assert_eq!(reuse.verdict, ReuseVerdict::Dead, "{reuse}");
        assert!(reuse.to_string().contains("dead"), "{reuse}");
    }
    for response in responses {
        assert_eq!(response.text().await.expect("a body"), "/then");
    }
    let later = fetch(&client, &url).await;
    assert_eq!(later.reuse().expect("reused").verdict, ReuseVerdict::Alive);
    assert_eq!((before.seen().len(), after.seen().len()), (1, 6), "none was sent twice there");
    assert_eq!(after.connections(), 1, "they share one race");
}

/// Its acknowledgement of the request was a sign of life; the question that follows has no answer.
#[tokio::test]
async fn a_quic_server_that_dies_while_it_works_costs_a_race() {
    let same = identity(&[crate::site::NAME]);
    let works = |seen: &crate::site::Seen| match seen.target.ends_with("/then") {
        true => Reply::text("").end(End::Headless),
        false => echo_path(seen),
    };
    let before = Plan::quic().identity(&same).start(works).await;
    let after = Plan::quic().identity(&same).start(echo_path).await;
    let path = Path::to(&before).await;
    let client = builder_for(&[path.port], &[&same]).versions(Versions::HTTP_3);
    let client = client.build().expect("a client");
    fetch(&client, &path.url("/first")).await.bytes().await.expect("a body");
    let url = path.url("/then");
    let (then, ()) = tokio::join!(fetch(&client, &url), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(before.seen().len(), 2, "the server works on it");
        path.restart(&after);
    });
    let reuse = then.reuse().expect("reused");
    assert_eq!(reuse.verdict, ReuseVerdict::Dead, "{reuse}");
    assert_eq!(then.text().await.expect("a body"), "/then");
}

#[tokio::test]
async fn what_may_not_be_repeated_waits_and_says_so() {
    let limit = Duration::from_secs(2);
    for kind in [Kind::IdleTimeout, Kind::TotalTimeout] {
        let (client, path, _before, after) = after_a_restart().await;
        let post = client.post(path.url("/post")).body("data");
        let post = match kind {
            Kind::TotalTimeout => post.timeout(limit),
            _ => post.idle_timeout(limit),
        };
        let (posted, got) = tokio::join!(post.send(), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            fetch(&client, &path.url("/get")).await.text().await.expect("a body")
        });
        let error = posted.expect_err("the server has never heard of it");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains("was not repeated"), "{error}");
        assert_eq!(got, "/get");
        assert!(after.seen().iter().all(|seen| seen.method == Method::GET));
    }
}

#[tokio::test]
async fn an_idle_connection_is_checked_before_a_post() {
    let (client, path, before, after) = after_a_restart().await;
    path.restart(&before);
    tokio::time::sleep(Duration::from_millis(10_200)).await;
    let alive = client.post(path.url("/alive")).body("data").send().await.expect("a response");
    assert!(alive.connection_was_reused());
    alive.bytes().await.expect("a body");
    path.restart(&after);
    tokio::time::sleep(Duration::from_millis(10_200)).await;
    let sent = client.post(path.url("/dead")).body("data").send();
    let response = tokio::time::timeout(SOON, sent).await.expect("it does not hang");
    let response = response.expect("a response");
    assert_eq!(response.reuse().expect("reused").verdict, ReuseVerdict::Dead);
    let posts = |site: &Site| site.seen().iter().filter(|seen| seen.method == Method::POST).count();
    assert_eq!((posts(&before), posts(&after)), (1, 1));
}

#[tokio::test]
async fn a_slow_service_on_a_live_connection_is_waited_for() {
    let slow = |seen: &crate::site::Seen| {
        if seen.target.ends_with("/slow") {
            std::thread::sleep(Duration::from_millis(900));
        }
        Reply::text("done")
    };
    let site = Plan::default().start(slow).await;
    let port = site.address.port();
    // The service blocks a thread of the server: its client is on another runtime.
    let identity = site.identity.clone();
    let url = |path: &str| format!("https://a.example:{port}{path}");
    let (fast, slow) = (url("/fast"), url("/slow"));
    let seen = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
                let client = builder_for(&[port], &[&identity]).versions(versions).build();
                let client = client.expect("a client");
                fetch(&client, &fast).await.bytes().await.expect("a body");
                let response = fetch(&client, &slow).await;
                assert!(response.connection_was_reused());
                let reuse = response.reuse().expect("reused").clone();
                assert_eq!(response.text().await.expect("a body"), "done");
                // QUIC is acknowledged by the server's program, which is busy.
                if versions != Versions::HTTP_3 {
                    assert_eq!(reuse.verdict, ReuseVerdict::Alive, "{reuse}");
                }
            }
        });
    });
    seen.await.expect("it does not fail");
    let (mut slow, mut all) = (0, 0);
    for seen in site.seen() {
        slow += usize::from(seen.target.ends_with("/slow"));
        all += 1;
    }
    assert_eq!((slow, all), (3, 6));
}

#[tokio::test]
async fn a_request_on_a_healthy_quic_path_sends_nothing_else() {
    let site = Plan::quic().start(echo_path).await;
    let path = Path::to(&site).await;
    let client = builder_for(&[path.port], &[&site.identity]).versions(Versions::HTTP_3);
    let client = client.build().expect("a client");
    fetch(&client, &path.url("/first")).await.bytes().await.expect("a body");
    // The handshake, session tickets and their acknowledgements are over.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = path.forwarded();
    const REQUESTS: usize = 50;
    for _ in 0..REQUESTS {
        fetch(&client, &path.url("/next")).await.bytes().await.expect("a body");
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let sent = path.forwarded() - before;
    assert_eq!(site.connections(), 1);
    // The request with its FIN, an acknowledgement of the response, and as much again for what a
    // busy machine acknowledges late.
    assert!(sent <= 4 * REQUESTS, "{sent} datagrams for {REQUESTS} requests");
}

#[tokio::test]
async fn a_quic_connection_is_kept_alive_only_while_something_needs_it() {
    let silent = |seen: &crate::site::Seen| match seen.target.ends_with("/long") {
        true => Reply::text("half").end(End::Never),
        false => echo_path(seen),
    };
    let site = Plan::quic().start(silent).await;
    let turn = |path: &'static str| {
        let site = &site;
        async move {
            let between = Path::to(site).await;
            let client = builder_for(&[between.port], &[&site.identity]).versions(Versions::HTTP_3);
            let client = client.build().expect("a client");
            let mut response = fetch(&client, &between.url(path)).await;
            response.chunk().await.expect("a chunk");
            let kept = match path {
                "/long" => Some(response),
                _ => response.bytes().await.map(|_| None).expect("the end"),
            };
            // Whatever the handshake has left over.
            tokio::time::sleep(Duration::from_secs(2)).await;
            let before = between.forwarded();
            tokio::time::sleep(Duration::from_secs(16)).await;
            let sent = between.forwarded() - before;
            drop(kept);
            sent
        }
    };
    let (idle, long) = tokio::join!(turn("/short"), turn("/long"));
    assert_eq!(idle, 0, "an idle connection sends nothing");
    assert!((1..10).contains(&long), "{long} datagrams");
}

/// The kernel drops what belongs to the connections to this port, as after a NAT has forgotten them.
fn forget(server: u16) {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's connections");
    let to_server = format!(":{server:04X}");
    for line in table.lines().skip(1) {
        let fields: Vec<_> = line.split_whitespace().collect();
        if let [_, local, remote, "01", ..] = fields[..]
            && remote.ends_with(&to_server)
        {
            let port = local.rsplit(':').next().expect("a port");
            let port = u16::from_str_radix(port, 16).expect("a number");
            // Of this connection alone: a later one may be given its port.
            for (from, to) in [(port, server), (server, port)] {
                let ports = format!("tcp sport {from} tcp dport {to}");
                namespace::run("nft", &format!("add rule ip forgetful out {ports} drop"));
            }
        }
    }
}

#[test]
fn a_tcp_connection_that_a_nat_forgot_costs_a_race() {
    namespace::in_its_own("reuse::a_tcp_connection_that_a_nat_forgot_costs_a_race", || {
        namespace::ip("link set lo up");
        namespace::run("nft", "add table ip forgetful");
        namespace::run(
            "nft",
            "add chain ip forgetful out { type filter hook output priority 0 ; }",
        );
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            tokio::join!(forgotten(), forgotten_while_it_worked());
            forgotten_tunnels().await;
        });
    });
}

/// The connection to a proxy, with a tunnel to the server.
async fn forgotten_tunnels() {
    for versions in [Versions::HTTP_1, Versions::HTTP_2] {
        let site = Plan { alpn: vec!["h2", "http/1.1"], ..Plan::tcp("h2") }.start(echo_path).await;
        let proxy = TestProxy::start(Some(site.address)).await;
        let client = builder_for(&[site.address.port()], &[&site.identity]).versions(versions);
        let client = client.proxy(Proxy::all(proxy.url(), "")).build().expect("a client");
        fetch(&client, &site.url("/first")).await.bytes().await.expect("a body");
        let again = fetch(&client, &site.url("/again")).await;
        assert_eq!(again.reuse().expect("reused").verdict, ReuseVerdict::Alive);
        again.bytes().await.expect("a body");
        forget(proxy.port);
        let then = fetch(&client, &site.url("/then")).await;
        let reuse = then.reuse().expect("reused");
        assert_eq!(reuse.verdict, ReuseVerdict::Dead, "{versions:?}: {reuse}");
        assert_eq!(then.text().await.expect("a body"), "/then");
    }
}

/// The path is lost after the server has acknowledged the request, which it works on.
async fn forgotten_while_it_worked() {
    for versions in [Versions::HTTP_1, Versions::HTTP_2] {
        let worked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&worked);
        let works = move |seen: &crate::site::Seen| {
            let is_first =
                seen.target.ends_with("/then") && counted.fetch_add(1, Ordering::SeqCst) == 0;
            if is_first { Reply::text("").end(End::Headless) } else { echo_path(seen) }
        };
        let site = Plan { alpn: vec!["h2", "http/1.1"], ..Plan::tcp("h2") }.start(works).await;
        let client = builder_for(&[site.address.port()], &[&site.identity]).versions(versions);
        let client = client.build().expect("a client");
        fetch(&client, &site.url("/first")).await.bytes().await.expect("a body");
        let then = site.url("/then");
        let (then, ()) = tokio::join!(fetch(&client, &then), async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(worked.load(Ordering::SeqCst), 1);
            forget(site.address.port());
        });
        let reuse = then.reuse().expect("reused");
        assert_eq!(reuse.verdict, ReuseVerdict::Dead, "{versions:?}: {reuse}");
        assert_eq!(then.text().await.expect("a body"), "/then");
    }
}

async fn forgotten() {
    for versions in [Versions::HTTP_1, Versions::HTTP_2] {
        let site = Plan { alpn: vec!["h2", "http/1.1"], ..Plan::tcp("h2") }.start(echo_path).await;
        let client = builder_for(&[site.address.port()], &[&site.identity]).versions(versions);
        let client = client.build().expect("a client");
        let first = site.url("/first");
        let fetched = |response: eyas_http::Response| async { response.bytes().await };
        for response in join_all((0..3).map(|_| fetch(&client, &first))).await {
            fetched(response).await.expect("a body");
        }
        forget(site.address.port());
        let then = site.url("/then");
        let responses = join_all((0..3).map(|_| fetch(&client, &then))).await;
        for response in responses {
            let reuse = response.reuse().expect("reused");
            assert_eq!(reuse.verdict, ReuseVerdict::Dead, "{versions:?}: {reuse}");
            assert_eq!(response.text().await.expect("a body"), "/then");
        }
        let again = fetch(&client, &site.url("/last")).await;
        assert_eq!(again.reuse().expect("reused").verdict, ReuseVerdict::Alive);
        fetched(again).await.expect("a body");
        // A check before what may not be repeated, on a live and on a dead connection.
        tokio::time::sleep(Duration::from_millis(10_200)).await;
        let post = || async {
            let sent = client.post(site.url("/post")).body("data").send();
            tokio::time::timeout(SOON, sent).await.expect("no request hangs").expect("a response")
        };
        let alive = post().await;
        assert_eq!(alive.reuse().expect("reused").verdict, ReuseVerdict::Alive);
        assert!(alive.connection_was_reused());
        fetched(alive).await.expect("a body");
        forget(site.address.port());
        tokio::time::sleep(Duration::from_millis(10_200)).await;
        let dead = post().await;
        assert_eq!(dead.reuse().expect("reused").verdict, ReuseVerdict::Dead, "{versions:?}");
        let posts = site.seen().iter().filter(|seen| seen.method == Method::POST).count();
        assert_eq!(posts, 2, "{versions:?}");
    }
}
