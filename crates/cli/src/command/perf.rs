//! `eyas perf`: throughput and latency between two eyas, over each transport.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | the run: one test after the other, Ctrl-C, the exit code |
//! | `setup` | from the flags to connections and requests |
//! | `page` | the live line and the tables |
//! | `object` | the JSON object |
//! | `serve` | the server |

mod object;
mod page;
mod serve;
mod setup;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyas::race::candidate::Transport;
use eyas::{ConnectionInfo, KeyFingerprint};
use eyas_perf::client::{PerfTest, TestReport};
use eyas_perf::protocol::TestEnd;
use eyas_perf::protocol::client_session::TestFailure;
use eyas_perf::protocol::frame::RefusalKind;
use eyas_perf::protocol::request::{TestDirection, TestRequest};
use tokio::sync::watch;

use self::setup::{PerfSetup, SecuredTransport};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, PerfAction, PerfFlags};
use crate::output::{self, BodyProgress};
use crate::terminal::{self, OutputStyle};

/// Serves, or measures and reports.
pub(super) async fn run(flags: &PerfFlags, common: &CommonFlags) -> Result<(), Failure> {
    match &flags.action {
        Some(PerfAction::Serve(flags)) => serve::run(flags, common).await,
        None => measure(flags, common).await,
    }
}

/// One test, or the reason that there is none.
struct PerfRow {
    /// The transport that was asked for.
    transport: Transport,
    result: Result<MeasuredTest, Failure>,
}

/// A test that was run.
struct MeasuredTest {
    info: Arc<ConnectionInfo>,
    asked: TestRequest,
    /// From the start of the attempt until data could be sent.
    connect: Duration,
    /// From the start of the attempt until the server's first answer.
    first_byte: Duration,
    report: TestReport,
}

impl MeasuredTest {
    /// Returns the key that the server has proven.
    fn peer_key(&self) -> Option<KeyFingerprint> {
        self.info.peer_certificates.first().and_then(KeyFingerprint::from_certificate)
    }

    /// Returns whether the server has granted less than was asked for.
    fn is_capped(&self) -> bool {
        self.report.outcome.grant.request != self.asked
    }
}

async fn measure(flags: &PerfFlags, common: &CommonFlags) -> Result<(), Failure> {
    let mut interruption = super::listen()?;
    let setup = PerfSetup::new(flags).await?;
    let (stop, stopped) = watch::channel(false);
    let line = BodyProgress::text_line(!common.json, common.color);
    let mut tests = pin!(run_all(&setup, stopped, &line));
    let mut out_of_time = pin!(async {
        match flags.reach.max_time() {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    });
    let mut ended_by = None;
    let rows = loop {
        let kind = tokio::select! {
            rows = &mut tests => break rows,
            kind = interruption.next() => kind,
            () = &mut out_of_time, if ended_by.is_none() => FailureKind::Timeout,
        };
        if ended_by.replace(kind).is_some() {
            return Err(Failure::new(kind, "interrupted"));
        }
        stop.send_replace(true);
    };
    line.clear();
    setup.end().await;
    print(&setup, &rows, ended_by, common)
}

/// Runs each test until one is stopped.
async fn run_all(
    setup: &PerfSetup,
    mut stopped: watch::Receiver<bool>,
    line: &BodyProgress,
) -> Vec<PerfRow> {
    let mut rows = Vec::new();
    for &over in &setup.transports {
        for &direction in &setup.directions {
            if *stopped.borrow() {
                return rows;
            }
            let result = run_one(setup, (over, direction), &mut stopped, line).await;
            let has_failed = result.is_err();
            rows.push(PerfRow { transport: over.transport, result });
            // The other direction would need the same connection.
            if has_failed {
                break;
            }
        }
    }
    rows
}

async fn run_one(
    setup: &PerfSetup,
    (over, direction): (SecuredTransport, TestDirection),
    stopped: &mut watch::Receiver<bool>,
    line: &BodyProgress,
) -> Result<MeasuredTest, Failure> {
    let transport = over.transport;
    line.set_text(format!("{transport}: connecting"));
    let began = Instant::now();
    let connection = tokio::select! {
        connection = setup.connect(over) => connection?,
        _ = stopped.wait_for(|stopped| *stopped) => {
            return Err(Failure::new(FailureKind::Interrupted, "interrupted"));
        }
    };
    let info = connection.shared_info();
    let started = info.timings.started;
    let ready = info.timings.security.or(info.timings.transport).unwrap_or(started);
    let asked = TestRequest { direction, ..setup.request };
    let test = PerfTest { request: asked, idle: setup.idle, began };
    line.set_text(format!("{transport} {}: idle round trips", direction.name()));
    let connector = setup.connector();
    let report = test.run(
        connection,
        &connector,
        async {
            // The sender lives as long as the run.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        },
        |progress| {
            line.set_text(page::progress_line(transport, &progress, terminal::current_width()));
        },
    );
    let report = report.await.map_err(|cause| failed_test(&cause))?;
    Ok(MeasuredTest {
        asked,
        connect: ready.saturating_sub(started),
        first_byte: report.first_byte.saturating_sub(started),
        report,
        info,
    })
}

/// Returns the failure of a test that did not begin.
fn failed_test(cause: &TestFailure) -> Failure {
    let kind = match cause {
        TestFailure::Refused(refusal) if refusal.kind == RefusalKind::Request => FailureKind::Usage,
        TestFailure::Refused(_) | TestFailure::Channel(_) => FailureKind::Connect,
        TestFailure::Silent(_) => FailureKind::Timeout,
        TestFailure::Lost | TestFailure::Violation(_) => FailureKind::Protocol,
        TestFailure::Stopped => FailureKind::Interrupted,
    };
    let failure = Failure::new(kind, cause.to_string());
    match cause {
        TestFailure::Refused(refusal) if refusal.kind == RefusalKind::Busy => {
            failure.hint("try again later, or raise --max-tests at the server")
        }
        TestFailure::Lost | TestFailure::Silent(_) => failure.hint(
            "is it 'eyas perf serve' that listens there, of the same version, and with --plain \
                 at both ends or at neither?",
        ),
        _ => failure,
    }
}

fn print(
    setup: &PerfSetup,
    rows: &[PerfRow],
    ended_by: Option<FailureKind>,
    common: &CommonFlags,
) -> Result<(), Failure> {
    let failure = failure_of_all(rows, ended_by);
    if common.json {
        let object = object::object(setup, rows, ended_by.is_some());
        return match failure {
            Some(failure) => Err(failure.with_details(object)),
            None => output::object(&object),
        };
    }
    let style = OutputStyle::of_stdout(common.color);
    // With one transport, its failure is the message.
    if rows.len() > 1 || failure.is_none() {
        output::page(&page::report(setup, rows, style), style)?;
    }
    failure.map_or(Ok(()), Err)
}

/// Returns a failure if nothing was measured: the first one.
fn failure_of_all(rows: &[PerfRow], ended_by: Option<FailureKind>) -> Option<Failure> {
    let has_data = |measured: &MeasuredTest| {
        let outcome = &measured.report.outcome;
        let flows = [&outcome.up, &outcome.down];
        flows.into_iter().flatten().any(|flow| flow.bytes() > 0)
    };
    if rows.iter().any(|row| row.result.as_ref().is_ok_and(has_data)) {
        return None;
    }
    if let Some(kind) = ended_by {
        return Some(Failure::new(kind, "ended before anything was measured"));
    }
    let first = rows.iter().find_map(|row| Some((row.transport, row.result.as_ref().err()?)));
    Some(match first {
        Some((_, failure)) if rows.len() == 1 => failure.clone(),
        Some((transport, failure)) => {
            let text = format!("nothing could be measured; {transport}: {failure}");
            Failure { message: Failure::new(failure.kind, text).message, ..failure.clone() }
        }
        None => Failure::new(FailureKind::Protocol, "no data arrived"),
    })
}

/// Describes how a test ended before its time; `None` if it did not.
fn early_end(ended: TestEnd) -> Option<&'static str> {
    match ended {
        TestEnd::Complete => None,
        TestEnd::Stopped => Some("it was stopped before its time"),
        TestEnd::Late => Some("it had not ended long after its time"),
        TestEnd::ByteLimit => Some("it ended at the number of bytes that the server allows"),
        TestEnd::Lost => Some("the connection broke before the end"),
    }
}
