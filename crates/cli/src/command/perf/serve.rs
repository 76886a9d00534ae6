//! `eyas perf serve`: tests for whoever asks, within limits.

use std::sync::Arc;

use eyas::race::candidate::Transport;
use eyas::{KeyFingerprint, ListenParameters, Listener, ServerIdentity};
use eyas_perf::protocol::frame::TestRefusal;
use eyas_perf::protocol::request::{ServerLimits, TestDirection, TestRequest};
use eyas_perf::protocol::server_session::ServerOutcome;
use eyas_perf::server::{PerfServer, ServerEvent, TestPeer, listen_parameters};
use eyas_sctp_tokio::ENCAPSULATION_PORT;
use eyas_sctp_tokio::protocol::config::AssociationConfig;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::object::{end_object, request};
use super::page::bytes_text;
use crate::command::{descriptors, identity, setting};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, PerfServeFlags};
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine, shown_json, time};

/// Names in a generated certificate.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// The most events that wait to be printed; more are not printed, so that no test waits for a terminal.
const MAX_EVENTS: usize = 1_024;

/// Serves until Ctrl-C.
pub(super) async fn run(flags: &PerfServeFlags, common: &CommonFlags) -> Result<(), Failure> {
    let mut interruption = crate::command::listen()?;
    descriptors::raise_limit();
    let limits = ServerLimits {
        tests: flags.max_tests.into(),
        time: flags.max_test_time,
        bytes: flags.max_bytes,
    };
    let identity = identity_of(flags)?;
    let listener = bind(flags, identity.clone()).await?;
    let server = PerfServer::new(listener, limits);
    announce(&server, identity.as_ref(), flags, common)?;
    let (events, mut to_print) = mpsc::channel(MAX_EVENTS);
    let events = Arc::new(events);
    let serving = server.run(move |event| {
        let _ = events.try_send(event);
    });
    let mut serving = std::pin::pin!(serving);
    loop {
        tokio::select! {
            () = &mut serving => return Ok(()),
            _ = interruption.next() => return Ok(()),
            Some(event) = to_print.recv() => print(&event, common)?,
        }
    }
}

fn identity_of(flags: &PerfServeFlags) -> Result<Option<ServerIdentity>, Failure> {
    if flags.plain {
        return Ok(None);
    }
    match (&flags.cert, &flags.key) {
        (Some(cert), Some(key)) => identity::from_files(cert, key, &flags.passphrase),
        _ => {
            let names = LOCAL_NAMES.iter().copied().chain(flags.names.iter().map(String::as_str));
            identity::generated(names, flags.save_cert.as_deref())
        }
    }
    .map(Some)
}

async fn bind(
    flags: &PerfServeFlags,
    identity: Option<ServerIdentity>,
) -> Result<Listener, Failure> {
    let mut parameters = ListenParameters::new(flags.listen)
        .transports(setting::served_transports(!flags.plain))
        .sctp_addresses(flags.paths.local_address.iter().copied())
        .sctp_association(setting::association(AssociationConfig::default(), &flags.paths))
        .sctp_encapsulation_port(flags.sctp_udp_port.unwrap_or(ENCAPSULATION_PORT))
        .sctp_optional(flags.sctp_udp_port.is_none());
    if let Some(identity) = identity {
        parameters = parameters.security(identity);
    }
    Listener::bind(listen_parameters(parameters))
        .await
        .map_err(|cause| Failure::new(FailureKind::Listen, cause.to_string()))
}

/// Reports where the server listens, once it does.
fn announce(
    server: &PerfServer,
    identity: Option<&ServerIdentity>,
    flags: &PerfServeFlags,
    common: &CommonFlags,
) -> Result<(), Failure> {
    let listener = server.listener();
    let missing = listener.sctp_missing();
    if let Some(why) = missing {
        let text = format!("no SCTP inside UDP: {why}; choose another with --sctp-udp-port");
        output::notice(common.color, text);
    }
    let key =
        identity.and_then(|identity| KeyFingerprint::from_certificate(identity.certificate()));
    let sctp = listener.sctp();
    if common.json {
        return print_object(&json!({
            "event": "listening",
            "address": listener.local_addr().to_string(),
            "transports": served(server, flags).map(Transport::name).collect::<Vec<_>>(),
            "sctp_udp_port": sctp.and_then(|sctp| sctp.encapsulation_port()),
            "sctp_missing": missing,
            "key": key.map(|key| key.to_string()),
            "max_tests": flags.max_tests,
            "max_test_time_ms": crate::shape::millis(flags.max_test_time),
            "max_bytes": flags.max_bytes,
        }));
    }
    let names: Vec<_> = served(server, flags).map(Transport::name).collect();
    let mut lines = vec![
        PaintedLine::new()
            .with_span(Paint::Good, "listening on ")
            .with_span(Paint::Head, listener.local_addr().to_string())
            .with_span(Paint::Plain, format!("  {}", names.join(", "))),
    ];
    let mut add_row = |what: &str, value: String| {
        let label = format!("  {what:<10}");
        lines.push(PaintedLine::new().with_span(Paint::Dim, label).with_span(Paint::Plain, value));
    };
    let limits = (flags.max_tests, time(flags.max_test_time));
    let bytes = bytes_text(flags.max_bytes);
    add_row("limits", format!("{} at once, {} and {bytes} each way", limits.0, limits.1));
    let inside_udp = sctp.and_then(|sctp| sctp.encapsulation_port());
    if let Some(port) = inside_udp.filter(|port| *port != ENCAPSULATION_PORT) {
        add_row("SCTP", format!("inside UDP port {port} (clients: --sctp-udp-port {port})"));
    }
    if let Some(key) = key {
        add_row("key", key.to_string());
    }
    output::page(&lines, OutputStyle::of_stdout(common.color))
}

/// Returns the transports that are served.
fn served(server: &PerfServer, flags: &PerfServeFlags) -> impl Iterator<Item = Transport> {
    let sctp = server.listener().sctp();
    let over_ip = sctp.is_some_and(|sctp| sctp.is_direct());
    let inside_udp = sctp.is_some_and(|sctp| sctp.encapsulation_port().is_some());
    setting::served_transports(!flags.plain).filter(move |transport| match transport {
        Transport::Sctp => over_ip,
        Transport::SctpUdp => inside_udp,
        _ => true,
    })
}

fn print(event: &ServerEvent, common: &CommonFlags) -> Result<(), Failure> {
    if common.json {
        return match event {
            ServerEvent::Granted(..) => Ok(()),
            ServerEvent::Ended(peer, granted, outcome) => {
                print_object(&ended_object(peer, granted, outcome))
            }
            ServerEvent::Refused(peer, refusal) => print_object(&refused_object(peer, refusal)),
        };
    }
    let (paint, peer, text) = match event {
        ServerEvent::Granted(peer, granted) => (Paint::Dim, peer, began(granted)),
        ServerEvent::Ended(peer, _, outcome) => (Paint::Plain, peer, ended(outcome)),
        ServerEvent::Refused(peer, refusal) => {
            (Paint::Warn, peer, format!("refused: {}", refusal.text))
        }
    };
    let text = format!("{} {}  {text}", peer.transport, peer.remote);
    output::page(&[PaintedLine::new().with_span(paint, text)], OutputStyle::of_stdout(common.color))
}

fn began(granted: &TestRequest) -> String {
    let way = match granted.direction {
        TestDirection::Up => "from the client",
        TestDirection::Down => "to the client",
        TestDirection::AtOnce => "in both directions",
    };
    format!("{way} for {}", time(granted.duration()))
}

fn ended(outcome: &ServerOutcome) -> String {
    let Some(how) = outcome.ended else { return "ended before it began".to_owned() };
    let report = &outcome.report;
    let rate = |what: &str, bytes: u64| {
        let seconds = report.measured.as_secs_f64();
        let megabits = bytes as f64 * 8.0 / 1e6 / seconds.max(f64::MIN_POSITIVE);
        (bytes > 0 && seconds > 0.0).then(|| format!(", {what} {megabits:.1} Mbit/s"))
    };
    let rates = [rate("received", report.received), rate("sent", report.sent)];
    format!("{}{}", how.name(), rates.into_iter().flatten().collect::<String>())
}

fn ended_object(peer: &TestPeer, granted: &TestRequest, outcome: &ServerOutcome) -> Value {
    let report = &outcome.report;
    json!({
        "event": "ended",
        "transport": peer.transport.name(),
        "remote": peer.remote.to_string(),
        "direction": granted.direction.name(),
        "granted": request(granted),
        "ended": outcome.ended.map(|ended| ended.name()),
        "server": end_object(report, report.received.saturating_add(report.sent)),
    })
}

fn refused_object(peer: &TestPeer, refusal: &TestRefusal) -> Value {
    json!({
        "event": "refused",
        "transport": peer.transport.name(),
        "remote": peer.remote.to_string(),
        "message": refusal.text,
    })
}

/// Prints an object on a line of its own.
fn print_object(object: &Value) -> Result<(), Failure> {
    output::text(&(shown_json(object, false) + "\n"))
}
