//! setrlimit(2).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of descriptors to the maximum allowed without privileges: every connection, and
/// every socket of a program, needs one. Processes started afterwards inherit this limit. Returns the limit before.
pub(in super::super) fn raise_limit() -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    // With a lower limit, whatever finds no descriptor fails and reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before });
    before
}

/// Starts a process with the limit of before [`raise_limit`]: some programs assume that all their descriptors fit into
/// an `fd_set`, and others close each possible one.
pub(in super::super) fn with_limit<T>(limit: Rlimit, start: impl FnOnce() -> T) -> T {
    let raised = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, limit);
    let started = start();
    let _ = setrlimit(Resource::Nofile, raised);
    started
}
