//! Windows, where memory alone limits sockets and files.

/// Nothing has to be raised.
pub(in super::super) fn raise_limit() {}

/// Starts a process.
pub(in super::super) fn with_limit<T>(_: (), start: impl FnOnce() -> T) -> T {
    start()
}
