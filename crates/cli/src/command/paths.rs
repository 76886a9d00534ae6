//! Reports the paths of an association, as text and as objects.

use std::cell::RefCell;
use std::time::Duration;

use eyas_sctp_tokio::SctpAssociation;
use eyas_sctp_tokio::protocol::endpoint::PathStatus;
use eyas_sctp_tokio::protocol::event::{Event, OwnAddressChange, PathChange};

use crate::output;
use crate::shape::PathShape;
use crate::terminal::{OutputStyle, Paint, PaintedLine, time};

/// Reports changes of paths on standard error, if requested. Keeps their last state, because the
/// peer may end the association at any moment.
#[derive(Debug)]
pub(crate) struct PathReporter {
    style: Option<OutputStyle>,
    known: RefCell<Vec<PathStatus>>,
}

impl PathReporter {
    /// Creates a reporter that prints with this style, or not at all.
    pub(crate) fn new(style: Option<OutputStyle>) -> Self {
        Self { style, known: RefCell::default() }
    }

    /// Returns the current or last known state of the paths.
    pub(crate) fn paths(&self, association: &SctpAssociation) -> Vec<PathStatus> {
        let paths = association.paths();
        if !paths.is_empty() {
            self.known.replace(paths);
        }
        self.known.borrow().clone()
    }

    /// Reports an event, if it concerns paths.
    pub(crate) fn report(&self, association: &SctpAssociation, event: &Event) {
        self.paths(association);
        if let (Some(style), Some(text)) = (self.style, text(event)) {
            output::print_to_stderr(&[PaintedLine::new().with_span(Paint::Dim, text)], style);
        }
    }

    /// Reports all paths.
    pub(crate) fn report_all(&self, paths: &[PathStatus]) {
        let Some(style) = self.style else { return };
        let line = |path: &PathStatus| PaintedLine::new().with_span(Paint::Dim, summary(path));
        output::print_to_stderr(&paths.iter().map(line).collect::<Vec<_>>(), style);
    }

    /// Reports events until the association is over, and then waits forever.
    pub(crate) async fn watch(&self, association: &SctpAssociation) {
        while let Some(event) = association.event().await {
            self.report(association, &event);
        }
        std::future::pending().await
    }
}

fn text(event: &Event) -> Option<String> {
    match event {
        Event::Path { remote, change, .. } => {
            Some(format!("path to {}: {}", remote.ip(), state_text(*change)))
        }
        Event::OwnAddress { address, change, cause } => {
            let what = match change {
                OwnAddressChange::Removed => "taken back",
                OwnAddressChange::MadePrimary => "made the primary one",
                _ => "added",
            };
            Some(match cause {
                None => format!("own address {address}: {what}"),
                Some(cause) => format!("own address {address}: not {what} (cause {cause:#x})"),
            })
        }
        _ => None,
    }
}

fn state_text(change: PathChange) -> &'static str {
    match change {
        PathChange::Confirmed => "verified",
        PathChange::Active => "works again",
        PathChange::PotentiallyFailed => "no answer",
        PathChange::Inactive => "broken",
        PathChange::Added => "new",
        PathChange::Removed => "gone",
        PathChange::MadePrimary => "now the primary one",
        PathChange::Rebound => "behind another port",
        _ => "changed",
    }
}

/// Describes a path in one line.
pub(crate) fn summary(path: &PathStatus) -> String {
    let from = path.local.map_or(String::new(), |local| format!(" from {local}"));
    let rtt = path.smoothed_rtt.map_or(String::new(), |rtt| format!(", round trip {}", time(rtt)));
    format!("path to {}{from}: {}{rtt}", path.remote.ip(), path.state.name())
}

/// Returns the paths for an object.
pub(crate) fn shapes(paths: &[PathStatus]) -> Vec<PathShape> {
    let millis = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let shape = |path: &PathStatus| PathShape {
        remote: path.remote.ip().to_string(),
        local: path.local.map(|local| local.to_string()),
        state: path.state.name(),
        rtt_ms: path.smoothed_rtt.map(millis),
        window: path.congestion_window,
        mtu: path.mtu,
    };
    paths.iter().map(shape).collect()
}
