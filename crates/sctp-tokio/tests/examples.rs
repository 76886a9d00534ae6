//! Runs the examples on loopback.

use std::time::Duration;

#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../examples/sctp-dtls.rs"]
mod sctp_dtls;
#[expect(dead_code, reason = "its main is for cargo run")]
#[path = "../examples/sctp-messages.rs"]
mod sctp_messages;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

#[tokio::test]
async fn messages_arrive_in_the_order_of_their_stream_over_two_paths() {
    let listener = sctp_messages::listen().unwrap();
    let udp = listener.encapsulation_port().unwrap();
    let both = async { tokio::join!(sctp_messages::connect(udp), listener.accept()) };
    let (client, server) = in_time(both).await;
    let client = client.unwrap();
    in_time(sctp_messages::send(&client, 40)).await.unwrap();
    let mut streams = [const { Vec::new() }; 4];
    for _ in 0..40 {
        let message = in_time(server.receive()).await.unwrap().unwrap().into_bytes();
        let text = String::from_utf8(message.to_vec()).unwrap();
        let number: usize = text.strip_prefix("message ").unwrap().parse().unwrap();
        streams[number % 4].push(number);
    }
    for (stream, numbers) in streams.iter().enumerate() {
        assert_eq!(*numbers, (stream..40).step_by(4).collect::<Vec<_>>());
    }
    assert_eq!(client.paths().len(), 2, "{:?}", client.paths());
}

#[tokio::test]
async fn only_the_pinned_client_gets_an_association() {
    let generate = || sctp_dtls::Credentials::generate().unwrap();
    let (server, client, other) = (generate(), generate(), generate());
    let listener = sctp_dtls::listen(&server, &client).unwrap();
    let udp = listener.encapsulation_port().unwrap();
    let refused = in_time(sctp_dtls::connect(udp, &other, &server)).await.unwrap_err();
    assert!(refused.to_string().contains("ended the DTLS"), "{refused}");
    let refused = in_time(sctp_dtls::connect(udp, &client, &other)).await.unwrap_err();
    assert!(refused.to_string().contains("certificate"), "{refused}");
    let both =
        async { tokio::join!(sctp_dtls::connect(udp, &client, &server), listener.accept_dtls()) };
    let (ours, theirs) = in_time(both).await;
    let ours = ours.unwrap();
    ours.send(&Default::default(), "hello".into()).await.unwrap();
    let message = in_time(theirs.receive()).await.unwrap().unwrap();
    assert_eq!(message.into_bytes(), "hello");
    in_time(async {
        while ours.paths().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(theirs.peer_certificate().is_some());
}
