//! `eyas tunnel`: all connections between two hosts over one session.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | what both ends have in common |
//! | `connect` | the end that connects |
//! | `proxied` | the proxy between them, if there is one |
//! | `serve` | the end that is connected to |
//! | `authorized` | the keys that may connect |
//! | `interface` | the interface whose packets go through it |
//! | `files` | key files |
//! | `control` | the socket by which `status` finds a tunnel |
//! | `status` | running tunnels and their traffic |

mod authorized;
mod connect;
#[cfg(target_os = "linux")]
mod control;
mod files;
mod interface;
mod proxied;
mod serve;
#[cfg(target_os = "linux")]
mod status;

use std::time::Duration;

use eyas_sctp_tokio::protocol::config::AssociationConfig;
use eyas_tunnel::{CurrentSessions, TunnelNotice};
use serde_json::json;

use super::setting;
use crate::failure::Failure;
use crate::flags::{
    ColorChoice, CommonFlags, PathFlags, TunnelAction, TunnelFlags, TunnelKeyFlags,
};
use crate::output;
#[cfg(target_os = "linux")]
use crate::shape::{
    millis,
    tunnel::{TunnelSessionShape, TunnelShape},
};
use crate::terminal::{OutputStyle, Paint, PaintedLine};

/// Runs until it is interrupted, or the requested work is done.
pub(super) async fn run(flags: &TunnelFlags, common: &CommonFlags) -> Result<(), Failure> {
    match &flags.action {
        Some(TunnelAction::Serve(flags)) => serve::run(flags, common).await,
        Some(TunnelAction::Keygen(flags)) => keygen(flags, common),
        #[cfg(target_os = "linux")]
        Some(TunnelAction::Status(flags)) => status::run(flags, common).await,
        #[cfg(not(target_os = "linux"))]
        Some(TunnelAction::Status(_)) => {
            Err(super::absent::failure("eyas tunnel status", super::absent::CONTROL))
        }
        None => connect::run(flags, common).await,
    }
}

/// The minimum RTO of Linux's TCP: a failed path is detected by a timeout, and the second that RFC
/// 9260 recommends is long for interactive use. The delay of SACKs has to be well below it.
const RTO_MIN: Duration = Duration::from_millis(200);
const SACK_DELAY: Duration = Duration::from_millis(40);

/// Returns the configuration of associations that carry tunnels.
fn association(paths: &PathFlags) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.rto_min = RTO_MIN;
    config.sack_delay = SACK_DELAY;
    setting::association(config, paths)
}

/// What `eyas tunnel status` shows of this process in addition to its sessions.
#[derive(Clone, Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no status"))]
struct TunnelInfo {
    role: &'static str,
    name: String,
    forwards: Vec<String>,
}

/// Makes these sessions visible to `eyas tunnel status` until the returned value is dropped.
/// Tunnels also work without that.
#[cfg(target_os = "linux")]
async fn publish_status(
    info: TunnelInfo,
    sessions: CurrentSessions,
    printer: NoticePrinter,
) -> impl Sized {
    let began = std::time::Instant::now();
    let status = move || TunnelShape {
        process: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: info.role.to_owned(),
        name: info.name.clone(),
        forwards: info.forwards.clone(),
        up_ms: millis(began.elapsed()),
        sessions: sessions.read().iter().map(TunnelSessionShape::from).collect(),
    };
    let shown = control::TunnelControl::listen(status).await;
    shown.inspect_err(|cause| {
        printer.warn("status", format!("'eyas tunnel status' will not find this tunnel: {cause}"));
    })
}

#[cfg(not(target_os = "linux"))]
async fn publish_status(_: TunnelInfo, _: CurrentSessions, _: NoticePrinter) -> impl Sized {}

fn keygen(flags: &TunnelKeyFlags, common: &CommonFlags) -> Result<(), Failure> {
    let path = files::path_or_default(flags.key.as_deref(), "key.pem")?;
    let key = files::fingerprint(&files::generate_key(&path)?)?.to_string();
    let path = path.display().to_string();
    if common.json {
        return output::object(&json!({ "file": path, "key": key }));
    }
    let text = format!("generated {path}; the line for the server's authorized_keys is");
    output::print_to_stderr(
        &[PaintedLine::new().with_span(Paint::Dim, text)],
        OutputStyle::of_stderr(common.color),
    );
    output::page(
        &[PaintedLine::new().with_span(Paint::Plain, key)],
        OutputStyle::of_stdout(common.color),
    )
}

/// Prints a line on standard error for each event.
#[derive(Clone, Copy, Debug)]
struct NoticePrinter {
    json: bool,
    color: ColorChoice,
}

impl NoticePrinter {
    fn new(common: &CommonFlags) -> Self {
        Self { json: common.json, color: common.color }
    }

    fn print(self, notice: &TunnelNotice) {
        let line = if self.json {
            let object = json!({ "event": notice.event, "text": notice.text });
            PaintedLine::new().with_span(Paint::Plain, object.to_string())
        } else {
            let paint = if notice.is_bad { Paint::Warn } else { Paint::Dim };
            PaintedLine::new().with_span(paint, notice.text.clone())
        };
        output::print_to_stderr(&[line], OutputStyle::of_stderr(self.color));
    }

    fn info(self, event: &'static str, text: String) {
        self.print(&TunnelNotice { event, text, is_bad: false });
    }

    fn warn(self, event: &'static str, text: String) {
        self.print(&TunnelNotice { event, text, is_bad: true });
    }
}
