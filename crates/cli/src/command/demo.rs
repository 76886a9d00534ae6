//! `eyas demo`: small networks on this machine, each raced without and with memory.

mod page;
mod proxied;
mod scenes;

use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::memory::{MemoryConfig, MemoryRecord};
use eyas::race::policy::{LoserPolicy, Policy};
use eyas::race::report::RaceJson;
use eyas::race::target::{Target, TargetHost};
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters};
use eyas_http::serve::ServeError;
use eyas_sctp_tokio::ENCAPSULATION_PORT;
use eyas_testserver::{TestAuthority, TestServer};
use serde_json::{Value, json};

use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, DemoFlags};
use crate::output;
use crate::race_report::ReplayedRace;
use crate::shape::value;
use crate::terminal::OutputStyle;
use page::DemoPage;
use scenes::{DemoRacer, DemoScene, SCENES};

/// The name in the servers' certificates.
const HOST: &str = "demo.example";
/// How long QUIC may take to answer before it counts as silent. On loopback this is long.
const SILENT_AFTER: Duration = Duration::from_millis(350);
/// The deadline of a race, much longer than any takes here.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long to wait for the end of a race.
const WATCH_TIME: Duration = Duration::from_millis(600);

/// The results of a scene.
struct SceneResult {
    scene: &'static DemoScene,
    first: ReplayedRace,
    second: ReplayedRace,
    learnt: Vec<MemoryRecord>,
}

/// Shows all scenes.
pub(crate) async fn run(flags: &DemoFlags, common: &CommonFlags) -> Result<(), Failure> {
    let style = OutputStyle::of_stdout(common.color);
    let page = DemoPage { style, explain: flags.explain };
    let authority = TestAuthority::new([HOST]).map_err(|cause| server_failure(&cause))?;
    let mut results = Vec::new();
    if !common.json {
        output::page(&page.introduction(), style)?;
    }
    for (number, scene) in SCENES.iter().enumerate() {
        if !common.json {
            output::page(&page.heading(number + 1, scene), style)?;
        }
        let result = show(scene, &authority).await?;
        if !common.json {
            output::page(&page.races(&result), style)?;
        }
        results.push(result);
    }
    match common.json {
        true => output::object(&object(&results)),
        false => output::page(&page.summary(&results), style),
    }
}

/// Sets up a network and races in it twice, with the same memory.
async fn show(
    scene: &'static DemoScene,
    authority: &TestAuthority,
) -> Result<SceneResult, Failure> {
    let DemoRacer::Eyas { transports, personality } = scene.racer else {
        return proxied::show(scene, authority).await;
    };
    let server = personality.start(authority).await.map_err(|cause| server_failure(&cause))?;
    let memory = MemoryStore::in_memory(MemoryConfig::default());
    let first = race(transports, &server, authority, &memory).await?;
    let learnt = memory.entries();
    let second = race(transports, &server, authority, &memory).await?;
    Ok(SceneResult { scene, first, second, learnt })
}

fn server_failure(cause: &ServeError) -> Failure {
    Failure::new(FailureKind::Listen, format!("no server on loopback: {cause}"))
        .hint("the demo needs 127.0.0.1 with free TCP and UDP ports")
}

/// Runs a race with its own endpoint, so that only the memory is carried over.
async fn race(
    transports: &[Transport],
    server: &TestServer,
    authority: &TestAuthority,
    memory: &MemoryStore,
) -> Result<ReplayedRace, Failure> {
    let address = server.local_addr();
    let port = address.port();
    let endpoint = Endpoint::builder()
        .security(SecurityParameters::platform().with_roots([authority.root().clone()]))
        .resolver(Resolver::system().overriding(HOST, port, vec![address.ip()]))
        .memory(memory.clone())
        .sctp_encapsulation_port(server.sctp_udp_port().unwrap_or(ENCAPSULATION_PORT))
        .build()
        .map_err(|cause| Failure::new(FailureKind::Listen, cause.to_string()))?;
    let host = TargetHost::parse(HOST)
        .map_err(|cause| Failure::new(FailureKind::Url, cause.to_string()))?;
    let target = Target::https(host, port);
    let policy = Policy {
        transports: transports.to_vec(),
        late_switch_for: SILENT_AFTER,
        losers: LoserPolicy::Cancel,
        deadline: DEADLINE,
        dns_after_win: Duration::ZERO,
        ..Policy::default()
    };
    let mut initiation = endpoint.preconnection(target).policy(policy).seed(1).initiate();
    // A race that finds nothing is drawn as well.
    let connection = initiation.usable().await;
    let _ = tokio::time::timeout(WATCH_TIME, initiation.finished()).await;
    let race_report = ReplayedRace::from_trace(initiation.trace());
    drop(connection);
    race_report
}

fn object(results: &[SceneResult]) -> Value {
    let scenes: Vec<Value> = results
        .iter()
        .map(|result| {
            json!({
                "name": result.scene.name,
                "title": result.scene.title,
                "explanation": result.scene.explanation,
                "without_memory": value(&RaceJson::from(&result.first.report)),
                "with_memory": value(&RaceJson::from(&result.second.report)),
            })
        })
        .collect();
    json!({ "scenes": scenes })
}
