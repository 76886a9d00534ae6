//! A program without support for eyas that reaches a server through `eyas proxy`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use eyas::race::candidate::Transport;
use eyas::race::memory::MemoryConfig;
use eyas::race::policy::Policy;
use eyas::{Endpoint, MemoryStore, Resolver};
use eyas_http::Client;
use eyas_proxy::Proxy;
use eyas_testserver::{ServerFaces, TestAuthority, TestServer, TransportFace, TransportReach};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{sleep, timeout};

use super::scenes::DemoScene;
use super::{DEADLINE, HOST, SILENT_AFTER, SceneResult, WATCH_TIME, server_failure};
use crate::failure::{Failure, FailureKind};
use crate::race_report::ReplayedRace;

/// Makes the program fetch a page twice, through proxies that share a memory.
pub(super) async fn show(
    scene: &'static DemoScene,
    authority: &TestAuthority,
) -> Result<SceneResult, Failure> {
    let server = server(authority).await?;
    let memory = MemoryStore::in_memory(MemoryConfig::default());
    let first = race(&server, authority, &memory).await?;
    let learnt = memory.entries();
    let second = race(&server, authority, &memory).await?;
    Ok(SceneResult { scene, first, second, learnt })
}

/// Starts a server at two addresses. The one that is tried first accepts and stays silent.
async fn server(authority: &TestAuthority) -> Result<TestServer, Failure> {
    let silent = TransportFace { reach: TransportReach::Silent, ..TransportFace::default() };
    let silent = ServerFaces { tcp: silent, ..ServerFaces::default() };
    let working = IpAddr::from(Ipv4Addr::LOCALHOST);
    let with_ipv6 =
        [(IpAddr::from(Ipv6Addr::LOCALHOST), silent), (working, ServerFaces::default())];
    match TestServer::start(authority, &with_ipv6).await {
        Ok(server) => Ok(server),
        // Without IPv6, another loopback address is used.
        Err(_) => {
            let with_ipv4 =
                [(IpAddr::from([127, 0, 0, 2]), silent), (working, ServerFaces::default())];
            TestServer::start(authority, &with_ipv4).await.map_err(|cause| server_failure(&cause))
        }
    }
}

/// Returns the race that a program's request caused in a proxy.
async fn race(
    server: &TestServer,
    authority: &TestAuthority,
    memory: &MemoryStore,
) -> Result<ReplayedRace, Failure> {
    let port = server.local_addr().port();
    let addresses = server.local_addrs().iter().map(SocketAddr::ip).collect();
    let endpoint = Endpoint::builder()
        .resolver(Resolver::system().overriding(HOST, port, addresses))
        .memory(memory.clone())
        .build()
        .map_err(|cause| Failure::new(FailureKind::Listen, cause.to_string()))?;
    let policy = Policy {
        transports: vec![Transport::Tcp],
        late_switch_for: SILENT_AFTER,
        ..Policy::default()
    };
    let (sender, mut reports) = unbounded_channel();
    let proxy = Proxy::builder(endpoint).policy(policy).reports(move |report| {
        // This fails after the scene, when the receiver is gone.
        let _ = sender.send(report);
    });
    let proxy =
        proxy.start().map_err(|cause| Failure::new(FailureKind::Listen, cause.to_string()))?;
    fetch(proxy.local_addr(), port, authority).await?;
    let report = timeout(DEADLINE, reports.recv()).await.ok().flatten();
    // Until then it is not clear that the other address stays silent.
    sleep(WATCH_TIME).await;
    let race = report.and_then(|report| report.race);
    let race = race.ok_or_else(|| Failure::new(FailureKind::Connect, "the proxy ran no race"))?;
    ReplayedRace::from_trace(race.trace())
}

/// Fetches as a program with a proxy does: it passes the name to the proxy, and uses TLS with the
/// server.
async fn fetch(proxy: SocketAddr, port: u16, authority: &TestAuthority) -> Result<(), Failure> {
    let client = Client::builder()
        .add_root(authority.root().clone())
        .proxy(eyas_http::Proxy::all(format!("http://{proxy}"), ""))
        .timeout(DEADLINE)
        .build();
    let fetched = async {
        let url = format!("https://{HOST}:{port}/");
        client?.get(url).send().await?.bytes().await
    };
    let failed = |cause: eyas_http::Error| Failure::new(FailureKind::Connect, cause.to_string());
    fetched.await.map(drop).map_err(failed)
}
