//! A proxy on loopback, and its reports.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use eyas::Endpoint;
use eyas_proxy::{Proxy, ProxyBuilder, ProxyClientReport, RunningProxy};

/// Long enough for anything here; what takes longer has hung.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) running: RunningProxy,
    reports: Receiver<ProxyClientReport>,
}

impl Stage {
    pub(crate) fn new(endpoint: Endpoint, set: impl FnOnce(ProxyBuilder) -> ProxyBuilder) -> Self {
        let (sender, reports) = channel();
        let builder = Proxy::builder(endpoint).reports(move |report| {
            // The test may be over already.
            let _ = sender.send(report);
        });
        Self { running: set(builder).start().expect("a proxy"), reports }
    }

    pub(crate) async fn report(&self) -> ProxyClientReport {
        let mut waited = Duration::ZERO;
        loop {
            if let Ok(report) = self.reports.try_recv() {
                return report;
            }
            assert!(waited < TIMEOUT, "no report");
            waited += Duration::from_millis(10);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
