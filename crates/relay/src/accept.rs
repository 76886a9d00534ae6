//! Accepting connections where that can fail for a while.

use std::io;
use std::time::Duration;

use tokio::time::sleep;

/// The pause after a failure that concerns all clients, such as running out of descriptors: the kernel reports it again
/// at once for as long as a client waits.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits for the next connection. While none can be accepted, it reports why and tries again after a pause.
/// Cancel-safe if `accept` is.
pub async fn accept_next<T, F: Future<Output = io::Result<T>>>(
    mut accept: impl FnMut() -> F,
    mut report: impl FnMut(&io::Error),
) -> T {
    loop {
        match accept().await {
            Ok(accepted) => return accepted,
            Err(error) if concerns_one_client_only(&error) => {}
            Err(error) => {
                report(&error);
                sleep(PAUSE).await;
            }
        }
    }
}

/// Returns whether an error concerns only a connection that ended before it was accepted.
fn concerns_one_client_only(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_reported_and_then_tried_again() {
        let mut results = vec![
            Ok(7),
            Err(ErrorKind::ConnectionReset),
            Err(ErrorKind::Other),
            Err(ErrorKind::Other),
        ];
        let began = tokio::time::Instant::now();
        let mut reported = 0;
        let accept =
            || std::future::ready(results.pop().expect("another").map_err(io::Error::from));
        assert_eq!(accept_next(accept, |_| reported += 1).await, 7);
        assert_eq!((reported, began.elapsed()), (2, 2 * PAUSE));
    }
}
