//! Notices about problems of the server itself, for its operator.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use eyas::sockets::{self, ReportThrottle};

/// The receiver of notices, limited in rate.
pub(super) struct Notices {
    observer: Box<dyn Fn(String) + Send + Sync>,
    throttle: ReportThrottle,
    balancers: ReportThrottle,
}

impl Notices {
    pub(super) fn new(observer: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self {
            observer: Box::new(observer),
            throttle: ReportThrottle::default(),
            balancers: ReportThrottle::default(),
        }
    }

    /// Reports that a load balancer did not name its client.
    pub(super) fn unnamed(&self, balancer: SocketAddr, error: &io::Error) {
        if self.balancers.permits() {
            (self.observer)(format!("a connection of the balancer {balancer} was closed: {error}"));
        }
    }

    /// Reports that no connection can be accepted at the moment.
    pub(super) fn exhausted(&self, error: &io::Error) {
        if self.throttle.permits() {
            (self.observer)(sockets::exhausted(error));
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
