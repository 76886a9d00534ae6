//! Failed and cancelled requests leave no descriptor behind. Alone in its process, to count them.
#![cfg(target_os = "linux")]

mod stage;

use std::time::Duration;

use eyas_testserver::{Personality, Side};
use tokio::time::{sleep, timeout};

use crate::stage::{SOON, Stage};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("a process has descriptors").count()
}

/// Waits until no more descriptors are open than before.
async fn settled(before: usize, what: &str) {
    let settled = timeout(SOON, async {
        while descriptors() > before {
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(settled.await.is_ok(), "{what}: {before} before, {} after", descriptors());
}

#[tokio::test]
async fn nothing_is_left_open() {
    for personality in [
        Personality::WrongCertificate(Side::Both),
        Personality::UdpSwallowed,
        Personality::AllSwallowed,
        Personality::ResetInBody { after: 10 },
        Personality::TcpSilent,
    ] {
        let stage = Stage::new(personality).await;
        let before = descriptors();
        for _ in 0..5 {
            let client = stage.client();
            // Some fail, some work, some are given up in the middle: all must close everything.
            let _ = timeout(Duration::from_millis(150), async {
                client.get(stage.url("/bytes/100000")).send().await?.bytes().await
            })
            .await;
        }
        settled(before, &personality.to_string()).await;
    }
}
