//! Races and plans without a request: nothing is fetched.

use std::time::Duration;

use eyas::{
    Preconnection,
    race::{
        candidate::{Security, Transport},
        policy::{Policy, SctpSecurity},
        target::{Target, TargetService},
    },
};
use pyo3::prelude::*;

use crate::{
    awaitable::{Awaitable, awaitable},
    endpoint::Endpoint,
    error::{duration, url_error, value_error},
    json, options,
    wait::wait,
};

/// The default deadline of a race of all candidates: enough for two retransmissions.
const ALL_DEADLINE: Duration = Duration::from_secs(8);
/// How long a finished race is observed for an upgrade to another transport.
const UPGRADE_WAIT: Duration = Duration::from_secs(1);

/// Returns the target of an `http` or `https` URL, or of a URL with transports as its scheme, such as
/// `sctp+tcp://host:port`.
fn target(text: &str) -> PyResult<Target> {
    if let Some((scheme, rest)) = text.split_once("://")
        && let Some(transports) = Transport::from_scheme(scheme)
    {
        return target_with_transports(text, rest.trim_end_matches('/'), transports);
    }
    let invalid =
        |why: &str| url_error(format_args!("{:?}: {why}", eyas_http::text_without_password(text)));
    let url = eyas_http::parse_url(text).map_err(|error| invalid(&error.to_string()))?;
    let name = url.host_str().ok_or_else(|| invalid("it has no host"))?;
    let host = eyas_http::host_of(&url).map_err(url_error)?;
    match (url.scheme(), url.port_or_known_default()) {
        ("https", Some(port)) => Ok(Target::https(host, port).named_as(name)),
        ("http", Some(port)) => Ok(Target::http(host, port).named_as(name)),
        _ => Err(invalid("its scheme is neither http nor https, nor transports such as quic+tcp")),
    }
}

fn target_with_transports(
    text: &str,
    authority: &str,
    transports: Vec<Transport>,
) -> PyResult<Target> {
    let parts = authority.rsplit_once(':');
    let parts = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (name, port) = parts.ok_or_else(|| {
        let shown = eyas_http::text_without_password(text);
        url_error(format_args!(
            "there is no port in {shown:?}; add one, as in sctp+tcp://host:5000"
        ))
    })?;
    let host = eyas::zone::parse_host(name).map_err(url_error)?;
    Ok(Target::plain(host, port, transports, Security::Tls).named_as(name))
}

/// The arguments of `race` and `plan`, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct RaceOptions {
    url: String,
    /// Whether to try every candidate to completion, regardless of the memory.
    all: bool,
    /// The time limit of the race, in seconds.
    timeout: Option<f64>,
    /// The seed of random decisions.
    seed: Option<u64>,
}

impl RaceOptions {
    fn preconnection(self, endpoint: &Endpoint) -> PyResult<Preconnection> {
        let target = target(&self.url)?;
        let mut policy = Policy::default();
        if let TargetService::Plain { transports, .. } = &target.service {
            policy.transports.clone_from(transports);
        }
        if self.all {
            policy.exhaustive = true;
            policy.ignore_memory = true;
            policy.sctp_security = SctpSecurity::Both;
            policy.deadline = ALL_DEADLINE;
            if matches!(target.service, TargetService::Http { .. }) {
                let rest = Transport::ALL.into_iter();
                let rest: Vec<_> = rest.filter(|one| !policy.transports.contains(one)).collect();
                policy.transports.extend(rest);
            }
        }
        if let Some(seconds) = self.timeout {
            policy.deadline = duration(seconds)?;
        }
        let policy = policy.validated().map_err(value_error)?;
        let preconnection = endpoint.share()?.preconnection(target).policy(policy);
        Ok(match self.seed {
            Some(seed) => preconnection.seed(seed),
            None => preconnection,
        })
    }
}

async fn run(preconnection: Preconnection) -> PyResult<String> {
    let mut initiation = preconnection.initiate();
    // A race without a winner is reported, too.
    let connected = initiation.usable().await;
    if connected.is_ok() {
        let _ = tokio::time::timeout(UPGRADE_WAIT, initiation.finished()).await;
    }
    let mut race = json::race(&initiation.trace())?;
    race["failure"] = connected.err().map(|error| error.to_string()).into();
    Ok(race.to_string())
}

async fn make_plan(preconnection: Preconnection) -> PyResult<String> {
    Ok(json::plan(&preconnection.plan().await).to_string())
}

/// Races to a target and returns a report as JSON.
#[pyfunction]
pub(crate) fn race(
    py: Python<'_>,
    endpoint: &Endpoint,
    options: &Bound<'_, PyAny>,
) -> PyResult<String> {
    wait(py, run(options::read::<RaceOptions>(options)?.preconnection(endpoint)?))
}

/// The awaitable form of `race`.
#[pyfunction]
pub(crate) fn arace(
    py: Python<'_>,
    endpoint: &Endpoint,
    options: &Bound<'_, PyAny>,
) -> PyResult<Awaitable> {
    awaitable(py, run(options::read::<RaceOptions>(options)?.preconnection(endpoint)?))
}

/// Returns the plan as JSON, without connecting to anything.
#[pyfunction]
pub(crate) fn plan(
    py: Python<'_>,
    endpoint: &Endpoint,
    options: &Bound<'_, PyAny>,
) -> PyResult<String> {
    wait(py, make_plan(options::read::<RaceOptions>(options)?.preconnection(endpoint)?))
}

/// The awaitable form of `plan`.
#[pyfunction]
pub(crate) fn aplan(
    py: Python<'_>,
    endpoint: &Endpoint,
    options: &Bound<'_, PyAny>,
) -> PyResult<Awaitable> {
    awaitable(py, make_plan(options::read::<RaceOptions>(options)?.preconnection(endpoint)?))
}
