//! A command in its own network namespace, with all its connections through the proxy.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use eyas_emulator::{Enclosure, EnclosureConfig, OriginalUser};
use eyas_proxy::RunningProxy;
use eyas_proxy::{HOST, PEER};
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use super::super::netem::emulator_failure;
use crate::command::child::start_failure;
use crate::failure::{Failure, FailureKind};

const NAME_SERVERS: &str = "/etc/resolv.conf";
/// Sockets of name service daemons outside, which would bypass the name server.
const CACHE_SOCKETS: [&str; 4] = [
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/systemd/resolve/io.systemd.Resolve.Monitor",
    "/run/nscd/socket",
    "/run/avahi-daemon/socket",
];
/// The replacement of these files, at which nothing listens.
const DEV_NULL: &str = "/dev/null";

/// Becomes root of a user namespace, if necessary. Must be called before a second thread is
/// started.
pub(super) fn become_root() -> Result<Option<OriginalUser>, Failure> {
    eyas_emulator::become_root().map_err(emulator_failure)
}

/// Starts the command. It ends when the returned value is dropped.
pub(super) fn spawn(
    running: &RunningProxy,
    mut command: std::process::Command,
    original_user: Option<OriginalUser>,
    host_ports: &[u16],
) -> Result<(Enclosure, Child), Failure> {
    let failed = |cause: io::Error| {
        Failure::new(
            FailureKind::Emulator,
            format!("cannot set up a network for the command: {cause}"),
        )
    };
    let name_servers = name_servers().map_err(failed)?;
    let mut file_overrides = vec![(name_servers.path().to_owned(), PathBuf::from(NAME_SERVERS))];
    let caches = CACHE_SOCKETS.into_iter().filter(|socket| Path::new(socket).exists());
    file_overrides.extend(caches.map(|socket| (PathBuf::from(DEV_NULL), PathBuf::from(socket))));
    if let Some(original_user) = original_user {
        original_user.run(&mut command);
    }
    let runtime = Handle::current();
    let start = |device| {
        let _runtime = runtime.enter();
        let bind = |ip: IpAddr| TcpListener::bind((ip, 0));
        let mut listeners = vec![bind(HOST.0.into()).map_err(failed)?];
        // There may be no IPv6 in this kernel.
        listeners.extend(bind(HOST.1.into()));
        running.intercept(device, listeners).map_err(failed)?;
        for port in host_ports {
            running.open_host_ports(listeners_at(*port).map_err(failed)?).map_err(failed)?;
        }
        let program = command.get_program().to_owned();
        let mut command = Command::from(command);
        command.kill_on_drop(true).spawn().map_err(|cause| start_failure(&program, &cause))
    };
    let config = EnclosureConfig { addresses: HOST, file_overrides };
    let (enclosure, child) = Enclosure::create(&config, start).map_err(emulator_failure)?;
    Ok((enclosure, child?))
}

/// Listens on the loopback addresses of this namespace, of which IPv6 may be missing.
fn listeners_at(port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners = vec![TcpListener::bind((Ipv4Addr::LOCALHOST, port))?];
    listeners.extend(TcpListener::bind((Ipv6Addr::LOCALHOST, port)));
    Ok(listeners)
}

/// Creates the file in which programs find their name server. It has no name once it is mounted.
fn name_servers() -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    // A search list of the host would cause queries for names that do not exist.
    writeln!(file, "nameserver {}\nsearch .", PEER.0)?;
    file.as_file().set_permissions(Permissions::from_mode(0o644))?;
    Ok(file)
}
