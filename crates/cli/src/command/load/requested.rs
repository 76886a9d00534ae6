//! Converts flags to a load.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use eyas::race::memory;
use eyas::race::policy::Policy;
use eyas::{Endpoint, MemoryStore};
use eyas_http::{Versions, without_password};
use eyas_load::{ArrivalProcess, ArrivalRate, ConnectionUse, Load, LoadExtent};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use url::Url;

use crate::command::{setting, target};
use crate::failure::{Failure, FailureKind};
use crate::flags::{LoadChoiceFlags, LoadFlags, LoadRequestFlags, RacePolicy, ReachFlags};
use crate::shape::millis;

/// How much longer than the duration the requests in flight may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// The default duration of arrivals.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// The requested load.
pub(super) struct RequestedLoad {
    /// The load.
    pub(super) load: Load,
    policy: RacePolicy,
}

/// Reads the flags, and the files that they name.
pub(super) async fn read(flags: &LoadFlags) -> Result<RequestedLoad, Failure> {
    let url = target::url(&flags.url)?;
    let user = flags.request.user.clone().or_else(|| user_of(&url));
    let target = target::from_url(&url, flags.versions)?;
    let (arrivals, connections) = (&flags.arrivals, &flags.connections);
    let mut security = setting::security(&flags.trust)?;
    if !connections.resume {
        security = security.without_resumption();
    }
    let memory = match flags.choice.no_memory {
        true => MemoryStore::none(),
        false => MemoryStore::in_memory(memory::MemoryConfig::default()),
    };
    let sources = connections.source.iter().flat_map(|range| range.0.iter().copied());
    let builder = Endpoint::builder().security(security).memory(memory).local_addresses(sources);
    let mut load = Load::new(url);
    load.endpoint = setting::with_reach(builder, &flags.reach, &target).await?;
    load.extent = LoadExtent {
        duration: arrivals.duration.or(arrivals.requests.is_none().then_some(DEFAULT_DURATION)),
        requests: arrivals.requests,
    };
    let ramp = load.extent.duration.unwrap_or(DEFAULT_DURATION);
    let rate = arrivals.rate.into_rate(ramp);
    load.arrivals = ArrivalProcess { spacing: arrivals.arrivals.into(), rate };
    load.clients = arrivals.clients.map(|clients| clients as usize);
    load.patience = Some(PATIENCE);
    load.warm_up = arrivals.warm_up;
    load.objects = arrivals.size.iter().map(|size| format!("/bytes/{size}")).collect();
    load.connections = match connections.connections {
        None => ConnectionUse::PerRequest,
        Some(max_connections) => ConnectionUse::Persistent {
            max_connections: max_connections as usize,
            streams: connections.streams as usize,
        },
    };
    load.http1_0 = flags.http1_0;
    load.versions =
        if flags.http1_0 { Versions::HTTP_1 } else { setting::versions(flags.versions) };
    load.race = policy(&flags.choice, &flags.reach)?;
    load.hit_rate = flags.choice.hit_rate.unwrap_or(0.0);
    load.outcomes.clone_from(&flags.choice.outcome);
    load.race.ignore_memory |= flags.choice.hit_rate.is_some();
    add_request(&mut load, &flags.request, user.as_deref())?;
    load.timeout = flags.reach.max_time().unwrap_or(load.timeout);
    load.max_in_flight = arrivals.max_in_flight as usize;
    load.threads = usize::from(arrivals.threads);
    load.seed = arrivals.seed.unwrap_or_else(seed_by_chance);
    Ok(RequestedLoad { load, policy: flags.choice.policy })
}

fn policy(choice: &LoadChoiceFlags, reach: &ReachFlags) -> Result<Policy, Failure> {
    let mut policy = Policy::default();
    if !choice.transport.is_empty() {
        policy.transports.clone_from(&choice.transport);
    }
    policy = setting::with_race_policy(choice.policy, policy);
    policy.only_family = setting::only_family(reach);
    policy.sctp_security = choice.sctp_security.into();
    if let Some(head_start) = choice.head_start {
        policy = policy.with_head_start(head_start);
    }
    policy.second_tries = choice.second_tries.unwrap_or(policy.second_tries);
    if let Some(delay) = choice.attempt_delay {
        setting::set_attempt_delay(&mut policy, delay);
    }
    if let Some(limit) = reach.connect_timeout() {
        policy.deadline = limit;
    }
    policy.validated().map_err(|cause| setting::refused_policy(&cause))
}

/// Returns a seed that is short enough to be typed, and exact in JSON.
fn seed_by_chance() -> u64 {
    RandomState::new().hash_one(()) >> 32
}

/// Returns the user and the password of a URL.
fn user_of(url: &Url) -> Option<String> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (user, password) = (url.username(), url.password());
    (!user.is_empty() || password.is_some())
        .then(|| format!("{}:{}", decoded(user), decoded(password.unwrap_or_default())))
}

fn add_request(
    load: &mut Load,
    request: &LoadRequestFlags,
    user: Option<&str>,
) -> Result<(), Failure> {
    if let Some(data) = &request.data {
        load.method = Method::POST;
        load.body = match data.strip_prefix('@') {
            Some(file) => std::fs::read(file).map_err(|cause| Failure::read(file, &cause))?.into(),
            None => data.clone().into(),
        };
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        load.headers.insert(CONTENT_TYPE, form);
    }
    if let Some(method) = &request.method {
        load.method = method.clone();
    }
    if let Some(user) = user {
        let colon = if user.contains(':') { "" } else { ":" };
        let value = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}{colon}")));
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| Failure::new(FailureKind::Usage, "the user of -u cannot be sent"))?;
        value.set_sensitive(true);
        load.headers.insert(AUTHORIZATION, value);
    }
    for line in &request.header {
        load.headers.remove(&line.name);
    }
    for line in &request.header {
        if let Some(value) = &line.value {
            load.headers.append(line.name.clone(), value.clone());
        }
    }
    Ok(())
}

impl RequestedLoad {
    /// Returns the load as data.
    pub(super) fn shape(&self) -> Value {
        let load = &self.load;
        let (from, to) = match load.arrivals.rate {
            ArrivalRate::Fixed(rate) => (rate, rate),
            ArrivalRate::Ramp { from, to, .. } => (from, to),
        };
        let connections = match load.connections {
            ConnectionUse::PerRequest => json!({ "kept": Value::Null, "streams": Value::Null }),
            ConnectionUse::Persistent { max_connections, streams } => {
                json!({ "kept": max_connections, "streams": streams })
            }
        };
        json!({
            "url": without_password(&load.url),
            "objects": load.objects,
            "method": load.method.as_str(),
            "body_bytes": load.body.len(),
            "arrivals": match load.clients {
                None => json!({ "spacing": load.arrivals.spacing, "from": from, "to": to }),
                Some(_) => Value::Null,
            },
            "clients": load.clients,
            "duration_s": load.extent.duration.map(|duration| duration.as_secs_f64()),
            "requests": load.extent.requests,
            "warm_up_s": load.warm_up.as_secs_f64(),
            "connections": connections,
            "transports": load.race.transports,
            "policy": self.policy_name(),
            "hit_rate": load.hit_rate,
            "outcomes": load.outcomes,
            "timeout_ms": millis(load.timeout),
            "max_in_flight": load.max_in_flight,
            "threads": load.threads,
            "seed": load.seed,
        })
    }

    fn policy_name(&self) -> &'static str {
        match self.policy {
            RacePolicy::Race => "race",
            RacePolicy::Naive => "naive",
            RacePolicy::Serial => "serial",
        }
    }

    /// Describes the load in one line.
    pub(super) fn description(&self) -> String {
        let load = &self.load;
        let seed = load.seed;
        let rate = match load.arrivals.rate {
            ArrivalRate::Fixed(rate) => format!("{rate}/s"),
            ArrivalRate::Ramp { from, to, .. } => format!("{from}/s to {to}/s"),
        };
        let spacing = match load.arrivals.spacing {
            eyas_load::ArrivalSpacing::Poisson => "Poisson",
            eyas_load::ArrivalSpacing::Constant => "constant",
        };
        let connections = match load.connections {
            ConnectionUse::PerRequest => "one connection per request".to_owned(),
            ConnectionUse::Persistent { max_connections: 1, .. } => {
                "one persistent connection".to_owned()
            }
            ConnectionUse::Persistent { max_connections, .. } => {
                format!("up to {max_connections} persistent connections")
            }
        };
        match load.clients {
            None => format!("{spacing} arrivals, {rate}, {connections}, seed {seed}"),
            Some(1) => {
                format!("one client that waits for its responses, {connections}, seed {seed}")
            }
            Some(clients) => format!(
                "{clients} clients that wait for their responses, {connections}, seed {seed}"
            ),
        }
    }
}
