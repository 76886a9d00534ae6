//! `eyas memory`: what has been learnt, and forgetting it.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas::MemoryStore;
use eyas::race::memory::{
    Config, Entry, Key, Outcome, PathEntry, PeerEntry, Record, Subject, Verdict,
};
use eyas::race::target::Host;
use serde_json::{Map, Value, json};

use super::setting;
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, MemoryAction, MemoryFlags};
use crate::output;
use crate::shape::{MemoryRowShape, millis, value};
use crate::terminal::{Line, Look, Paint, table, time};

/// Shows or changes the memory.
pub(crate) fn run(flags: &MemoryFlags, common: &CommonFlags) -> Result<(), Failure> {
    let Some(path) = setting::memory_path(flags.memory.as_ref())? else {
        return Err(Failure::new(Kind::Usage, "--memory none has nothing to show")
            .hint("name a file, or leave it out"));
    };
    let action = flags.action.clone().unwrap_or(MemoryAction::List { host: None });
    if matches!(action, MemoryAction::Path) {
        return say_path(&path, common);
    }
    if !path.exists() {
        return nothing_there(&path, &action, common);
    }
    let store = MemoryStore::open(&path, Config::default());
    match action {
        MemoryAction::List { host } => {
            let host = host.map(|host| parse(&host)).transpose()?;
            let rows = store.entries().into_iter().filter(|row| match (&host, row.key.host()) {
                (None, _) => true,
                (Some(host), of) => of == Some(host),
            });
            let rows = shapes(rows.collect());
            list(&path, &rows, &store.warnings(), common)
        }
        MemoryAction::Forget { host } => {
            let gone = store.forget(&parse(&host)?);
            changed(&store, &path)?;
            forgotten(&path, gone, common)
        }
        MemoryAction::Clear => {
            let gone = store.entries().len();
            store.clear();
            changed(&store, &path)?;
            forgotten(&path, gone, common)
        }
        MemoryAction::Path => say_path(&path, common),
    }
}

/// Forgetting must not fail in silence.
fn changed(store: &MemoryStore, path: &Path) -> Result<(), Failure> {
    match store.warnings().first() {
        None => Ok(()),
        Some(warning) => Err(Failure::new(Kind::Memory, warning.clone())
            .hint(format!("is {} writable by you?", path.display()))),
    }
}

fn parse(host: &str) -> Result<Host, Failure> {
    Host::parse(host).map_err(|cause| Failure::new(Kind::Url, cause.to_string()))
}

fn nothing_there(path: &Path, action: &MemoryAction, common: &CommonFlags) -> Result<(), Failure> {
    match action {
        MemoryAction::List { .. } => list(path, &[], &[], common),
        _ => forgotten(path, 0, common),
    }
}

fn say_path(path: &Path, common: &CommonFlags) -> Result<(), Failure> {
    let text = path.display().to_string();
    match common.json {
        true => output::object(&json!({ "path": text })),
        false => {
            let line = Line::new().with(Paint::Plain, text);
            output::page(&[line], Look::of_stdout(common.color))
        }
    }
}

fn forgotten(path: &Path, count: usize, common: &CommonFlags) -> Result<(), Failure> {
    if common.json {
        let path = path.display().to_string();
        return output::object(&json!({ "path": path, "forgotten": count }));
    }
    let text = match count {
        0 => "nothing was remembered".to_owned(),
        1 => "forgot one row".to_owned(),
        count => format!("forgot {count} rows"),
    };
    output::page(&[Line::new().with(Paint::Plain, text)], Look::of_stdout(common.color))
}

/// Rows as the shapes have them, newest first.
fn shapes(rows: Vec<Record>) -> Vec<MemoryRowShape> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let config = Config::default();
    let mut shapes: Vec<_> =
        rows.iter().filter_map(|row| shape(&row.key, &row.entry, now, &config)).collect();
    shapes.sort_by(|a, b| a.age_ms.total_cmp(&b.age_ms));
    shapes
}

/// One row; a row whose key and entry disagree was damaged and says nothing.
fn shape(key: &Key, entry: &Entry, now: Duration, config: &Config) -> Option<MemoryRowShape> {
    let network = key.network.0.clone();
    let age_ms = millis(now.saturating_sub(entry.at()));
    match (&key.subject, entry) {
        (Subject::Peer { host, transport, security, address }, Entry::Peer(peer)) => {
            let (verdict, cause, holds) = judge(peer, now, config);
            let strikes = match peer.outcome {
                Outcome::Bad { strikes, .. } => strikes,
                Outcome::Good { .. } => 0,
            };
            Some(MemoryRowShape {
                network,
                host: Some(host.to_string()),
                transport: transport.name(),
                security: Some(security.name()),
                address: address.to_string(),
                verdict,
                cause,
                strikes,
                age_ms,
                holds_for_ms: holds.map(millis),
                rtt_ms: peer.round_trip.map(|round_trip| millis(round_trip.smoothed)),
                handshakes: 0,
                sent_again: 0,
            })
        }
        (Subject::Path { transport, family, port }, Entry::Path(path)) => Some(MemoryRowShape {
            network,
            host: None,
            transport: transport.name(),
            security: None,
            address: format!("{family}:{port}"),
            strikes: u32::try_from(path.silent.len()).unwrap_or(u32::MAX),
            age_ms,
            ..judged_path(path, now, config)
        }),
        _ => None,
    }
}

fn judge(
    peer: &PeerEntry,
    now: Duration,
    config: &Config,
) -> (&'static str, Option<String>, Option<Duration>) {
    match peer.verdict(now, config) {
        Verdict::Good { .. } => {
            let until = peer.at.saturating_add(config.good_for);
            ("good", None, Some(until.saturating_sub(now)))
        }
        Verdict::Bad { cause, until } => {
            ("bad", Some(cause.to_string()), Some(until.saturating_sub(now)))
        }
        Verdict::RetestDue { cause, .. } => ("retest-due", Some(cause.to_string()), None),
        _ => ("unknown", None, None),
    }
}

fn judged_path(path: &PathEntry, now: Duration, config: &Config) -> MemoryRowShape {
    let swallowed = path.swallowed(now, config).is_some();
    let heard = path.heard_at.is_some() && path.silent.is_empty();
    let (verdict, cause) = match (swallowed, heard) {
        (true, _) => ("network-bad", Some("silent".to_owned())),
        (false, true) => ("good", None),
        (false, false) => ("unknown", None),
    };
    let loss = path.loss(now, config);
    MemoryRowShape {
        network: String::new(),
        host: None,
        transport: "",
        security: None,
        address: String::new(),
        verdict,
        cause,
        strikes: 0,
        age_ms: 0.0,
        holds_for_ms: None,
        rtt_ms: None,
        handshakes: loss.handshakes,
        sent_again: loss.sent_again,
    }
}

fn list(
    path: &Path,
    rows: &[MemoryRowShape],
    warnings: &[String],
    common: &CommonFlags,
) -> Result<(), Failure> {
    if common.json {
        let mut object = Map::new();
        object.insert("path".to_owned(), path.display().to_string().into());
        object.insert("rows".to_owned(), rows.iter().map(value).collect::<Vec<Value>>().into());
        object.insert("warnings".to_owned(), warnings.to_vec().into());
        return output::object(&object.into());
    }
    let look = Look::of_stdout(common.color);
    let warn = |text: &String| Line::new().with(Paint::Warn, text);
    output::aside(&warnings.iter().map(warn).collect::<Vec<_>>(), look);
    if rows.is_empty() {
        let line = Line::new()
            .with(Paint::Plain, "Nothing is remembered. ")
            .with(Paint::Dim, path.display().to_string());
        return output::page(&[line], look);
    }
    let header = ["host", "over", "address", "age", "away", "verdict"];
    output::page(&table(&header, rows.iter().map(row).collect(), look), look)
}

fn row(shape: &MemoryRowShape) -> Vec<(Paint, String)> {
    let span = |ms: f64| time(Duration::from_secs_f64(ms.max(0.0) / 1e3));
    let paint = match shape.verdict {
        "good" => Paint::Good,
        "bad" | "network-bad" => Paint::Bad,
        "retest-due" => Paint::Warn,
        _ => Paint::Dim,
    };
    let mut verdict = shape.cause.clone().unwrap_or_else(|| shape.verdict.to_owned());
    match (shape.verdict, shape.holds_for_ms) {
        ("bad", Some(ms)) => verdict.push_str(&format!(", again in {}", span(ms))),
        ("good", Some(ms)) => verdict.push_str(&format!(" for {}", span(ms))),
        ("retest-due", _) => verdict.push_str(", re-test due"),
        ("network-bad", _) => verdict.push_str(" on this network"),
        _ => {}
    }
    if shape.sent_again > 0 {
        let (again, all) = (shape.sent_again, shape.handshakes);
        verdict.push_str(&format!(", {again} of the last {all} handshakes sent packets again"));
    }
    vec![
        (Paint::Plain, shape.host.clone().unwrap_or_else(|| "(network)".to_owned())),
        (Paint::Plain, shape.transport.to_owned()),
        (Paint::Plain, shape.address.clone()),
        (Paint::Dim, span(shape.age_ms)),
        (Paint::Dim, shape.rtt_ms.map(span).unwrap_or_default()),
        (paint, verdict),
    ]
}
