//! `eyas proxy run`: a command with its own proxy.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use eyas_proxy::ProxyLimits;
use tokio::task::JoinHandle;

use super::lines::{OutputStream, ReportLines};
use super::{NamespacePreparation, builder, bypass, failure, limits};
use crate::command::child::{SignalForwarder, exit_code, start_failure};
use crate::command::descriptors::{DescriptorShares, raise_limit, with_limit};
use crate::failure::{Failure, FailureKind};
use crate::flags::{ColorChoice, CommonFlags, ProxyRunFlags};
use crate::output;

/// The variables in which programs find a proxy for URLs: curl, wget, git, pip, Go, Cargo, Deno and
/// many more. curl reads the first one only in lower case.
const URL_VARIABLES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
/// The variables that take precedence over the user's files in which npm, yarn and pip may find
/// another proxy.
const OVERRIDING: [&str; 5] = [
    "npm_config_proxy",
    "npm_config_https_proxy",
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
    "PIP_PROXY",
];

/// How long connections may take to end after the command has.
const GRACE: Duration = Duration::from_millis(500);

/// Runs the command to its end.
pub(super) async fn run(
    flags: &ProxyRunFlags,
    common: &CommonFlags,
    preparation: NamespacePreparation,
) -> Result<ExitCode, Failure> {
    let failed = |cause| Failure::new(FailureKind::Connect, format!("cannot wait for it: {cause}"));
    // Set up before anything is started.
    let signals = SignalForwarder::listen().map_err(failed)?;
    let stream = if common.json { OutputStream::Stdout } else { OutputStream::Stderr };
    let lines = ReportLines::start(&flags.destinations, common, stream)?;
    let limit_of_command = raise_limit();
    let descriptors = DescriptorShares::now();
    let limits = ProxyLimits { grace: GRACE, ..limits(&flags.destinations) };
    let limits = limits.within(descriptors.of_clients);
    let proxy = lines.attach_to(builder(&flags.destinations, common, descriptors)?.limits(limits));
    let running = proxy.start().map_err(|cause| failure(&cause))?;
    let (program, arguments) = flags.command.split_first().ok_or_else(|| {
        Failure::new(FailureKind::Usage, "there is no command").hint("eyas proxy run -- COMMAND")
    })?;
    let mut command = Command::new(program);
    command.args(arguments);
    if common.json {
        // Standard output is reserved for the objects.
        command.stdout(Stdio::from(std::io::stderr()));
    }
    let (enclosed, mut child) = if flags.all_traffic {
        let (enclosure, child) = with_limit(limit_of_command, || {
            preparation.spawn(&running, command, &flags.host_port)
        })?;
        (Some(enclosure), child)
    } else {
        command.envs(environment(running.local_addr()));
        let mut command = tokio::process::Command::from(command);
        let child = with_limit(limit_of_command, || command.kill_on_drop(true).spawn());
        (None, child.map_err(|cause| start_failure(program, &cause))?)
    };
    let warning = (!flags.all_traffic).then(|| warn(program.clone(), common.color));
    let status = signals.wait(&mut child).await.map_err(failed)?;
    drop(enclosed);
    let clients = running.stats().accepted;
    // Connections that the command has left open would not be read any more.
    running.shutdown().await;
    lines.finish();
    if let Some(warning) = warning {
        let was_warned = warning.await.unwrap_or_default();
        if clients == 0 && !was_warned && wants_to_know(status, flags) {
            output::notice(common.color, bypass::unused(program));
        }
    }
    Ok(ExitCode::from(exit_code(status)))
}

/// Tells the user, while the command runs, that it will connect past the proxy, if that is known. The task returns
/// whether it has.
fn warn(program: OsString, color: ColorChoice) -> JoinHandle<bool> {
    tokio::spawn(async move {
        let Some(text) = bypass::warning(&program).await else { return false };
        output::notice(color, text);
        true
    })
}

/// Returns whether somebody would like to know that the proxy was not used: not a script whose command has succeeded.
fn wants_to_know(status: ExitStatus, flags: &ProxyRunFlags) -> bool {
    flags.destinations.explain || !status.success() || std::io::stderr().is_terminal()
}

/// Returns the variables with which the command finds the proxy.
fn environment(proxy: SocketAddr) -> Vec<(&'static str, OsString)> {
    let url = OsString::from(format!("http://{proxy}"));
    let mut variables: Vec<_> =
        URL_VARIABLES.into_iter().chain(OVERRIDING).map(|name| (name, url.clone())).collect();
    variables.push(("NODE_USE_ENV_PROXY", "1".into()));
    variables.push(("RSYNC_PROXY", proxy.to_string().into()));
    variables.push(("EYAS_PROXY", url));
    variables.push(("JAVA_TOOL_OPTIONS", java(proxy, std::env::var_os("JAVA_TOOL_OPTIONS"))));
    variables
}

/// Returns options for a Java VM, appended to the existing ones.
fn java(proxy: SocketAddr, existing: Option<OsString>) -> OsString {
    let mut options = existing.unwrap_or_default();
    for scheme in ["http", "https"] {
        if !options.is_empty() {
            options.push(" ");
        }
        let (host, port) = (proxy.ip(), proxy.port());
        options.push(format!("-D{scheme}.proxyHost={host} -D{scheme}.proxyPort={port}"));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_keeps_the_options_it_has() {
        let proxy = "127.0.0.1:7".parse().expect("an address");
        let expected = "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=7 \
                    -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=7";
        assert_eq!(java(proxy, None), expected);
        assert_eq!(java(proxy, Some("-Xmx1g".into())), format!("-Xmx1g {expected}").as_str());
    }

    #[test]
    fn every_variable_is_set_once() {
        let variables = environment("127.0.0.1:7".parse().expect("an address"));
        let mut names: Vec<_> = variables.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), variables.len());
    }
}
