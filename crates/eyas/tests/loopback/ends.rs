//! The matrix of ends: one program over every transport and security. What was written before a
//! shutdown arrives, whoever ends first, although the connection is dropped at once.

use eyas::race::candidate::{Security, Transport};
use eyas::race::policy::{Policy, SctpSecurity};
use eyas::race::target::{Target, TargetHost};
use eyas::{Connection, Endpoint, ListenParameters, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{self, NAME, builder_for, wait};

/// A transport with its security.
#[derive(Clone, Copy, Debug)]
struct Row {
    transport: Transport,
    security: Security,
    is_dtls: bool,
}

const fn row(transport: Transport, security: Security) -> Row {
    Row { transport, security, is_dtls: false }
}

/// Where the kernel has no MPTCP, its rows are TCP.
const ROWS: [Row; 8] = [
    row(Transport::Tcp, Security::None),
    row(Transport::Tcp, Security::Tls),
    row(Transport::Mptcp, Security::None),
    row(Transport::Mptcp, Security::Tls),
    row(Transport::Quic, Security::Tls),
    row(Transport::SctpUdp, Security::None),
    row(Transport::SctpUdp, Security::Tls),
    Row { transport: Transport::SctpUdp, security: Security::Tls, is_dtls: true },
];

/// From one packet to more than any buffer on the way.
const SIZES: [usize; 3] = [100, 64 * 1024, 3_000_000];

/// How the last data goes one way.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Neither side has ended before.
    Open,
    /// The reader has ended its side, which the writer has read.
    ReaderFirst,
    /// The reader has ended its side, which the writer does not read.
    ReaderFirstUnread,
    /// The reader sends data that the writer never reads, for which a kernel would reset a TCP
    /// connection (RFC 2525 §2.17).
    Unread,
}

const ENDS: [End; 4] = [End::Open, End::ReaderFirst, End::ReaderFirstUnread, End::Unread];

struct Scene {
    listener: Listener,
    endpoint: Endpoint,
    target: Target,
    policy: Policy,
}

impl Scene {
    async fn new(row: Row) -> Self {
        let identity = common::identity();
        let mut parameters = ListenParameters::new(common::own_address())
            .transports(match row.transport {
                Transport::Mptcp => vec![Transport::Mptcp, Transport::Tcp],
                other => vec![other],
            })
            .sctp_encapsulation_port(0);
        if row.security != Security::None {
            parameters = parameters.security(identity.clone());
        }
        if row.transport == Transport::Quic {
            parameters = parameters.with_alpn(["ends"]);
        }
        let listener = Listener::bind(parameters).await.unwrap();
        let port = listener.local_addr().port();
        let udp = listener.sctp().map_or(1, |sctp| sctp.encapsulation_port().unwrap());
        let endpoint = builder_for(std::slice::from_ref(&identity), port)
            .sctp_encapsulation_port(udp)
            .mptcp(row.transport == Transport::Mptcp)
            .build()
            .unwrap();
        let transports = match row.transport {
            Transport::Mptcp => vec![Transport::Mptcp, Transport::Tcp],
            other => vec![other],
        };
        let mut target =
            Target::plain(TargetHost::Name(NAME.into()), port, transports.clone(), row.security);
        if row.transport == Transport::Quic
            && let eyas::race::target::TargetService::Plain { alpn, .. } = &mut target.service
        {
            *alpn = vec!["ends".into()];
        }
        let sctp_security = if row.is_dtls { SctpSecurity::Dtls } else { SctpSecurity::default() };
        let policy = Policy { transports, sctp_security, ..Policy::default() };
        Self { listener, endpoint, target, policy }
    }

    /// Returns a connection whose stream is open at both ends: the client's, the server's.
    async fn pair(&self) -> (Connection, Connection) {
        let connecting =
            self.endpoint.preconnection(self.target.clone()).policy(self.policy.clone());
        let client = async {
            let mut client = connecting.connect().await.unwrap();
            client.write_all(b"!").await.unwrap();
            client.flush().await.unwrap();
            client
        };
        let server = async {
            loop {
                let mut server = self.listener.accept().await;
                match server.read_u8().await {
                    Ok(byte) => {
                        assert_eq!(byte, b'!');
                        return server;
                    }
                    // On a busy machine a second candidate connects too, and loses.
                    Err(lost) => tracing::debug!(%lost, "not the winner"),
                }
            }
        };
        wait(async { tokio::join!(client, server) }).await
    }
}

fn data(size: usize) -> Vec<u8> {
    (0..size).map(|n| (n * 7 % 251) as u8).collect()
}

/// The writer writes, shuts down and is dropped; returns what the reader has read.
async fn last_words(end: End, size: usize, mut writer: Connection, mut reader: Connection) -> bool {
    match end {
        End::Open => {}
        End::ReaderFirst => {
            reader.shutdown().await.unwrap();
            assert_eq!(writer.read(&mut [0; 8]).await.unwrap(), 0);
        }
        End::ReaderFirstUnread => reader.shutdown().await.unwrap(),
        End::Unread => {
            reader.write_all(b"never read").await.unwrap();
            reader.flush().await.unwrap();
        }
    }
    let write = tokio::spawn(async move {
        writer.write_all(&data(size)).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    if size < 1000 {
        // It is gone before the peer reads.
        write.await.unwrap();
    }
    let mut read = Vec::new();
    let outcome = reader.read_to_end(&mut read).await;
    if outcome.is_err() || read != data(size) {
        eprintln!("{end:?}: {} of {size} bytes, {outcome:?}", read.len());
        return false;
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_before_the_end_arrives_over_everything() {
    let mut lost = Vec::new();
    for row in ROWS {
        let scene = Scene::new(row).await;
        for end in ENDS {
            for size in SIZES {
                for client_writes in [true, false] {
                    let (client, server) = scene.pair().await;
                    let (writer, reader) =
                        if client_writes { (client, server) } else { (server, client) };
                    if !wait(last_words(end, size, writer, reader)).await {
                        lost.push((row, end, size, client_writes));
                    }
                }
            }
        }
        wait(scene.endpoint.connections_ended()).await;
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

/// More than all buffers on the way, and what is discarded, but less than is read within a second.
const MUCH: usize = 64 * 1024 * 1024;

//= hostile client
//# sending for ever on a connection that was dropped
//= bound: `MAX_DISCARDED`, `TCP_LINGER`, `MAX_LINGERING`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_sends_for_ever_is_not_read_for_ever() {
    for row in ROWS {
        let scene = Scene::new(row).await;
        let (mut client, mut server) = scene.pair().await;
        client.write_all(b"the last words").await.unwrap();
        client.shutdown().await.unwrap();
        drop(client);
        let endless = async {
            let mut written = 0;
            while written < MUCH && server.write_all(&[0; 65_536]).await.is_ok() {
                written += 65_536;
            }
            written
        };
        let written = wait(endless).await;
        assert!(written < MUCH, "{row:?}: {written} bytes were accepted");
    }
}
