//! The network namespace of a host.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use rustix::process::Pid;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::EmulatorError;
use super::host::HostRole;
use super::kernel::TunKind;
use super::topology::Topology;
use super::user_namespace::not_allowed;
use super::{kernel, receiver};

/// The number of the first path's routing table; those of the others follow.
const FIRST_TABLE: usize = 100;
/// The namespace of the calling thread.
pub(super) const CURRENT_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// An unnamed network namespace: it exists as long as something holds it, runs in it or has an
/// interface in it. Clones refer to the same one.
#[derive(Clone, Debug)]
pub struct NetworkNamespace {
    host: HostRole,
    file: Arc<File>,
}

/// Keeps the calling thread in a namespace until dropped.
#[derive(Debug)]
pub struct NamespaceGuard {
    before: File,
    /// It is tied to the thread that created it.
    _thread: PhantomData<*const ()>,
}

impl Drop for NamespaceGuard {
    fn drop(&mut self) {
        // The thread came from there, so it may return; if it cannot, it stays where it is.
        let _ = enter(&self.before);
    }
}

fn enter(namespace: &File) -> io::Result<()> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(io::Error::from)
}

impl NetworkNamespace {
    /// Returns the host.
    #[must_use]
    pub const fn host(&self) -> HostRole {
        self.host
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns a command that runs inside when spawned. Processes that are still running when the
    /// emulator is dropped or killed are killed.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        kernel::start_in_namespace(&mut command, self.file.clone());
        command
    }

    /// Moves the calling thread into the namespace: sockets that it opens, and threads and
    /// processes that it starts, are inside; existing sockets are not affected.
    ///
    /// Do not use it in the main thread of a program: the whole program would count as inside, and
    /// be killed with the emulator.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn enter(&self) -> Result<NamespaceGuard, EmulatorError> {
        let refused = |cause| EmulatorError::Enter { host: self.host.to_string(), cause };
        let before = File::open(CURRENT_NAMESPACE).map_err(refused)?;
        enter(&self.file).map_err(refused)?;
        Ok(NamespaceGuard { before, _thread: PhantomData })
    }

    /// Runs this in a thread inside the namespace, and waits for it.
    ///
    /// # Errors
    /// If the kernel refuses.
    ///
    /// # Panics
    /// If `work` panics, with the same message.
    pub fn run_in<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, EmulatorError> {
        let inside = || {
            let _inside = self.enter()?;
            Ok(work())
        };
        thread::scope(|scope| match scope.spawn(inside).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

impl NetworkNamespace {
    /// Returns whether a program inside is listening on a TCP or UDP socket.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn is_listening(&self) -> Result<bool, EmulatorError> {
        self.run_in(is_listening)
    }
}

/// A namespace with its devices, one for each path.
pub(super) struct HostNamespace {
    pub(super) namespace: NetworkNamespace,
    pub(super) tuns: Vec<OwnedFd>,
    /// The kernel threads that process received packets, if there are any.
    pub(super) receivers: Vec<Pid>,
}

/// Creates the namespace of a host and the interfaces in it.
pub(super) fn build(host: HostRole, topology: &Topology) -> Result<HostNamespace, EmulatorError> {
    let making = || {
        kernel::unshare_network_namespace().map_err(|cause| not_allowed("network", cause))?;
        let file = File::open(CURRENT_NAMESPACE)
            .map_err(EmulatorError::system("open a network namespace"))?;
        let namespace = NetworkNamespace { host, file: Arc::new(file) };
        let core = topology.server_core.filter(|_| host == HostRole::Server);
        let tuns = interfaces(host, topology, core)?;
        let receivers = match core {
            Some(core) => receiver::start_threads(topology, core)?,
            None => Vec::new(),
        };
        Ok(HostNamespace { namespace, tuns, receivers })
    };
    thread::scope(|scope| match scope.spawn(making).join() {
        Ok(built) => built,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Creates and configures the devices, in the namespace of the calling thread.
fn interfaces(
    host: HostRole,
    topology: &Topology,
    core: Option<usize>,
) -> Result<Vec<OwnedFd>, EmulatorError> {
    // Packets to one address may arrive at the interface of another.
    let _ = fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
    let mut tuns = Vec::new();
    for name in topology.interfaces() {
        let refused = |cause| EmulatorError::Tun { name: name.clone(), cause };
        let kind = if core.is_some() { TunKind::OffloadThreaded } else { TunKind::Offload };
        tuns.push(kernel::open_tun(&name, kind).map_err(refused)?);
        disable_background_traffic(&name);
    }
    run_ip(host, "-4", &commands(host, topology, false))?;
    let ipv6 = commands(host, topology, true);
    if !ipv6.is_empty() {
        run_ip(host, "-6", &ipv6)?;
    }
    Ok(tuns)
}

/// Configures an interface so that only requested packets are sent on it, and packets to one
/// address may arrive at the interface of another.
pub(super) fn disable_background_traffic(name: &str) {
    set(name, "ipv4", "rp_filter", "0");
    disable_autoconfiguration(name);
}

/// Configures an interface so that the kernel does not search for routers on it and does not assign
/// addresses to it.
pub(super) fn disable_autoconfiguration(name: &str) {
    set(name, "ipv6", "addr_gen_mode", "1");
    set(name, "ipv6", "router_solicitations", "0");
}

fn set(name: &str, family: &str, key: &str, value: &str) {
    // Without IPv6 in the kernel there is nothing to configure.
    let _ = fs::write(format!("/proc/sys/net/{family}/conf/{name}/{key}"), value);
}

/// Returns the lines for `ip -batch` for the addresses of one family; the interfaces are created
/// with the first.
fn commands(host: HostRole, topology: &Topology, ipv6: bool) -> String {
    let mut lines = Vec::new();
    let paths = || topology.interfaces().zip(&topology.paths);
    if !ipv6 {
        lines.push("link set lo up".to_owned());
        lines.extend(paths().map(|(name, path)| {
            format!("link set dev {name} mtu {} txqueuelen 10000 multicast off up", path.mtu)
        }));
    }
    let of_family = paths().enumerate().flat_map(|(number, (name, path))| {
        let addresses =
            path.addresses(host).into_iter().filter(|address| address.is_ipv6() == ipv6);
        addresses.map(move |address| (number, name.clone(), address))
    });
    let (length, more) = if ipv6 { (64, " nodad") } else { (24, "") };
    for (place, (number, name, address)) in of_family.enumerate() {
        lines.push(format!("addr add {address}/{length} dev {name}{more}"));
        if place == 0 {
            lines.push(format!("route add default dev {name} src {address}"));
        }
        // Packets from an address use its path, whatever their destination.
        let table = FIRST_TABLE + number;
        lines.push(format!("route add default dev {name} src {address} table {table}"));
        lines.push(format!("rule add from {address} lookup {table} priority {table}"));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

pub(super) fn run_ip(owner: impl Display, family: &str, lines: &str) -> Result<(), EmulatorError> {
    let failed = |cause| EmulatorError::Program { program: "ip", cause, package: "iproute2" };
    let mut ip = Command::new("ip")
        .env("PATH", super::machine::search_path())
        .args([family, "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let written = ip.stdin.take().map_or(Ok(()), |mut input| input.write_all(lines.as_bytes()));
    let output = ip.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(EmulatorError::Interfaces { host: owner.to_string(), output });
    }
    written.map_err(failed)
}

/// Returns the number of packets that the interfaces could not pass to the emulator, in the
/// namespace of the calling thread: the column of packets dropped while sending (proc_pid_net(5)).
pub(super) fn missed(topology: &Topology) -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let interfaces: Vec<String> = topology.interfaces().collect();
    let dropped = |line: &str| {
        let (name, columns) = line.split_once(':')?;
        interfaces.iter().find(|interface| *interface == name.trim())?;
        columns.split_whitespace().nth(11)?.parse::<u64>().ok()
    };
    table.lines().filter_map(dropped).sum()
}

/// Returns whether a socket is listening on TCP, or UDP is used at all, in the namespace of the
/// calling thread.
fn is_listening() -> bool {
    let has = |table: &str, state: Option<&str>| {
        let rows = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        let state_of = |row: &str| row.split_whitespace().nth(3).map(str::to_owned);
        rows.lines()
            .skip(1)
            .any(|row| state.is_none_or(|state| state_of(row).as_deref() == Some(state)))
    };
    // 0A is TCP_LISTEN in net/tcp_states.h.
    ["tcp", "tcp6"].into_iter().any(|table| has(table, Some("0A")))
        || ["udp", "udp6"].into_iter().any(|table| has(table, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a topology of two paths with these names.
    fn topology(names: [&str; 2]) -> Topology {
        names.iter().fold(Topology::default(), |topology, name| {
            topology.with_path(name, Default::default(), Default::default())
        })
    }

    #[test]
    fn commands_do_not_depend_on_path_names() {
        let (plain, words) = (topology(["wifi", "lte"]), topology(["mtu", "up"]));
        for ipv6 in [false, true] {
            let reported = commands(HostRole::Client, &words, ipv6);
            assert_eq!(reported, commands(HostRole::Client, &plain, ipv6));
            assert!(reported.contains("dev path1") && reported.contains("dev path2"), "{reported}");
        }
    }
}
