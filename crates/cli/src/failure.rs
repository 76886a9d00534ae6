//! Failures of a run: kinds, exit codes, and messages with the next step.

use std::fmt;
use std::io;

use eyas_http::shortened;
use serde::Serialize;
use serde_json::Value;

use crate::terminal::PaintedLine;

/// Kinds of failure, distinguished by exit codes. The codes are those of curl if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FailureKind {
    /// The command line is invalid.
    Usage,
    /// The URL or target is malformed.
    Url,
    /// This system lacks what it needs.
    Absent,
    /// The name could not be resolved.
    Dns,
    /// No candidate answered, or all refused.
    Connect,
    /// The body ended before it was complete.
    Partial,
    /// The status was 400 or above, and `--fail` was given.
    Status,
    /// Output could not be written.
    Write,
    /// A local file could not be read.
    Read,
    /// A time limit passed.
    Timeout,
    /// The server does not continue a body where it was asked to.
    Range,
    /// The TLS handshake failed.
    Tls,
    /// The server closed the connection instead of answering.
    Empty,
    /// A certificate or key file of the user cannot be used.
    Identity,
    /// Too many redirects.
    Redirect,
    /// The server violated HTTP, sent an unexpected response, or reset the connection.
    Protocol,
    /// The server's certificate was not accepted.
    Certificate,
    /// The body cannot be decompressed.
    Encoding,
    /// The server cannot listen.
    Listen,
    /// The memory file cannot be used.
    Memory,
    /// A trace did not replay as recorded.
    Replay,
    /// A claim of an experiment was refused, and `--check` was given.
    Claim,
    /// The confidence interval of a claim of an experiment spans its bound.
    Undecided,
    /// No claim of an experiment was judged, and `--check` was given.
    NotJudged,
    /// The emulator could not do its work.
    Emulator,
    /// Something that was examined is broken.
    Broken,
    /// The command exists but cannot be run.
    NotExecutable,
    /// The command was not found.
    NotFound,
    /// SIGHUP: the terminal was closed.
    HungUp,
    /// Ctrl-C.
    Interrupted,
    /// The output is not read any more.
    BrokenPipe,
    /// SIGTERM.
    Terminated,
}

impl FailureKind {
    /// All kinds, in the order of their codes.
    pub(crate) const ALL: [Self; 32] = [
        Self::Usage,
        Self::Url,
        Self::Absent,
        Self::Dns,
        Self::Connect,
        Self::Partial,
        Self::Status,
        Self::Write,
        Self::Read,
        Self::Timeout,
        Self::Range,
        Self::Tls,
        Self::Listen,
        Self::Redirect,
        Self::Empty,
        Self::Protocol,
        Self::Identity,
        Self::Certificate,
        Self::Encoding,
        Self::Memory,
        Self::Replay,
        Self::Claim,
        Self::Emulator,
        Self::Undecided,
        Self::NotJudged,
        Self::Broken,
        Self::NotExecutable,
        Self::NotFound,
        Self::HungUp,
        Self::Interrupted,
        Self::BrokenPipe,
        Self::Terminated,
    ];

    /// Returns whether the user requested the end of the run.
    pub(crate) const fn is_interruption(self) -> bool {
        matches!(self, Self::HungUp | Self::Interrupted | Self::Terminated)
    }

    /// Returns the exit code.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Url => 3,
            Self::Absent => 4,
            Self::Dns => 6,
            Self::Connect => 7,
            Self::Partial => 18,
            Self::Status => 22,
            Self::Write => 23,
            Self::Read => 26,
            Self::Timeout => 28,
            Self::Range => 33,
            Self::Tls => 35,
            Self::Listen => 45,
            Self::Redirect => 47,
            Self::Empty => 52,
            Self::Protocol => 56,
            Self::Identity => 58,
            Self::Certificate => 60,
            Self::Encoding => 61,
            Self::Memory => 110,
            Self::Replay => 111,
            Self::Claim => 112,
            Self::Undecided => 114,
            Self::NotJudged => 115,
            Self::Emulator => 113,
            Self::Broken => 116,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::BrokenPipe => 141,
            Self::Terminated => 143,
        }
    }

    /// Returns the name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Url => "url",
            Self::Absent => "absent",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Partial => "partial",
            Self::Status => "status",
            Self::Write => "write",
            Self::Read => "read",
            Self::Timeout => "timeout",
            Self::Range => "range",
            Self::Tls => "tls",
            Self::Listen => "listen",
            Self::Redirect => "redirect",
            Self::Empty => "empty",
            Self::Protocol => "protocol",
            Self::Identity => "identity",
            Self::Certificate => "certificate",
            Self::Encoding => "encoding",
            Self::Memory => "memory",
            Self::Replay => "replay",
            Self::Claim => "claim",
            Self::Undecided => "undecided",
            Self::NotJudged => "not-judged",
            Self::Emulator => "emulator",
            Self::Broken => "broken",
            Self::NotExecutable => "not-executable",
            Self::NotFound => "not-found",
            Self::HungUp => "hung-up",
            Self::Interrupted => "interrupted",
            Self::BrokenPipe => "broken-pipe",
            Self::Terminated => "terminated",
        }
    }

    /// Returns the meaning, for the table of exit codes and the man pages.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Usage => "The command line is invalid.",
            Self::Url => "The URL or target is malformed, or its scheme is not http or https.",
            Self::Absent => "This system lacks what the command needs, such as network namespaces.",
            Self::Dns => "The name could not be resolved: unknown host, no DNS, server failure.",
            Self::Connect => "No candidate could be connected to: refused, unreachable.",
            Self::Partial => "The body ended early: fewer bytes than announced, or no end.",
            Self::Status => "The status was 400 or above, and --fail was given.",
            Self::Write => "Output could not be written: disk full, no permission.",
            Self::Read => "A local file could not be read.",
            Self::Timeout => "Nothing answered, or --connect-timeout or --max-time passed.",
            Self::Range => "The server does not continue a body where -C asked it to.",
            Self::Tls => {
                "The TLS handshake failed: alert, version, no common ALPN, no TLS at that port."
            }
            Self::Listen => {
                "The server cannot listen on the address, the interface of a tunnel cannot be created, or --interface names none of this host."
            }
            Self::Redirect => "More redirects than --max-redirs allows, or a redirect to nowhere.",
            Self::Empty => "The server closed an HTTP/1 connection instead of answering (get).",
            Self::Protocol => {
                "The server violated HTTP, sent an unrequested response, or broke off in mid-response: the stream was reset, or the connection was reset, timed out, or, over HTTP/2 and HTTP/3, closed. Or the proxy refused to connect."
            }
            Self::Identity => "A certificate, key or trust file given by the user cannot be used.",
            Self::Certificate => {
                "The server's certificate was rejected: unknown issuer, expired, wrong name."
            }
            Self::Encoding => "The body cannot be decompressed (get --compressed).",
            Self::Memory => "The memory file cannot be opened or changed (subcommand memory).",
            Self::Replay => "The trace cannot be read, or did not replay as it was recorded.",
            Self::Claim => "A claim of an experiment was refused, and --check was given.",
            Self::Undecided => {
                "No claim of an experiment was refused, but one is undecided because its confidence \
                 interval spans its bound, and --check was given."
            }
            Self::NotJudged => {
                "No claim of an experiment was judged, because nothing that decides one was measured, or \
                 only on a busy machine or in a run that was too short, and --check was given."
            }
            Self::Emulator => {
                "The emulator cannot be started, or has ended (subcommands netem and lab)."
            }
            Self::Broken => "Something that was examined is broken (subcommand doctor).",
            Self::NotExecutable => {
                "The command exists but cannot be run (netem, proxy), as in a shell: no permission, a directory."
            }
            Self::NotFound => "The command was not found (netem, proxy), as in a shell.",
            Self::HungUp => "SIGHUP: the terminal is gone. nohup is respected.",
            Self::Interrupted => "Ctrl-C.",
            Self::BrokenPipe => "Nothing reads the output any more; no message is printed.",
            Self::Terminated => "SIGTERM.",
        }
    }
}

impl From<eyas_http::Kind> for FailureKind {
    fn from(kind: eyas_http::Kind) -> Self {
        use eyas_http::Kind as Http;
        match kind {
            Http::Url => Self::Url,
            Http::Request => Self::Usage,
            Http::Dns => Self::Dns,
            Http::Connect | Http::Proxy => Self::Connect,
            Http::Tls => Self::Tls,
            Http::Certificate => Self::Certificate,
            Http::ConnectTimeout | Http::TotalTimeout | Http::IdleTimeout => Self::Timeout,
            Http::Redirect => Self::Redirect,
            Http::BodyTruncated | Http::BodyLength => Self::Partial,
            Http::BodyDecode => Self::Encoding,
            Http::RequestBody => Self::Read,
            _ => Self::Protocol,
        }
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// The kind of failure.
    pub(crate) kind: FailureKind,
    /// What happened, to which candidate, and why.
    pub(crate) message: String,
    /// The next step.
    pub(crate) hint: Option<String>,
    /// Other members of the JSON object, such as the attempts of a failed race.
    pub(crate) details: Box<serde_json::Map<String, Value>>,
    /// Additional output for users who requested more.
    pub(crate) below: Vec<PaintedLine>,
}

impl Failure {
    /// Creates a failure without a hint.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let message: String = message.into();
        // What a user or a peer wrote may be as long as they like.
        let (message, details) = (shortened(&message).into_owned(), Box::default());
        Self { kind, message, hint: None, details, below: Vec::new() }
    }

    /// Adds the next step.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shortened(&hint.into()).into_owned());
        self
    }

    /// Adds members to the JSON object.
    #[must_use]
    pub(crate) fn with_details(mut self, details: Value) -> Self {
        if let Value::Object(details) = details {
            self.details.extend(details);
        }
        self
    }

    /// Adds output that is shown below.
    #[must_use]
    pub(crate) fn with_below(mut self, lines: Vec<PaintedLine>) -> Self {
        self.below = lines;
        self
    }

    /// Creates the failure of a write to this place.
    pub(crate) fn write(file: &str, cause: &io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::BrokenPipe => {
                Self::new(FailureKind::BrokenPipe, "the reader has closed the pipe")
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::new(FailureKind::Write, format!("cannot write {file}: {cause}"))
                    .hint("free some space, or write elsewhere")
            }
            io::ErrorKind::NotFound => {
                Self::new(FailureKind::Write, format!("cannot write {file}: {cause}"))
                    .hint("does the directory exist?")
            }
            _ => Self::new(FailureKind::Write, format!("cannot write {file}: {cause}")),
        }
    }

    /// Creates the failure of a read from this file.
    pub(crate) fn read(file: &str, cause: &io::Error) -> Self {
        Self::new(FailureKind::Read, format!("cannot read {file}: {cause}"))
    }

    /// Returns the object that `--json` prints: `error` and other members.
    pub(crate) fn to_json(&self) -> Value {
        let mut object = serde_json::Map::new();
        object.insert(
            "error".to_owned(),
            serde_json::json!({
                "kind": self.kind.name(),
                "exit_code": self.kind.exit_code(),
                "message": self.message,
                "hint": self.hint,
            }),
        );
        object.extend((*self.details).clone());
        Value::Object(object)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_sorted() {
        let codes: Vec<_> = FailureKind::ALL.iter().map(|kind| kind.exit_code()).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
    }

    #[test]
    fn the_table_in_docs_matches_this_one() {
        let page = include_str!("../docs/reference/exit-codes.md");
        let mut rows = page.lines().filter(|line| line.starts_with("| ")).skip(2);
        assert_eq!(rows.next(), Some("| 0 | | Success. |"));
        for kind in FailureKind::ALL {
            let row = format!("| {} | `{}` | {} |", kind.exit_code(), kind.name(), kind.meaning());
            assert_eq!(rows.next(), Some(row.as_str()));
        }
        assert_eq!(rows.next(), None);
    }

    #[test]
    fn json_contains_the_kind_and_the_details() {
        let failure = Failure::new(FailureKind::Connect, "all refused")
            .hint("is it running?")
            .with_details(serde_json::json!({ "attempts": [] }));
        assert_eq!(
            failure.to_json().to_string(),
            r#"{"error":{"kind":"connect","exit_code":7,"message":"all refused","hint":"is it running?"},"attempts":[]}"#
        );
    }

    #[test]
    fn a_long_url_is_not_repeated_whole() {
        let url = format!("https://a.test/{}", "x".repeat(65_536));
        let failure = Failure::new(FailureKind::Url, format!("{url:?} is not a URL")).hint(url);
        assert!(failure.message.starts_with("\"https://a.test/xxx"), "{failure}");
        assert!(failure.message.ends_with("x\" is not a URL"), "{failure}");
        assert!(failure.to_json().to_string().len() < 1_000, "{failure}");
    }

    #[test]
    fn a_closed_reader_is_not_a_write_error() {
        let broken_pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::write("x", &broken_pipe).kind, FailureKind::BrokenPipe);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Failure::write("x", &full).kind, FailureKind::Write);
    }
}
