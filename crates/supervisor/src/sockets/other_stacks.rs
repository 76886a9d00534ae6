//! Determines whether other programs on this host implement SCTP themselves.
//!
//! Over IP every raw socket for protocol 132 receives all packets, including those for other
//! programs that use SCTP over a raw socket. Refusing a packet for an unknown port with an ABORT
//! could end their associations.

use std::time::{Duration, Instant};

/// The protocol as it appears in the lists of raw sockets, in place of the port.
const SCTP: &str = "0084";
/// The kernel's lists of raw sockets in this network namespace.
const LISTS: [&str; 2] = ["/proc/net/raw", "/proc/net/raw6"];
/// How long other programs, once found, are assumed to exist. Their absence is not cached, because
/// a new program may send at once.
const ASSUMED_FOR: Duration = Duration::from_secs(1);
/// The maximum number of refused packets per second: each requires reading the lists.
const MAX_REFUSED_PER_SECOND: u32 = 200;

/// The presence of other programs with SCTP, and the number of packets refused in the current
/// second.
#[derive(Debug)]
pub(super) struct OtherStacks {
    /// The number of our own raw sockets.
    own: usize,
    others_until: Option<Instant>,
    second: Option<(Instant, u32)>,
}

impl OtherStacks {
    pub(super) fn new(own: usize) -> Self {
        Self { own, others_until: None, second: None }
    }

    /// Returns whether a packet for an unused port may be refused.
    pub(super) fn may_refuse(&mut self, now: Instant) -> bool {
        if self.others_until.is_some_and(|until| now < until) {
            return false;
        }
        let (since, count) = match self.second {
            Some((since, count)) if now < since + Duration::from_secs(1) => (since, count),
            _ => (now, 0),
        };
        if count >= MAX_REFUSED_PER_SECOND {
            return false;
        }
        self.second = Some((since, count + 1));
        let mut all = 0;
        for list in LISTS {
            match std::fs::read_to_string(list) {
                Ok(list) => all += count_sctp_sockets(&list),
                // A host without IPv6 has no such list.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => return false,
            }
        }
        let is_alone = all <= self.own;
        self.others_until = (!is_alone).then(|| now + ASSUMED_FOR);
        is_alone
    }
}

/// Returns the number of raw sockets for protocol 132 in a list of the kernel.
fn count_sctp_sockets(list: &str) -> usize {
    let protocol = |line: &str| Some(line.split_whitespace().nth(1)?.rsplit(':').next()? == SCTP);
    list.lines().filter(|line| protocol(line).unwrap_or_default()).count()
}

#[cfg(test)]
mod tests {
    use super::count_sctp_sockets;

    #[test]
    fn raw_sockets_are_counted_by_protocol() {
        let list = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
    1: 00000000:0001 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 77 2 0 0
  132: 0100007F:0084 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 78 2 0 0
";
        assert_eq!(count_sctp_sockets(list), 1);
        let six = "  132: 00000000000000000000000000000000:0084 \
            00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 79 2";
        assert_eq!(count_sctp_sockets(six), 1);
        assert_eq!(count_sctp_sockets(""), 0);
    }
}
