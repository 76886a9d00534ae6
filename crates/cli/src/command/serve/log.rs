//! The access log: one line for each request, written by a separate thread, so that no request
//! waits for a disk or the reader of a pipe.

mod writer;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use eyas_http::serve::Access;
use eyas_http::version_name;
use serde_json::json;

use self::writer::{LineWriter, WriterChange};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, LogFormat};
use crate::terminal::{counted, shown_json};

/// The number of lines that can be queued.
const QUEUE_LENGTH: usize = 1024;
/// How long writing the last lines may take.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);
/// The status in the log, as in nginx, if a client disconnected before there was a response.
const CLIENT_GONE: u16 = 499;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

enum LogMessage {
    Line(String),
    /// Continue in this file.
    Continue(File),
    End,
}

/// Requests that a log lacks, because it could not be written.
#[derive(Debug, thiserror::Error)]
#[error("requests that are not in {destination}: {requests}")]
struct IncompleteLog {
    destination: String,
    requests: u64,
}

/// A log that is being written.
pub(super) struct ServeLog {
    messages: SyncSender<LogMessage>,
    ended: Receiver<Result<(), IncompleteLog>>,
    /// The number of lines dropped because the queue was full.
    dropped: Arc<AtomicU64>,
    destination: String,
    /// `None` for a standard stream.
    path: Option<PathBuf>,
}

impl ServeLog {
    /// Opens a file for appending or, for `-`, standard output; standard error if that is reserved
    /// for an object. Errors while it is written are passed to `notice`.
    pub(super) fn open(
        path: &Path,
        common: &CommonFlags,
        notice: impl Fn(String) + Send + 'static,
    ) -> Result<Self, Failure> {
        let (destination, out): (String, Box<dyn Write + Send>) = match path.to_str() {
            Some("-") if common.json => ("standard error".to_owned(), Box::new(io::stderr())),
            Some("-") => ("standard output".to_owned(), Box::new(io::stdout())),
            _ => (path.display().to_string(), Box::new(open(path)?)),
        };
        let (messages, queue) = sync_channel(QUEUE_LENGTH);
        let (end, ended) = channel();
        let name = destination.clone();
        thread::Builder::new()
            .name("eyas-access-log".to_owned())
            .spawn(move || end.send(write(LineWriter::new(out), &queue, &name, notice)))
            .map_err(|cause| {
                Failure::new(FailureKind::Write, format!("cannot write a log: {cause}"))
            })?;
        let path = (path.to_str() != Some("-")).then(|| path.to_owned());
        Ok(Self { messages, ended, dropped: Arc::default(), destination, path })
    }

    /// Opens the file again, which may be another one now: the former has been renamed to keep it.
    /// Returns what happened, or `None` for a standard stream.
    pub(super) fn reopen(&self) -> Option<Result<String, Failure>> {
        let path = self.path.as_deref()?;
        Some(open(path).and_then(|file| {
            let text = format!("{} cannot be continued: its disk is too slow", self.destination);
            let sent = self.messages.try_send(LogMessage::Continue(file));
            sent.map_err(|_| Failure::new(FailureKind::Write, text))?;
            Ok(format!("reopened {}", self.destination))
        }))
    }

    /// Returns the function that the server calls for each request.
    pub(super) fn writer(
        &self,
        format: LogFormat,
    ) -> impl Fn(&Access) + Send + Sync + use<> + 'static {
        let (messages, dropped) = (self.messages.clone(), self.dropped.clone());
        move |access| {
            let line = match format {
                LogFormat::Common => common(access),
                LogFormat::Json => object(access),
            };
            if messages.try_send(LogMessage::Line(line)).is_err() {
                dropped.fetch_add(1, Relaxed);
            }
        }
    }

    /// Writes the queued lines, and reports how many are missing.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let Self { messages, ended, dropped, destination, .. } = self;
        // In a separate thread, because a full queue that is not emptied accepts no message.
        thread::spawn(move || messages.send(LogMessage::End));
        match ended.recv_timeout(FINISH_TIMEOUT) {
            Ok(Ok(())) => {}
            Ok(Err(incomplete)) => {
                return Err(Failure::new(FailureKind::Write, incomplete.to_string()));
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let text =
                    format!("the end of the access log is missing: nothing reads {destination}");
                return Err(Failure::new(FailureKind::Write, text));
            }
        }
        match dropped.load(Relaxed) {
            0 => Ok(()),
            lines => {
                let text = format!(
                    "{destination} was too slow: the access log lacks {}",
                    counted(lines, "request")
                );
                Err(Failure::new(FailureKind::Write, text))
            }
        }
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    let file = File::options().append(true).create(true).open(path);
    file.map_err(|cause| Failure::write(&path.display().to_string(), &cause))
}

/// Writes until the end, flushing what is available, so that a reader who follows the log sees it. A
/// disk that is full may have room again: the log then goes on.
fn write(
    mut writer: LineWriter<Box<dyn Write + Send>>,
    messages: &Receiver<LogMessage>,
    destination: &str,
    notice: impl Fn(String),
) -> Result<(), IncompleteLog> {
    let report = |change: Option<WriterChange>| match change {
        None => {}
        Some(WriterChange::Failed(cause)) => {
            notice(format!(
                "cannot write {destination}: {cause}; it goes on once that is possible"
            ));
        }
        Some(WriterChange::Resumed(lost)) => {
            notice(format!("{destination} goes on; requests that are not in it: {lost}"));
        }
    };
    loop {
        let mut lines = Vec::new();
        let mut next = messages.recv().ok();
        let mut is_over = next.is_none();
        while let Some(message) = next {
            match message {
                LogMessage::Line(line) => lines.push(line),
                LogMessage::Continue(file) => {
                    report(writer.write(&std::mem::take(&mut lines)));
                    writer.continue_in(Box::new(file));
                }
                LogMessage::End => is_over = true,
            }
            next = if is_over || lines.len() >= QUEUE_LENGTH {
                None
            } else {
                messages.try_recv().ok()
            };
        }
        report(writer.write(&lines));
        if is_over {
            return match writer.lost() {
                0 => Ok(()),
                requests => Err(IncompleteLog { destination: destination.to_owned(), requests }),
            };
        }
    }
}

/// Formats a line in the common log format of NCSA httpd, as used by Apache, nginx and others, in
/// UTC.
fn common(access: &Access) -> String {
    let status = access.status.map_or(CLIENT_GONE, |status| status.as_u16());
    let bytes = if access.bytes == 0 { "-".to_owned() } else { access.bytes.to_string() };
    format!(
        "{} - - [{}] \"{} {} {:?}\" {status} {bytes}",
        access.remote.ip().to_canonical(),
        date(access.at),
        access.method,
        escaped(&access.target),
        access.version,
    )
}

/// Formats a date: `10/Oct/2000:13:55:36 +0000`.
fn date(at: SystemTime) -> String {
    // 2000-10-10T13:55:36Z
    let text = humantime::format_rfc3339_seconds(at).to_string();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let month = part(5, 7).parse::<usize>().ok().and_then(|month| MONTHS.get(month - 1));
    let month = month.copied().unwrap_or_default();
    format!("{}/{month}/{}:{} +0000", part(8, 10), part(0, 4), part(11, 19))
}

/// Escapes text from a client, so that it cannot end a line or the quotes around it.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => safe.push_str(&format!("\\x{byte:02X}")),
            b' '..=b'~' => safe.push(char::from(byte)),
            _ => safe.push_str(&format!("\\x{byte:02X}")),
        }
    }
    safe
}

/// Formats a line as an object.
fn object(access: &Access) -> String {
    let object = json!({
        "time": humantime::format_rfc3339_millis(access.at).to_string(),
        "remote": access.remote.to_string(),
        "transport": access.transport,
        "version": version_name(access.version),
        "method": access.method.as_str(),
        "host": access.host,
        "target": access.target,
        "status": access.status.map(|status| status.as_u16()),
        "bytes": access.bytes,
        "milliseconds": access.took.as_micros() as f64 / 1_000.0,
        "referer": access.referer,
        "user_agent": access.user_agent,
    });
    shown_json(&object, false)
}

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode, Version};

    use super::*;

    fn access() -> Access {
        Access {
            at: SystemTime::UNIX_EPOCH + Duration::from_millis(971_186_136_250),
            took: Duration::from_micros(1_500),
            remote: "[::ffff:192.0.2.7]:50000".parse().unwrap(),
            transport: "quic",
            version: Version::HTTP_3,
            method: Method::GET,
            target: "/a?b=\"c\\".to_owned(),
            host: Some("example.org".to_owned()),
            status: Some(StatusCode::OK),
            bytes: 2326,
            referer: None,
            user_agent: Some("line\nbreak".to_owned()),
        }
    }

    #[test]
    fn a_line_of_the_common_log_format() {
        let wanted =
            r#"192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /a?b=\x22c\x5C HTTP/3.0" 200 2326"#;
        assert_eq!(common(&access()), wanted);
        let disconnected = Access { status: None, bytes: 0, version: Version::HTTP_11, ..access() };
        assert!(
            common(&disconnected).ends_with(r#" HTTP/1.1" 499 -"#),
            "{}",
            common(&disconnected)
        );
    }

    #[test]
    fn an_object_is_one_line() {
        let line = object(&access());
        assert!(!line.contains('\n'));
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(object["time"], "2000-10-10T13:55:36.250Z");
        assert_eq!(object["version"], "HTTP/3");
        assert_eq!(object["target"], "/a?b=\"c\\");
        assert_eq!((&object["status"], &object["milliseconds"]), (&200.into(), &1.5.into()));
        assert_eq!(object["user_agent"], "line\nbreak");
    }
}
