//! Finds the process that uses a UDP port of this host, if this user may inspect it.

use std::fs;
use std::path::Path;

/// Where the kernel lists the UDP sockets of this network namespace.
const TABLES: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];
/// The maximum number of processes that are inspected.
const MAX_PROCESSES: usize = 4096;

/// Returns the program that uses this UDP port, with its process ID: "eyas (process 4711)".
pub(crate) fn owner_of_udp_port(port: u16) -> Option<String> {
    let tables = TABLES.iter().filter_map(|table| fs::read_to_string(table).ok());
    let inode = tables.into_iter().find_map(|table| inode(&table, port).map(str::to_owned))?;
    let socket = format!("socket:[{inode}]");
    let entries = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let mut processes = entries.filter(|entry| process_id(entry).is_some()).take(MAX_PROCESSES);
    let owner = processes.find(|process| has_open(process, &socket))?;
    let id = process_id(&owner)?;
    let name = fs::read_to_string(owner.join("comm")).ok()?;
    Some(format!("{} (process {id})", name.trim_end()))
}

/// Returns the process ID of an entry, if it is a process.
fn process_id(entry: &Path) -> Option<u32> {
    entry.file_name()?.to_str()?.parse().ok()
}

/// Returns the inode of the socket with this port in one of the tables.
fn inode(table: &str, port: u16) -> Option<&str> {
    let hex = format!("{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace();
        let (_, local_port) = fields.nth(1)?.rsplit_once(':')?;
        // Remote address, state, queues, timer, retransmissions, user, timeout; then the inode.
        (local_port == hex).then(|| fields.nth(7)).flatten()
    })
}

/// Returns whether a process has this socket open. Processes of other users cannot be inspected.
fn has_open(process: &Path, socket: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    let mut links = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| link.as_os_str() == socket)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_owner_of_a_port_is_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // Not every machine has IPv6.
            let Ok(socket) = UdpSocket::bind(address) else { continue };
            let port = socket.local_addr().unwrap().port();
            let owner = owner_of_udp_port(port).unwrap();
            assert!(owner.ends_with(&format!("(process {})", std::process::id())), "{owner}");
        }
    }

    #[test]
    fn lines_of_the_table_are_parsed() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                     uid  timeout inode ref pointer drops\n  \
                     42: 0100007F:26AB 00000000:0000 07 00000000:00000000 00:00000000 00000000     \
                     0        0 4711 2 0000000000000000 0\n";
        assert_eq!(inode(table, 9899), Some("4711"));
        assert_eq!(inode(table, 9898), None);
        assert_eq!(inode("", 9899), None);
    }
}
