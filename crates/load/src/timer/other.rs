//! The runtime's timer, with a resolution of a millisecond: requests are sent up to that much late, which the results
//! show as waiting.

use std::io;
use std::time::Duration;

/// A timer.
#[derive(Debug)]
pub(in super::super) struct KernelTimer;

impl KernelTimer {
    /// Creates a timer.
    pub(in super::super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for this time.
    pub(in super::super) async fn sleep(&self, wait: Duration) -> io::Result<()> {
        tokio::time::sleep(wait).await;
        Ok(())
    }
}
