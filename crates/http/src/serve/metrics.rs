//! Metrics about the server's activity and the cost to its process.

mod process;

use std::{fmt, net::SocketAddr, sync::Arc};

use self::process::Process;
use super::{ServeError, Stats, shared::Shared};
use crate::metrics::{self, Page};

/// A function that counts SCTP associations.
pub(super) type Associations = Box<dyn Fn() -> u64 + Send + Sync>;

/// A function that adds the service's own metrics to the page.
pub(super) struct ServiceMetrics(pub(super) Box<dyn Fn(&mut Page) + Send + Sync>);

impl fmt::Debug for ServiceMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("More")
    }
}

/// Serves the metrics at this address until the server stops. Returns the address, with the port
/// that was chosen.
pub(super) fn start(
    address: SocketAddr,
    shared: &Arc<Shared>,
    associations: Option<Associations>,
    service_metrics: Option<ServiceMetrics>,
) -> Result<SocketAddr, ServeError> {
    let of_page = Arc::clone(shared);
    let page = move || {
        let associations = associations.as_ref().map(|count| count());
        render(&of_page.stats(), associations, Process::read().as_ref(), service_metrics.as_ref())
    };
    Ok(metrics::start(address, page, &shared.tasks, &shared.drain)?)
}

/// Returns the page, one family of metrics after the other.
fn render(
    stats: &Stats,
    associations: Option<u64>,
    process: Option<&Process>,
    service_metrics: Option<&ServiceMetrics>,
) -> String {
    let mut page = Page::default();
    let by_transport =
        |tcp, mptcp, quic, sctp| [("tcp", tcp), ("mptcp", mptcp), ("quic", quic), ("sctp", sctp)];
    let Stats { tcp_open, mptcp_open, quic_open, sctp_open, .. } = *stats;
    page.gauge("eyas_connections", "Connections open now.");
    page.rows("transport", by_transport(tcp_open, mptcp_open, quic_open, sctp_open));
    let Stats { tcp_connections, mptcp_connections, quic_connections, sctp_associations, .. } =
        *stats;
    page.counter("eyas_connections_accepted_total", "Connections accepted.");
    page.rows(
        "transport",
        by_transport(tcp_connections, mptcp_connections, quic_connections, sctp_associations),
    );
    page.counter("eyas_connections_refused_total", "Connections closed at once by a limit.");
    page.row(stats.connections_refused);
    page.counter(
        "eyas_connections_timed_out_total",
        "Connections closed because they were idle or slow.",
    );
    page.row(stats.timed_out);
    page.counter("eyas_handshakes_total", "TLS and QUIC handshakes completed.");
    page.row(stats.handshakes);
    page.counter(
        "eyas_handshakes_failed_total",
        "TLS and QUIC handshakes that failed or timed out.",
    );
    page.row(stats.handshakes_failed);
    if let Some(associations) = associations {
        let help = "SCTP associations, including those being set up or shut down.";
        page.gauge("eyas_sctp_associations", help);
        page.row(associations);
    }
    page.counter("eyas_requests_total", "Requests started.");
    let versions = [
        ("1.0", stats.http10_requests),
        ("1.1", stats.http11_requests),
        ("2", stats.http2_requests),
        ("3", stats.http3_requests),
    ];
    page.rows("version", versions);
    page.counter("eyas_requests_refused_total", "Requests refused by a limit.");
    page.row(stats.requests_refused);
    page.gauge("eyas_requests_in_flight", "Requests in flight.");
    page.row(stats.requests_in_flight);
    let help = "Responses aborted because the peer read too little of them.";
    page.counter("eyas_responses_stalled_total", help);
    page.row(stats.responses_stalled);
    let help = "Bytes of responses buffered until their peers read them.";
    page.gauge("eyas_response_bytes_buffered", help);
    page.row(stats.buffered_bytes);
    page.gauge("eyas_response_files_open", "Files open for the rest of a response.");
    page.row(stats.open_files);
    page.counter("eyas_response_body_bytes_total", "Bytes of response bodies sent.");
    page.row(stats.body_bytes_sent);
    page.counter("eyas_request_body_bytes_total", "Bytes of request bodies read.");
    page.row(stats.body_bytes_received);
    if let Some(process) = process {
        write_process(&mut page, process);
    }
    if let Some(ServiceMetrics(write)) = service_metrics {
        write(&mut page);
    }
    page.into_text()
}

/// Writes the process metrics; the first four have the names used by Prometheus client libraries.
fn write_process(page: &mut Page, process: &Process) {
    let (user, system) = (process.user.as_secs_f64(), process.system.as_secs_f64());
    page.counter("process_cpu_seconds_total", "CPU time of the process, in seconds.");
    page.row(user + system);
    page.gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.");
    page.row(process.resident);
    page.gauge("process_open_fds", "Descriptors that are open.");
    page.row(process.descriptors);
    page.gauge("process_threads", "Threads of the process.");
    page.row(process.threads);
    let help = "CPU time of the process by mode, in seconds.";
    page.counter("eyas_process_cpu_seconds_total", help);
    page.rows("mode", [("user", user), ("system", system)]);
}

#[cfg(test)]
mod tests;
