//! Whether a port that nobody has here is anybody's on this host.
//!
//! Over IP every raw socket of protocol 132 gets all packets, also those for other programs that speak SCTP
//! over one. To refuse what is theirs would end their associations.

use std::time::{Duration, Instant};

/// The protocol, as the lists of raw sockets show it: in the place of the port.
const SCTP: &str = "0084";
/// Lists of this network namespace.
const LISTS: [&str; 2] = ["/proc/net/raw", "/proc/net/raw6"];
/// How long others that were seen are believed to be there. That nobody is there is never believed for
/// long: whoever comes speaks at once.
const OTHERS_STAY: Duration = Duration::from_secs(1);
/// Packets that are refused in a second at most: each costs a look at the lists.
const MOST: u32 = 200;

/// Who else speaks SCTP, and how much was refused of late.
#[derive(Debug)]
pub(super) struct Strangers {
    /// Raw sockets that are ours.
    own: usize,
    others_until: Option<Instant>,
    second: Option<(Instant, u32)>,
}

impl Strangers {
    pub(super) fn new(own: usize) -> Self {
        Self { own, others_until: None, second: None }
    }

    /// Whether a packet for nobody here may be refused.
    pub(super) fn may_refuse(&mut self, now: Instant) -> bool {
        if self.others_until.is_some_and(|until| now < until) {
            return false;
        }
        let (since, count) = match self.second {
            Some((since, count)) if now < since + Duration::from_secs(1) => (since, count),
            _ => (now, 0),
        };
        if count >= MOST {
            return false;
        }
        self.second = Some((since, count + 1));
        let mut all = 0;
        for list in LISTS {
            match std::fs::read_to_string(list) {
                Ok(list) => all += sockets_of_sctp(&list),
                // A host without IPv6 has no such list.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => return false,
            }
        }
        let is_alone = all <= self.own;
        self.others_until = (!is_alone).then(|| now + OTHERS_STAY);
        is_alone
    }
}

/// Raw sockets of protocol 132 in a list of the kernel's.
fn sockets_of_sctp(list: &str) -> usize {
    let protocol = |line: &str| Some(line.split_whitespace().nth(1)?.rsplit(':').next()? == SCTP);
    list.lines().filter(|line| protocol(line).unwrap_or_default()).count()
}

#[cfg(test)]
mod tests {
    use super::sockets_of_sctp;

    #[test]
    fn raw_sockets_are_counted_by_protocol() {
        let list = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
    1: 00000000:0001 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 77 2 0 0
  132: 0100007F:0084 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 78 2 0 0
";
        assert_eq!(sockets_of_sctp(list), 1);
        let six = "  132: 00000000000000000000000000000000:0084 \
            00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 79 2";
        assert_eq!(sockets_of_sctp(six), 1);
        assert_eq!(sockets_of_sctp(""), 0);
    }
}
