//! `eyas sctp serve`: sockets for the programs of a machine or a pod.

use std::path::{Path, PathBuf};

use eyas_supervisor::{
    PreloadedLibraryFile, SctpSockets, SupervisorPlace, SupervisorStatus, is_open_to_all,
};
use serde_json::json;

use super::super::descriptors;
use super::{capture, settings, until_associations_end};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, SctpServeFlags};
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine};

/// The default name of the socket.
const NAME: &str = "eyas-sctp";

/// Serves until Ctrl-C.
pub(super) async fn run(flags: &SctpServeFlags, common: &CommonFlags) -> Result<(), Failure> {
    // Set up before the service announces itself, so that no early signal is missed.
    let mut interruption = super::super::listen()?;
    descriptors::raise_limit();
    let path = flags.socket.clone().map_or_else(default_path, Ok)?;
    let path = std::path::absolute(&path)
        .map_err(|cause| Failure::read(&path.display().to_string(), &cause))?;
    let settings = settings(&flags.carrier, path.display().to_string());
    let place = SupervisorPlace::Path { path: path.clone(), mode: flags.mode };
    let file = flags.carrier.capture.as_deref();
    let capture = capture::create(file)?;
    let served = SctpSockets::serve(&settings, &place, capture.as_ref());
    let supervisor = served.map_err(|cause| {
        Failure::new(FailureKind::Listen, format!("cannot serve at {}: {cause}", path.display()))
            .hint("--socket PATH, --udp and --ip choose another socket and carrier")
    })?;
    let library = match &flags.library {
        Some(file) => Some(
            PreloadedLibraryFile::write(file)
                .map_err(|cause| Failure::write(&file.display().to_string(), &cause))?,
        ),
        None => None,
    };
    announce(
        &path,
        flags.library.as_deref(),
        &supervisor.with_service(|supervisor| supervisor.status()),
        common,
    )?;
    interruption.next().await;
    supervisor.end();
    tokio::select! {
        () = until_associations_end(&supervisor) => {}
        _ = interruption.next() => {}
    }
    drop(library);
    capture::finish(capture, file, common)
}

/// Returns the default path of the socket.
fn default_path() -> Result<PathBuf, Failure> {
    if rustix::process::geteuid().is_root() {
        return Ok(Path::new("/run").join(NAME));
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|runtime| !runtime.is_empty());
    runtime.map(|runtime| Path::new(&runtime).join(NAME)).ok_or_else(|| {
        Failure::new(FailureKind::Usage, "XDG_RUNTIME_DIR is not set")
            .hint("eyas sctp serve --socket PATH")
    })
}

/// Reports where it serves, once it does.
fn announce(
    path: &Path,
    library: Option<&Path>,
    status: &SupervisorStatus,
    common: &CommonFlags,
) -> Result<(), Failure> {
    if is_open_to_all(path) {
        let text = "anyone may replace the socket in this directory: chmod +t prevents it";
        let line = PaintedLine::new().with_span(Paint::Warn, text);
        output::print_to_stderr(&[line], OutputStyle::of_stderr(common.color));
    }
    if common.json {
        return output::object(&json!({
            "socket": path,
            "library": library,
            "carrier": status.carrier,
            "udp_port": status.udp_port,
        }));
    }
    let mut lines = vec![
        PaintedLine::new()
            .with_span(Paint::Good, "serving ")
            .with_span(Paint::Head, path.display().to_string())
            .with_span(
                Paint::Plain,
                format!("  {}", carrier_text(status.carrier, status.udp_port)),
            ),
    ];
    let join = format!("eyas sctp run --join {} -- COMMAND", path.display());
    lines.push(PaintedLine::new().with_span(Paint::Command, join));
    if let Some(library) = library {
        let set =
            format!("LD_PRELOAD={} EYAS_SCTP_SOCKET={} COMMAND", library.display(), path.display());
        lines.push(PaintedLine::new().with_span(Paint::Command, set));
    }
    output::page(&lines, OutputStyle::of_stdout(common.color))
}

/// Describes the carrier of packets.
pub(super) fn carrier_text(carrier: &str, udp_port: Option<u16>) -> String {
    match udp_port {
        Some(port) if carrier == "udp" => format!("SCTP inside UDP, port {port}"),
        _ => "SCTP over IP".to_owned(),
    }
}
