//! What the server does and what it costs its process, in the text format of Prometheus (version
//! 0.0.4), at an address of its own: a server's load is nobody's business but its owner's.

mod places;
mod process;

use std::{convert::Infallible, fmt::Write as _, net::SocketAddr, sync::Arc, time::Duration};

use eyas::{
    sctp::SctpListener,
    sockets::{self, StreamProtocol, Wanted},
};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, time::sleep};

use self::{places::Places, process::Process};
use super::{ServeError, Stats, server::Shared};

/// For a request's head.
const HEADER_READ_TIME: Duration = Duration::from_secs(5);

/// After a failed accept nothing is accepted for this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What is told about.
#[derive(Debug)]
struct Subject {
    shared: Arc<Shared>,
    sctp: Option<Arc<SctpListener>>,
}

/// Tells at this address until the server stops. Gives the address, with the port that was chosen.
pub(super) fn start(
    address: SocketAddr,
    shared: &Arc<Shared>,
    sctp: Option<Arc<SctpListener>>,
) -> Result<SocketAddr, ServeError> {
    let wanted = Wanted { stream: Some(StreamProtocol::Tcp), udp: false };
    let mut bound = sockets::bind(&[address], wanted)?;
    let mut at = address;
    while let Some(one) = bound.pop() {
        if let Some(listener) = one.tcp {
            at = one.address;
            let subject = Arc::new(Subject { shared: Arc::clone(shared), sctp: sctp.clone() });
            shared.tasks.spawn(accept(listener, subject));
        }
    }
    Ok(at)
}

async fn accept(listener: TcpListener, subject: Arc<Subject>) {
    let places = Arc::<Places>::default();
    let drain = subject.shared.drain.clone();
    loop {
        let accepted = tokio::select! {
            () = drain.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((tcp, remote)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let place = places.take(remote.ip());
        let subject = Arc::clone(&subject);
        let drain = drain.clone();
        subject.shared.tasks.clone().spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let response = respond(&subject, request.method(), request.uri().path());
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_READ_TIME)
                .serve_connection(TokioIo::new(tcp), service);
            tokio::select! {
                () = drain.cancelled() => {}
                () = place.leave.cancelled() => {}
                // Who hangs up before the answer is told nothing.
                _ = connection => {}
            }
        });
    }
}

fn respond(subject: &Subject, method: &Method, path: &str) -> Response<Full<Bytes>> {
    let (status, text) = match (method, path) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, page(subject)),
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "the metrics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
}

fn page(subject: &Subject) -> String {
    let associations = subject.sctp.as_ref().map(|sctp| sctp.associations() as u64);
    render(&subject.shared.stats(), associations, Process::read().as_ref())
}

/// The page, one family of metrics after the other.
fn render(stats: &Stats, associations: Option<u64>, process: Option<&Process>) -> String {
    let mut page = Page::default();
    let by_transport =
        |tcp, mptcp, quic, sctp| [("tcp", tcp), ("mptcp", mptcp), ("quic", quic), ("sctp", sctp)];
    let Stats { tcp_open, mptcp_open, quic_open, sctp_open, .. } = *stats;
    page.gauge("eyas_connections", "Connections open now.");
    page.rows("transport", &by_transport(tcp_open, mptcp_open, quic_open, sctp_open));
    let Stats { tcp_connections, mptcp_connections, quic_connections, sctp_associations, .. } =
        *stats;
    page.counter("eyas_connections_accepted_total", "Connections accepted.");
    page.rows(
        "transport",
        &by_transport(tcp_connections, mptcp_connections, quic_connections, sctp_associations),
    );
    page.counter("eyas_connections_refused_total", "Connections closed at once by a limit.");
    page.row(stats.connections_refused);
    page.counter("eyas_connections_timed_out_total", "Connections closed for being quiet or slow.");
    page.row(stats.timed_out);
    page.counter("eyas_handshakes_total", "TLS and QUIC handshakes that came to their end.");
    page.row(stats.handshakes);
    page.counter("eyas_handshakes_failed_total", "TLS and QUIC handshakes that did not.");
    page.row(stats.handshakes_failed);
    if let Some(associations) = associations {
        let help = "SCTP associations that are held, those being set up or shut down included.";
        page.gauge("eyas_sctp_associations", help);
        page.row(associations);
    }
    page.counter("eyas_requests_total", "Requests begun.");
    let versions = [
        ("1.0", stats.http10_requests),
        ("1.1", stats.http11_requests),
        ("2", stats.http2_requests),
        ("3", stats.http3_requests),
    ];
    page.rows("version", &versions);
    page.counter("eyas_requests_refused_total", "Requests refused by a limit.");
    page.row(stats.requests_refused);
    page.gauge("eyas_requests_in_flight", "Requests that are not yet answered to the end.");
    page.row(stats.requests_in_flight);
    let help = "Responses broken off because their peer took too little of them.";
    page.counter("eyas_responses_stalled_total", help);
    page.row(stats.responses_stalled);
    let help = "Bytes of responses that are held until their peers take them.";
    page.gauge("eyas_response_bytes_buffered", help);
    page.row(stats.buffered_bytes);
    page.gauge("eyas_response_files_open", "Files open for the rest of a response.");
    page.row(stats.open_files);
    page.counter("eyas_response_body_bytes_total", "Bytes of response bodies sent.");
    page.row(stats.body_bytes_sent);
    page.counter("eyas_request_body_bytes_total", "Bytes of request bodies read.");
    page.row(stats.body_bytes_received);
    if let Some(process) = process {
        page.process(process);
    }
    page.0
}

/// The page in the making. Writing to a string does not fail.
#[derive(Default)]
struct Page(String, &'static str);

impl Page {
    fn counter(&mut self, name: &'static str, help: &str) {
        self.family(name, "counter", help);
    }

    fn gauge(&mut self, name: &'static str, help: &str) {
        self.family(name, "gauge", help);
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.1 = name;
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn row(&mut self, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{} {value}", self.1);
    }

    fn rows<T: std::fmt::Display>(&mut self, label: &str, rows: &[(&str, T)]) {
        for (name, value) in rows {
            let _ = writeln!(self.0, "{}{{{label}=\"{name}\"}} {value}", self.1);
        }
    }

    /// The first four have the names that Prometheus' own libraries give them.
    fn process(&mut self, process: &Process) {
        let (user, system) = (process.user.as_secs_f64(), process.system.as_secs_f64());
        self.counter("process_cpu_seconds_total", "CPU time of the process, in seconds.");
        self.row(user + system);
        self.gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.");
        self.row(process.resident);
        self.gauge("process_open_fds", "Descriptors that are open.");
        self.row(process.descriptors);
        self.gauge("process_threads", "Threads of the process.");
        self.row(process.threads);
        let help = "CPU time of the process by who used it, in seconds.";
        self.counter("eyas_process_cpu_seconds_total", help);
        self.rows("mode", &[("user", user), ("system", system)]);
    }
}

#[cfg(test)]
mod tests;
