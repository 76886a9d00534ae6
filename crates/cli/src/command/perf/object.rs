//! The JSON object of `eyas perf`.

use std::time::Duration;

use eyas_perf::protocol::EndReport;
use eyas_perf::protocol::goodput::GoodputInterval;
use eyas_perf::protocol::request::TestRequest;
use eyas_perf::protocol::round_trips::RoundTripSummary;
use eyas_perf::protocol::statistics::FlowReport;
use serde_json::{Value, json};

use super::page::{cpu_per_gigabyte, outcome_bytes};
use super::setup::PerfSetup;
use super::{MeasuredTest, PerfRow};
use crate::shape::millis;

/// Returns the object of a run.
pub(super) fn object(setup: &PerfSetup, rows: &[PerfRow], interrupted: bool) -> Value {
    let tests = rows.iter().filter_map(|row| row.result.as_ref().ok()).map(test);
    let failed = rows.iter().filter_map(|row| Some((row.transport, row.result.as_ref().err()?)));
    let failed = failed.map(|(transport, failure)| {
        json!({
            "transport": transport.name(),
            "kind": failure.kind.name(),
            "exit_code": failure.kind.exit_code(),
            "message": failure.message,
        })
    });
    json!({
        "target": setup.name,
        "interrupted": interrupted,
        "request": request(&setup.request),
        "tests": tests.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
    })
}

/// Returns a request, or what was granted.
pub(super) fn request(request: &TestRequest) -> Value {
    json!({
        "streams": request.streams,
        "time_ms": millis(request.time),
        "omit_ms": millis(request.omit),
        "interval_ms": millis(request.interval),
        "count": (request.count > 0).then_some(request.count),
        "message_bytes": request.size,
        "rate_bits_per_second": (request.rate > 0).then_some(request.rate),
    })
}

fn test(test: &MeasuredTest) -> Value {
    let outcome = &test.report.outcome;
    let bytes = outcome_bytes(test);
    let (client, server) = (Some(&outcome.client), outcome.server.as_ref());
    json!({
        "transport": test.info.transport.name(),
        "security": test.info.security.name(),
        "address": test.info.remote.to_string(),
        "peer_key": test.peer_key().map(|key| key.to_string()),
        "direction": test.asked.direction.name(),
        "connect_ms": millis(test.connect),
        "first_byte_ms": millis(test.first_byte),
        "granted": request(&outcome.grant.request),
        "ended": outcome.ended.name(),
        "up": outcome.up.as_ref().map(flow),
        "down": outcome.down.as_ref().map(flow),
        "idle": test.report.idle.as_ref().map(round_trips),
        "loaded": test.report.loaded.as_ref().map(round_trips),
        "client": client.map(|end| end_object(end, bytes)),
        "server": server.map(|end| end_object(end, bytes)),
    })
}

fn flow(flow: &FlowReport) -> Value {
    let confidence = flow.confidence().map(|confidence| {
        json!({
            "method": "student-t",
            "level": 0.95,
            "intervals": confidence.count,
            "mean": rounded(confidence.mean),
            "low": rounded(confidence.mean - confidence.half_width),
            "high": rounded(confidence.mean + confidence.half_width),
            "autocorrelation": confidence.autocorrelation.map(|r| (r * 1e3).round() / 1e3),
        })
    });
    json!({
        "bytes": flow.bytes(),
        "time_ms": millis(flow.duration()),
        "goodput_bits_per_second": flow.goodput().map(rounded),
        "confidence": confidence,
        "intervals": flow.intervals.iter().map(interval).collect::<Vec<_>>(),
    })
}

fn interval(interval: &GoodputInterval) -> Value {
    json!({
        "start_ms": millis(interval.start),
        "length_ms": millis(interval.length),
        "bytes": interval.bytes,
        "bits_per_second": interval.rate().map(rounded),
    })
}

fn round_trips(times: &RoundTripSummary) -> Value {
    json!({
        "count": times.count,
        "unanswered": times.unanswered,
        "min_ms": millis(times.min),
        "p50_ms": millis(times.median),
        "p90_ms": millis(times.p90),
        "p99_ms": millis(times.p99),
        "max_ms": millis(times.max),
        "trimmed_mean_ms": millis(times.trimmed_mean),
        "per_minute": times.per_minute().map(rounded),
    })
}

/// Returns what one end measured of itself.
pub(super) fn end_object(end: &EndReport, bytes: u64) -> Value {
    let seconds = cpu_per_gigabyte(Some(end), bytes);
    json!({
        "received": end.received,
        "sent": end.sent,
        "measured_ms": millis(end.measured),
        "cpu_ms": end.cpu.map(millis),
        "cpu_seconds_per_gigabyte": seconds.map(|seconds| (seconds * 1e4).round() / 1e4),
        "retransmitted": end.retransmitted,
        "rtt_ms": end.rtt.map(|rtt: Duration| millis(rtt)),
    })
}

fn rounded(value: f64) -> f64 {
    value.round()
}
