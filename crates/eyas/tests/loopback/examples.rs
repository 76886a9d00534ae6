//! Runs the examples on loopback.

use eyas::race::candidate::Transport;

use crate::common::{Scene, wait};

#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../../examples/race.rs"]
mod race;

#[tokio::test]
async fn a_race_reports_what_was_planned_what_failed_and_what_won() {
    let scene = Scene::new([Transport::Tcp]).await;
    let reported = wait(race::explain(&scene.endpoint, scene.target())).await.unwrap();
    let at = scene.listener.local_addr();
    for expected in ["plan: quic", "plan: tcp", "because: "] {
        assert!(reported.lines().any(|line| line.starts_with(expected)), "{expected}: {reported}");
    }
    assert!(reported.contains(&format!("won: tcp {at}\n")), "{reported}");
}
