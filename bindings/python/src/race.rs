//! A race or a plan for its own sake: nothing is fetched.

use std::time::Duration;

use eyas::{
    Preconnection,
    race::{
        candidate::{Security, Transport},
        policy::{Policy, SctpSecurity},
        target::{Host, Service, Target},
    },
};
use pyo3::prelude::*;

use crate::{
    endpoint::Endpoint,
    failure::{duration, of_url, of_value},
    json,
    wait::{awaitable, wait},
};

/// What every candidate gets in a race of all, if the caller does not say: room for two
/// retransmissions.
const ALL_DEADLINE: Duration = Duration::from_secs(8);
/// How long a race that was won is watched for the late switch.
const WATCHED: Duration = Duration::from_secs(1);

/// The target of an `http` or `https` URL, or of one such as `sctp+tcp://host:port` that names its
/// transports.
fn target(text: &str) -> PyResult<Target> {
    if let Some((scheme, rest)) = text.split_once("://")
        && let Some(transports) = Transport::from_scheme(scheme)
    {
        return of_transports(text, rest.trim_end_matches('/'), transports);
    }
    let refuse =
        |why: &str| of_url(format_args!("{:?}: {why}", eyas_http::text_without_password(text)));
    let url = url::Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
    let host = url.host_str().ok_or_else(|| refuse("it has no host"))?;
    let host = Host::parse(host).map_err(of_url)?;
    match (url.scheme(), url.port_or_known_default()) {
        ("https", Some(port)) => Ok(Target::https(host, port)),
        ("http", Some(port)) => Ok(Target::http(host, port)),
        _ => Err(refuse("its scheme is neither http nor https, nor transports such as quic+tcp")),
    }
}

fn of_transports(text: &str, place: &str, transports: Vec<Transport>) -> PyResult<Target> {
    let parts = place.rsplit_once(':');
    let parts = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (host, port) = parts.ok_or_else(|| {
        let shown = eyas_http::text_without_password(text);
        of_url(format_args!("there is no port in {shown:?}; add one, as in sctp+tcp://host:5000"))
    })?;
    let host = Host::parse(host).map_err(of_url)?;
    Ok(Target::plain(host, port, transports, Security::Tls))
}

/// What is to be raced or planned, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    url: String,
    /// Every candidate is tried to its end, whatever is remembered.
    all: bool,
    /// Seconds that the race may take.
    timeout: Option<f64>,
    /// What chance decides.
    seed: Option<u64>,
}

impl Wanted {
    fn preconnection(self, endpoint: &Endpoint) -> PyResult<Preconnection> {
        let target = target(&self.url)?;
        let mut policy = Policy::default();
        if let Service::Plain { transports, .. } = &target.service {
            policy.transports.clone_from(transports);
        }
        if self.all {
            policy.exhaustive = true;
            policy.ignore_memory = true;
            policy.sctp_security = SctpSecurity::Both;
            policy.deadline = ALL_DEADLINE;
            if matches!(target.service, Service::Http { .. }) {
                let rest = Transport::ALL.into_iter();
                let rest: Vec<_> = rest.filter(|one| !policy.transports.contains(one)).collect();
                policy.transports.extend(rest);
            }
        }
        if let Some(seconds) = self.timeout {
            policy.deadline = duration(seconds)?;
        }
        let policy = policy.validated().map_err(of_value)?;
        let preconnection = endpoint.share().preconnection(target).policy(policy);
        Ok(match self.seed {
            Some(seed) => preconnection.seed(seed),
            None => preconnection,
        })
    }
}

async fn run(preconnection: Preconnection) -> PyResult<String> {
    let mut initiation = preconnection.initiate();
    // Who asks how a race goes wants to know it of one that is lost, too.
    let connected = initiation.usable().await;
    if connected.is_ok() {
        let _ = tokio::time::timeout(WATCHED, initiation.finished()).await;
    }
    let mut race = json::race(&initiation.trace())?;
    race["failure"] = connected.err().map(|error| error.to_string()).into();
    Ok(race.to_string())
}

async fn make_plan(preconnection: Preconnection) -> PyResult<String> {
    Ok(json::plan(&preconnection.plan().await).to_string())
}

/// Races to a target and says how it went, as JSON.
#[pyfunction]
pub(crate) fn race(py: Python<'_>, endpoint: &Endpoint, wanted: Wanted) -> PyResult<String> {
    wait(py, run(wanted.preconnection(endpoint)?))
}

/// The same, to be awaited.
#[pyfunction]
pub(crate) fn arace<'py>(
    py: Python<'py>,
    endpoint: &Endpoint,
    wanted: Wanted,
) -> PyResult<Bound<'py, PyAny>> {
    awaitable(py, run(wanted.preconnection(endpoint)?))
}

/// What would be tried, in which order and why, as JSON: nothing is connected to.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, endpoint: &Endpoint, wanted: Wanted) -> PyResult<String> {
    wait(py, make_plan(wanted.preconnection(endpoint)?))
}

/// The same, to be awaited.
#[pyfunction]
pub(crate) fn aplan<'py>(
    py: Python<'py>,
    endpoint: &Endpoint,
    wanted: Wanted,
) -> PyResult<Bound<'py, PyAny>> {
    awaitable(py, make_plan(wanted.preconnection(endpoint)?))
}
