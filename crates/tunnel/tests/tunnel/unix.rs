//! Forwardings with a Unix socket at one end, or at both.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use eyas_tunnel::{ClientForwards, TunnelError};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::{Stage, TIMEOUT, converse, echo, forward, ports, return_data, wait};

/// Starts a server at this path that returns the data of each client after its end.
fn echo_at(path: &Path) {
    let listener = UnixListener::bind(path).expect("a socket");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(return_data(stream));
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn either_end_of_a_forwarding_can_be_a_unix_socket() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let [here, there, service, abandoned] = ["here", "there", "service", "abandoned"].map(path);
    echo_at(&service);
    // What a killed program leaves behind is no obstacle.
    drop(std::os::unix::net::UnixListener::bind(&abandoned).expect("a socket"));
    let options = ["there", "abandoned"].map(|name| format!("permit-listen={:?}", path(name)));
    let stage = Stage::new(options.join(",").leak()).await;
    let (tcp, port) = (echo().await, ports::own_port());
    let text = |at: &Path, to: &Path| format!("{}:{}", at.display(), to.display());
    let forwards = ClientForwards {
        local: vec![
            forward(format!("{}:localhost:{tcp}", here.display())),
            forward(format!("{port}:{}", service.display())),
        ],
        remote: vec![forward(text(&there, &service)), forward(text(&abandoned, &service))],
        ..ClientForwards::default()
    };
    let (stop, notices, running) = stage.client_at(stage.address.port(), forwards).await;
    for _ in 0..4 {
        let notice = tokio::task::block_in_place(|| notices.recv_timeout(TIMEOUT));
        assert_eq!(notice.expect("a notice").event, "listening");
    }
    for socket in [&here, &there, &abandoned] {
        let mode = std::fs::metadata(socket).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", socket.display());
        converse(UnixStream::connect(socket).await.expect("it listens"), 100_000).await;
    }
    let client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("it listens");
    converse(client, 100_000).await;
    stop.cancel();
    wait(running).await.expect("no panic").expect("it ends");
    // The server removes its own once the session is over.
    for socket in [&here, &there, &abandoned] {
        while socket.exists() {
            tokio::task::yield_now().await;
        }
    }
    assert!(service.exists(), "it is somebody else's");
}

#[tokio::test(flavor = "multi_thread")]
async fn unix_sockets_need_a_permission_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let [service, there] = ["service", "there"].map(|name| directory.path().join(name));
    echo_at(&service);
    let stage = Stage::new(r#"permit-open="*:*""#).await;
    let here = ports::own_port();
    let local = vec![forward(format!("{here}:{}", service.display()))];
    let (stop, notices) = stage.client(ClientForwards { local, ..ClientForwards::default() }).await;
    // It may be reset before it knows that it was accepted.
    if let Ok(mut client) = TcpStream::connect((Ipv4Addr::LOCALHOST, here)).await {
        let _ = wait(client.read_to_end(&mut Vec::new())).await;
    }
    let refused = notices.iter().find(|notice| notice.event == "refused").expect("a notice");
    assert!(refused.text.contains("permit-open"), "{refused:?}");
    stop.cancel();
    let remote = vec![forward(format!("{}:{}", there.display(), service.display()))];
    let (_, _, running) = stage
        .client_at(stage.address.port(), ClientForwards { remote, ..ClientForwards::default() })
        .await;
    let refused = wait(running).await.expect("no panic").expect_err("it may not listen there");
    assert!(
        matches!(&refused, TunnelError::Refused { text, .. } if text.contains("permit-listen")),
        "{refused}"
    );
    assert!(!there.exists());
}
