//! What commands need that this system lacks.

use crate::failure::{Failure, FailureKind};

/// Why nothing is emulated.
pub(super) const NAMESPACES: &str = "it needs network namespaces";
/// Why programs get no SCTP sockets.
pub(super) const SUPERVISOR: &str = "it serves the calls of programs by seccomp notifications, or by the dynamic linker of glibc and musl";
/// Why a tunnel has no interface.
pub(super) const TUN: &str = "it needs a TUN device and netlink";
/// Why the tunnels that run are not found.
pub(super) const CONTROL: &str = "it asks each tunnel at a socket below /run";

/// Returns the failure of a command that needs Linux.
pub(super) fn failure(command: &str, why: &str) -> Failure {
    Failure::new(FailureKind::Absent, format!("{command} is there on Linux only: {why}"))
        .hint("docs/reference/platforms.md has what each system lacks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_named_with_its_reason() {
        let failure = failure("eyas netem", NAMESPACES);
        assert_eq!(
            failure.message,
            "eyas netem is there on Linux only: it needs network namespaces"
        );
        assert_eq!(failure.kind.exit_code(), 4);
    }
}
