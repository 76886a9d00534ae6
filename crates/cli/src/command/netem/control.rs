//! Changes and queries from other processes during a run.
//!
//! A run listens on sockets with an abstract name, `eyas-netem-PID`, in its own network namespace
//! and in those of client and server: such a name is not a file, so nothing is left behind. A
//! request is one line of JSON, and so is the response. Only the user who runs it, and root, may
//! connect.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use eyas_emulator::{Emulator, EmulatorError, HostRole, LinkDirection, LinkSpec, LinkSpecError};
use eyas_relay::accept::accept_next;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::network::LinkSpecs;
use super::{kind_of, page, report_done, spec};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, LinkState, NetemChangeFlags, WhichRun};
use crate::output;
use crate::terminal::OutputStyle;

/// The prefix of the names of all runs.
const PREFIX: &str = "eyas-netem-";
/// The maximum length of a request, in bytes.
const MAX_REQUEST_BYTES: u64 = 16 << 10;
/// The timeout of a request or a response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The number of requests that can be queued.
const QUEUE_LENGTH: usize = 16;

/// The kind of a request.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum ControlRequest {
    /// Changes links: of one path or all, in one direction or both.
    Change { path: Option<String>, both: String, forward: String, backward: String },
    /// The packet counters, for a terminal with these characters and this number of columns.
    Show { unicode: bool, width: usize },
}

/// Why a run has not done what was requested.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("not a valid request: {0}")]
    Malformed(serde_json::Error),
    #[error(transparent)]
    Link(#[from] LinkSpecError),
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    #[error("it has ended")]
    Ended,
}

impl RequestError {
    /// Returns the kind of failure of the program that has sent the request.
    fn kind(&self) -> FailureKind {
        match self {
            Self::Malformed(_) | Self::Link(_) => FailureKind::Usage,
            Self::Emulator(cause) => kind_of(cause),
            Self::Ended => FailureKind::Connect,
        }
    }

    /// Returns the response.
    fn response(&self) -> Value {
        json!({ "error": self.to_string(), "kind": self.kind().name() })
    }
}

/// A request, and the channel for its response.
pub(super) struct PendingRequest {
    request: ControlRequest,
    reply: oneshot::Sender<Value>,
}

impl PendingRequest {
    /// Executes the request.
    pub(super) fn answer(self, emulator: &Emulator) {
        let answer = match self.request {
            ControlRequest::Show { unicode, width } => emulator
                .counters()
                .map(|counters| page::answer(&counters, unicode, width))
                .map_err(RequestError::from),
            ControlRequest::Change { path, both, forward, backward } => {
                change_links(emulator, path.as_deref(), &both, [&forward, &backward])
                    .map(|()| json!({}))
            }
        };
        // This fails if the client has disconnected.
        let _ = self.reply.send(answer.unwrap_or_else(|cause| cause.response()));
    }
}

fn change_links(
    emulator: &Emulator,
    path: Option<&str>,
    both: &str,
    each: [&str; 2],
) -> Result<(), RequestError> {
    let names = emulator.topology().paths.iter().map(|path| path.name.as_str());
    let names: Vec<&str> = path.map_or_else(|| names.collect(), |name| vec![name]);
    for (direction, own) in [LinkDirection::Forward, LinkDirection::Backward].into_iter().zip(each)
    {
        let mut spec = LinkSpec::default();
        spec.read(both)?;
        spec.read(own)?;
        for name in names.iter().filter(|_| !spec.is_empty()) {
            emulator.apply(name, direction, &spec)?;
        }
    }
    Ok(())
}

/// Receives requests.
pub(super) struct NetemControl {
    requests: mpsc::Receiver<PendingRequest>,
}

impl NetemControl {
    /// Listens in all three networks.
    pub(super) fn listen(emulator: &Emulator) -> io::Result<Self> {
        let (sender, requests) = mpsc::channel(QUEUE_LENGTH);
        let mut listeners = vec![bind()?];
        for host in HostRole::ALL {
            let bound = emulator.namespace(host).run_in(bind);
            listeners.push(bound.map_err(|cause| io::Error::other(cause.to_string()))??);
        }
        for listener in listeners {
            let listener = tokio::net::UnixListener::from_std(listener)?;
            tokio::spawn(accept(listener, sender.clone()));
        }
        Ok(Self { requests })
    }

    /// Returns the next request.
    pub(super) async fn next(&mut self) -> Option<PendingRequest> {
        self.requests.recv().await
    }
}

fn address(id: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{PREFIX}{id}"))
}

fn bind() -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&address(std::process::id())?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn accept(listener: tokio::net::UnixListener, requests: mpsc::Sender<PendingRequest>) {
    let own = rustix::process::geteuid().as_raw();
    loop {
        // The counters and changes matter more than the report of a failure, which would mix with
        // the output of the command that runs here.
        let (stream, _) = accept_next(|| listener.accept(), |_| ()).await;
        let is_allowed = stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0);
        if is_allowed {
            let requests = requests.clone();
            // A client that sends or reads nothing does not block others.
            tokio::spawn(async move { timeout(TIMEOUT, serve_client(stream, requests)).await });
        }
    }
}

async fn serve_client(mut stream: tokio::net::UnixStream, requests: mpsc::Sender<PendingRequest>) {
    let (reading, mut writing) = stream.split();
    let mut line = String::new();
    let mut reading = tokio::io::BufReader::new(reading.take(MAX_REQUEST_BYTES));
    if reading.read_line(&mut line).await.is_err() {
        return;
    }
    let answer = match serde_json::from_str(&line) {
        Ok(request) => {
            let (reply, answered) = oneshot::channel();
            let _ = requests.send(PendingRequest { request, reply }).await;
            answered.await.unwrap_or_else(|_| RequestError::Ended.response())
        }
        Err(cause) => RequestError::Malformed(cause).response(),
    };
    // This fails if the client has disconnected.
    let _ = writing.write_all(format!("{answer}\n").as_bytes()).await;
}

/// Runs `eyas netem change`.
pub(super) fn change(flags: &NetemChangeFlags, common: &CommonFlags) -> Result<(), Failure> {
    // Invalid changes are reported here, not by the run.
    let specs = LinkSpecs::from_flags(&flags.link)?;
    let mut both: Vec<String> =
        flags.link.pairs().map(|(key, value)| format!("{key}={value}")).collect();
    if let Some(state) = flags.state {
        both.push(format!("up={}", if state == LinkState::Up { "yes" } else { "no" }));
    }
    let both = with_absolute_files(&both.join(","))?;
    let is_empty =
        spec("--state", &both)?.is_empty() && specs.forward.is_empty() && specs.backward.is_empty();
    if is_empty {
        return Err(Failure::new(FailureKind::Usage, "nothing to change")
            .hint("for example: eyas netem change --loss 20%"));
    }
    let forward = with_absolute_files(flags.link.forward.as_deref().unwrap_or_default())?;
    let backward = with_absolute_files(flags.link.backward.as_deref().unwrap_or_default())?;
    send_request(
        &flags.which,
        &ControlRequest::Change { path: flags.path.clone(), both, forward, backward },
    )?;
    report_done(common, "changed")
}

/// Returns the properties with the names of files as they are in any directory, because the run may
/// be in another one.
fn with_absolute_files(properties: &str) -> Result<String, Failure> {
    let absolute = |pair: &str| match pair.trim().strip_prefix("trace=") {
        Some(file) => std::path::absolute(file)
            .map(|file| format!("trace={}", file.display()))
            .map_err(|cause| Failure::read(file, &cause)),
        None => Ok(pair.to_owned()),
    };
    Ok(properties.split(',').map(absolute).collect::<Result<Vec<_>, _>>()?.join(","))
}

/// Runs `eyas netem show`.
pub(super) fn show(which: &WhichRun, common: &CommonFlags) -> Result<(), Failure> {
    let style = OutputStyle::of_stdout(common.color);
    let answer =
        send_request(which, &ControlRequest::Show { unicode: style.unicode, width: style.width })?;
    if common.json {
        return output::object(&answer["object"]);
    }
    let text = answer["table"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let plain =
        |line| crate::terminal::PaintedLine::new().with_span(crate::terminal::Paint::Plain, line);
    let lines: Vec<_> = text.map(plain).collect();
    output::page(&lines, style)
}

/// Sends a request to a run.
fn send_request(which: &WhichRun, request: &ControlRequest) -> Result<Value, Failure> {
    let id = which.run.map_or_else(only_run, Ok)?;
    let failed = |cause: io::Error| {
        Failure::new(FailureKind::Connect, format!("cannot reach the run {id}: {cause}"))
            .hint("is it still running, as the same user?")
    };
    let exchange = || {
        let stream = UnixStream::connect_addr(&address(id)?)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let request = serde_json::to_string(request).map_err(io::Error::from)?;
        (&stream).write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        serde_json::from_str::<Value>(&line).map_err(io::Error::from)
    };
    let answer = exchange().map_err(failed)?;
    match answer["error"].as_str() {
        Some(cause) => Err(refusal(id, cause, &answer["kind"])),
        None => Ok(answer),
    }
}

/// Returns the failure that a run has reported.
fn refusal(id: u32, cause: &str, kind: &Value) -> Failure {
    let kind = FailureKind::ALL
        .into_iter()
        .find(|known| kind == known.name())
        .unwrap_or(FailureKind::Usage);
    let verb = if kind == FailureKind::Usage { "refused" } else { "failed" };
    Failure::new(kind, format!("the run {id} {verb}: {cause}"))
}

/// Returns the run, if there is exactly one.
fn only_run() -> Result<u32, Failure> {
    let table = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let name = |line: &str| line.rsplit_once(&format!(" @{PREFIX}")).map(|(_, id)| id.to_owned());
    let mut runs: Vec<u32> =
        table.lines().filter_map(name).filter_map(|id| id.trim().parse().ok()).collect();
    runs.sort_unstable();
    runs.dedup();
    match runs[..] {
        [one] => Ok(one),
        [] => Err(Failure::new(FailureKind::Connect, "no emulator is running here")
            .hint("start one: eyas netem run --delay 10ms -- COMMAND")),
        _ => {
            let all: Vec<String> = runs.iter().map(u32::to_string).collect();
            Err(Failure::new(
                FailureKind::Usage,
                format!("there are several runs: {}", all.join(", ")),
            )
            .hint("choose one with --run PID"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_exits_with_what_has_failed_in_the_run() {
        let failure = |cause: RequestError| {
            let response = cause.response();
            refusal(7, response["error"].as_str().expect("a text"), &response["kind"])
        };
        let ended = failure(EmulatorError::Ended("no thread".to_owned()).into());
        assert_eq!(ended.kind, FailureKind::Emulator);
        assert_eq!(ended.message, "the run 7 failed: the emulator has ended: no thread");
        let no_path = EmulatorError::NoSuchPath { name: "x".to_owned(), known: "a".to_owned() };
        assert_eq!(failure(no_path.into()).kind, FailureKind::Usage);
        let property = LinkSpec::default().read("loss=much").expect_err("no share");
        let refused = failure(property.into());
        assert_eq!(refused.kind, FailureKind::Usage);
        assert!(refused.message.starts_with("the run 7 refused: loss: "), "{}", refused.message);
        // Another version may know other kinds.
        assert_eq!(refusal(7, "no", &json!("new")).kind, FailureKind::Usage);
    }
}
