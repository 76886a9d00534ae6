//! Runs the examples on loopback.

use eyas::race::candidate::Transport;

use crate::common::{Scene, wait};

#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../../examples/race.rs"]
mod race;
#[cfg(feature = "sctp")]
#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../../examples/sctp-messages.rs"]
mod sctp_messages;

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

#[cfg(feature = "sctp")]
#[tokio::test]
async fn messages_arrive_in_the_order_of_their_stream_over_two_paths() {
    let listener = sctp_messages::listen().unwrap();
    let udp = listener.encapsulation_port().unwrap();
    let both = async { tokio::join!(sctp_messages::connect(udp), listener.accept()) };
    let (client, server) = wait(both).await;
    let client = client.unwrap();
    wait(sctp_messages::send(&client, 40)).await.unwrap();
    let mut streams = [const { Vec::new() }; 4];
    for _ in 0..40 {
        let message = wait(server.receive()).await.unwrap().unwrap().into_bytes();
        let text = String::from_utf8(message.to_vec()).unwrap();
        let number: usize = text.strip_prefix("message ").unwrap().parse().unwrap();
        streams[number % 4].push(number);
    }
    for (stream, numbers) in streams.iter().enumerate() {
        assert_eq!(*numbers, (stream..40).step_by(4).collect::<Vec<_>>());
    }
    assert_eq!(client.paths().len(), 2, "{:?}", client.paths());
}
