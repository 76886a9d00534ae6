//! How many descriptors this process may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit to all that the system gives without asking for more: every connection, and every
/// socket of a program, takes one. What is started afterwards has this limit, too.
pub(super) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // With fewer, what finds none fails, and says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
