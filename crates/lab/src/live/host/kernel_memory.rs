//! The memory that the kernel uses for networking, as far as it reports it.

use std::fs;

/// Kernel caches that contain only sockets and packets, as `/proc/slabinfo` names them; `TIME_WAIT`
/// is counted for one host only.
const CACHES: [&str; 12] = [
    "TCP",
    "TCPv6",
    "MPTCP",
    "UDP",
    "UDPv6",
    "RAW",
    "request_sock_TCP",
    "request_sock_TCPv6",
    "sock_inode_cache",
    "skbuff_head_cache",
    "skbuff_fclone_cache",
    "skbuff_small_head",
];
/// A connection in TIME-WAIT.
const TIME_WAIT: &str = "tw_sock_TCP";
/// The page size in bytes, if it is not known.
const PAGE: u64 = 4096;

/// Returns bytes for the whole machine; `None` if the kernel does not report them. TIME-WAIT is
/// counted only in the network namespace of the calling thread.
pub(in crate::live) fn now() -> Option<u64> {
    let slabs = fs::read_to_string("/proc/slabinfo").ok()?;
    let sockets = fs::read_to_string("/proc/thread-self/net/sockstat").ok()?;
    Some(parse(&slabs, &sockets))
}

/// Releases what earlier runs have left. Free objects in a core's list count as used, so one run
/// would be charged for what another one needed.
pub(in crate::live) fn release_unused() {
    for cache in CACHES.iter().chain([&TIME_WAIT]) {
        // Without permission, or on a kernel without this, the numbers are less exact.
        let _ = fs::write(format!("/sys/kernel/slab/{cache}/shrink"), "1");
    }
}

fn parse(slabs: &str, sockets: &str) -> u64 {
    let cache = |name: &str| {
        let mut numbers = slabs.lines().find_map(|line| {
            line.strip_prefix(name)?.starts_with(' ').then(|| line.split_whitespace().skip(1))
        })?;
        let active: u64 = numbers.next()?.parse().ok()?;
        let size: u64 = numbers.nth(1)?.parse().ok()?;
        Some((active, size))
    };
    let held = |name: &&str| cache(name).map_or(0, |(active, size)| active * size);
    let caches: u64 = CACHES.iter().map(held).sum();
    let waiting = field(sockets, "TCP:", "tw") * cache(TIME_WAIT).map_or(0, |(_, size)| size);
    let pages = field(sockets, "TCP:", "mem") + field(sockets, "UDP:", "mem");
    caches + waiting + pages * PAGE
}

/// Returns the number after this word in a line of `sockstat`.
fn field(sockets: &str, line: &str, word: &str) -> u64 {
    let found = sockets.lines().find_map(|text| text.strip_prefix(line)).unwrap_or_default();
    let mut words = found.split_whitespace();
    words.find(|candidate| *candidate == word).and_then(|_| words.next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_time_wait_and_buffers_are_added() {
        let slabs = "# name <active_objs> <num_objs> <objsize>\n\
                     TCPv6     2   104   2500   13    8 : tunables 0 0 0\n\
                     tw_sock_TCP   900   272   256   16    1 : tunables\n\
                     TCP       3   143   2000   13    8 : tunables 0 0 0\n\
                     kmalloc-64  1000 1000 64 1 1 : tunables\n";
        let sockets = "sockets: used 21\nTCP: inuse 1 orphan 0 tw 2 alloc 1 mem 5\n\
                       UDP: inuse 0 mem 1\n";
        assert_eq!(parse(slabs, sockets), 2 * 2500 + 3 * 2000 + 2 * 256 + 6 * 4096);
        assert_eq!(parse("", ""), 0, "missing values count as 0");
    }
}
