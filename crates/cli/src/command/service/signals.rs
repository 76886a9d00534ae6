//! Signals to a server.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::ServiceSignals;
#[cfg(windows)]
pub(super) use windows::ServiceSignals;

/// What a signal means to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceSignal {
    /// SIGINT, SIGTERM, or SIGHUP because its terminal was closed; on Windows all that there is.
    Stop,
    /// SIGHUP of an operator, a service manager or logrotate.
    #[cfg_attr(windows, expect(dead_code, reason = "there is no such signal"))]
    Reload,
}
