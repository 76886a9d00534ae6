//! The limit of descriptors of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of descriptors to the maximum allowed without privileges: every connection, and
/// every socket of a program, needs one. Processes started afterwards inherit this limit.
pub(super) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // With a lower limit, whatever finds no descriptor fails and reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
