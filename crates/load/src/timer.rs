//! A timer with microsecond resolution on Linux: the runtime's own timer, which serves elsewhere, rounds up to the next
//! millisecond, which is longer than most requests on a fast network take.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use linux::KernelTimer;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) use other::KernelTimer;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[tokio::test]
    async fn it_never_wakes_early() {
        let timer = KernelTimer::new().expect("a timer");
        for micros in [0, 1, 300, 1_500] {
            let (start, wait) = (Instant::now(), Duration::from_micros(micros));
            timer.sleep(wait).await.expect("it expires");
            assert!(start.elapsed() >= wait, "{wait:?}");
        }
    }
}
