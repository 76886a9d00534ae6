//! Tests that failed and cancelled requests close their descriptors. In its own process, to count
//! them.
#![cfg(target_os = "linux")]

mod stage;

use std::time::Duration;

use eyas_testserver::{ServerPersonality, TransportSide};
use tokio::time::{sleep, timeout};

use crate::stage::{SOON, Stage};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("a process has descriptors").count()
}

/// Waits until no more descriptors are open than before.
async fn wait_for_closing(before: usize, what: &str) {
    let wait_for_closing = timeout(SOON, async {
        while descriptors() > before {
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(wait_for_closing.await.is_ok(), "{what}: {before} before, {} after", descriptors());
}

#[tokio::test]
async fn nothing_is_left_open() {
    for personality in [
        ServerPersonality::WrongCertificate(TransportSide::Both),
        ServerPersonality::UdpSwallowed,
        ServerPersonality::AllSwallowed,
        ServerPersonality::ResetInBody { after: 10 },
        ServerPersonality::TcpSilent,
    ] {
        let stage = Stage::new(personality).await;
        let before = descriptors();
        for _ in 0..5 {
            let client = stage.client();
            // Some fail, some succeed, some are cancelled: all must close everything.
            let _ = timeout(Duration::from_millis(150), async {
                client.get(stage.url("/bytes/100000")).send().await?.bytes().await
            })
            .await;
        }
        wait_for_closing(before, &personality.to_string()).await;
    }
}
