//! Tunnels from the point of view of programs, on loopback.

mod datagrams;
mod line;
mod messages;
mod packets;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
mod proxied;
mod restarts;
mod shares;
#[path = "../../../proxy/tests/stage/mod.rs"]
mod stage;
mod unix;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use eyas::race::candidate::{Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetHost};
use eyas::{
    Endpoint, KeyFingerprint, ListenParameters, Listener, SecurityParameters, ServerIdentity,
};
use eyas_sctp_tokio::protocol::config::AssociationConfig;
use eyas_tunnel::ALPN;
use eyas_tunnel::TunnelInterface;
use eyas_tunnel::keys::AuthorizedKeys;
use eyas_tunnel::{
    ClientForwards, CurrentSessions, ProbingTimes, ServerProxy, ServerTunnel, TunnelClient,
    TunnelError, TunnelNotice, TunnelServer, reach,
};
use eyas_tunnel::{ServerLimits, SessionLimits};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::line::{Line, forward_tcp, forward_udp};

/// Long enough for anything here; what takes longer has hung.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The pause between two attempts over transports with streams.
const PROBE: Duration = Duration::from_millis(50);

const ALL: [Transport; 3] = [Transport::Tcp, Transport::Quic, Transport::SctpUdp];

async fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("it takes too long")
}

/// A server, and two keys: its own, and that of a client with permissions.
struct Stage {
    server: ServerIdentity,
    client: ServerIdentity,
    address: SocketAddr,
    /// The port of SCTP inside UDP, as clients know it.
    sctp_port: u16,
    /// The configuration of clients' associations.
    association: AssociationConfig,
    options: &'static str,
    /// Other lines of `authorized_keys`.
    others: String,
    interface: Option<TunnelInterface>,
    total_limits: ServerLimits,
    sessions: CurrentSessions,
    running: Option<(JoinHandle<()>, CancellationToken)>,
}

impl Stage {
    async fn new(options: &'static str) -> Self {
        let made = |name: &str| ServerIdentity::self_signed([name]).expect("an identity");
        let mut stage = Self {
            server: made("server.test"),
            client: made("client.test"),
            address: (Ipv4Addr::LOCALHOST, ports::own_port()).into(),
            sctp_port: ports::own_port(),
            association: AssociationConfig::default(),
            options,
            others: String::new(),
            interface: None,
            total_limits: ServerLimits::default(),
            sessions: CurrentSessions::default(),
            running: None,
        };
        stage.start().await;
        stage
    }

    /// Restarts the server with an interface and further keys.
    async fn with_interface(mut self, interface: TunnelInterface, others: String) -> Self {
        self.stop().await;
        (self.interface, self.others) = (Some(interface), others);
        self.start().await;
        self
    }

    async fn start(&mut self) {
        let key = KeyFingerprint::from_certificate(self.client.certificate()).expect("a key");
        let text = format!("{} {key} ada\n{}", self.options, self.others);
        let keys = AuthorizedKeys::parse(&text).expect("keys");
        let known = keys.clone();
        let parameters = ListenParameters::new(self.address)
            .transports(ALL)
            .security(self.server.clone())
            .client_keys(move |key| known.grant(key).is_some())
            .sctp_encapsulation_port(self.sctp_port)
            .with_alpn([ALPN]);
        let listener = wait(async {
            // The server before this one may not have closed its sockets yet.
            loop {
                match Listener::bind(parameters.clone()).await {
                    Ok(listener) => return listener,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        })
        .await;
        let endpoint = Endpoint::builder().build().expect("an endpoint");
        let mut server = TunnelServer::new(endpoint, move |key| keys.grant(key).cloned(), |_| {})
            .total_limits(&self.total_limits);
        if let Some(interface) = &self.interface {
            server = server.interface(interface.clone());
        }
        self.sessions = server.sessions();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let running = tokio::spawn(async move { server.serve(&listener, stopped).await });
        self.running = Some((running, stop));
    }

    async fn stop(&mut self) {
        let (running, stop) = self.running.take().expect("it runs");
        stop.cancel();
        wait(running).await.expect("it stops");
    }

    /// Returns an endpoint that presents one key, and trusts the other.
    fn endpoint(&self, own: &ServerIdentity, trusted: &ServerIdentity) -> Endpoint {
        let key = KeyFingerprint::from_certificate(trusted.certificate()).expect("a key");
        let security = SecurityParameters::platform()
            .with_client_certificate(own.chain().to_vec(), own.private_key())
            .with_pinned_keys([key])
            .without_resumption();
        let builder = Endpoint::builder().security(security);
        let builder = builder.sctp_association(self.association.clone());
        builder.sctp_encapsulation_port(self.sctp_port).build().expect("an endpoint")
    }

    fn target(&self, transports: &[Transport]) -> (Target, Policy) {
        let host = TargetHost::Literal(self.address.ip(), 0);
        let (transports, port) = (transports.to_vec(), self.address.port());
        let target = Target::plain(host, port, transports.clone(), Security::Tls).with_alpn([ALPN]);
        (target, Policy { transports, ..Policy::default() })
    }

    async fn tunnel(&self, over: &[Transport]) -> Result<ServerTunnel, TunnelError> {
        let endpoint = self.endpoint(&self.client, &self.server);
        let (target, policy) = self.target(over);
        let (stream, key) = wait(reach(&endpoint, &target, &policy, None)).await?;
        assert_eq!(Some(key), KeyFingerprint::from_certificate(self.server.certificate()));
        let limits = SessionLimits { drain: TIMEOUT, ..SessionLimits::default() };
        wait(ServerTunnel::begin(stream, limits)).await
    }

    /// Starts a client with these forwardings, and returns its notices.
    async fn client(
        &self,
        forwards: ClientForwards,
    ) -> (CancellationToken, Receiver<TunnelNotice>) {
        let (stop, notices, _) = self.client_at(self.address.port(), forwards).await;
        (stop, notices)
    }

    /// Starts a client that connects to this port, and also returns its task.
    async fn client_at(
        &self,
        port: u16,
        forwards: ClientForwards,
    ) -> (CancellationToken, Receiver<TunnelNotice>, JoinHandle<Result<(), TunnelError>>) {
        let (stop, notices, running, _) = self.client_over(port, &[Transport::Tcp], forwards).await;
        (stop, notices, running)
    }

    /// Starts a client that uses these transports, and also returns its sessions.
    async fn client_over(
        &self,
        port: u16,
        transports: &[Transport],
        forwards: ClientForwards,
    ) -> (
        CancellationToken,
        Receiver<TunnelNotice>,
        JoinHandle<Result<(), TunnelError>>,
        CurrentSessions,
    ) {
        self.client_through(None, (port, transports), forwards).await
    }

    /// Starts a client, perhaps through a proxy.
    async fn client_through(
        &self,
        proxy: Option<ServerProxy>,
        (port, transports): (u16, &[Transport]),
        forwards: ClientForwards,
    ) -> (
        CancellationToken,
        Receiver<TunnelNotice>,
        JoinHandle<Result<(), TunnelError>>,
        CurrentSessions,
    ) {
        let endpoint = self.endpoint(&self.client, &self.server);
        let (mut target, policy) = self.target(transports);
        target.port = port;
        let reached = wait(reach(&endpoint, &target, &policy, proxy.as_ref())).await;
        let (stream, _) = reached.expect("a server");
        let first =
            wait(ServerTunnel::begin(stream, SessionLimits::default())).await.expect("a session");
        let (sender, notices) = channel();
        let probing = ProbingTimes { first: PROBE, longest: PROBE };
        let client =
            TunnelClient::new(endpoint, (target, policy), forwards, probing, move |notice| {
                // The test may be over already.
                let _ = sender.send(notice);
            });
        let client = client.expect("a client");
        let client = match proxy {
            Some(proxy) => client.proxy(proxy),
            None => client,
        };
        let sessions = client.sessions();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let running = tokio::spawn(async move { client.run(first, stopped).await });
        (stop, notices, running, sessions)
    }
}

/// Starts a server that returns the data of each client after its end.
async fn echo() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(return_data(stream));
        }
    });
    port
}

/// Returns what a client has sent, once it has ended.
async fn return_data(mut client: impl AsyncRead + AsyncWrite + Unpin) {
    let mut sent = Vec::new();
    client.read_to_end(&mut sent).await.expect("reads");
    client.write_all(&sent).await.expect("writes");
}

/// Sends this much data to an echo server, and checks what it returns.
async fn converse(stream: impl AsyncRead + AsyncWrite, length: usize) {
    let sent: Vec<u8> =
        (0..length).map(|place| (place / 251) as u8 ^ (place % 251) as u8).collect();
    let (mut read, mut write) = tokio::io::split(stream);
    let mut received = Vec::new();
    let sends = async {
        write.write_all(&sent).await.expect("writes");
        write.shutdown().await.expect("ends");
    };
    let receives = async { read.read_to_end(&mut received).await.expect("reads") };
    wait(async { tokio::join!(sends, receives) }).await;
    assert!(received == sent, "{} bytes of {} arrived", received.len(), sent.len());
}

fn forward(text: String) -> eyas_tunnel::forward::PortForward {
    text.parse().expect("a forwarding")
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_over_every_transport() {
    let (stage, port) = (Stage::new("").await, echo().await);
    for transport in ALL {
        let tunnel = stage.tunnel(&[transport]).await.expect("a session");
        let to = || eyas_tunnel::forward::destination(&format!("127.0.0.1:{port}"));
        let one = wait(tunnel.open(to().expect("valid"))).await.expect("a channel");
        let other = wait(tunnel.open(to().expect("valid"))).await.expect("a channel");
        tokio::join!(converse(one, 5_000_000), converse(other, 10));
        wait(tunnel.end()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn local_remote_and_dynamic_forwardings_work() {
    let (stage, port) = (Stage::new("").await, echo().await);
    let (here, there, socks) = (ports::own_port(), ports::own_port(), ports::own_port());
    let forwards = ClientForwards {
        local: vec![forward(format!("{here}:localhost:{port}"))],
        remote: vec![forward(format!("{there}:127.0.0.1:{port}"))],
        dynamic: vec![socks.to_string().parse().expect("a port")],
        ..ClientForwards::default()
    };
    let (stop, notices) = stage.client(forwards).await;
    for _ in 0..3 {
        let notice =
            tokio::task::block_in_place(|| notices.recv_timeout(TIMEOUT)).expect("a notice");
        assert_eq!(notice.event, "listening", "{notice:?}");
    }
    for port in [here, there] {
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("it listens");
        converse(client, 100_000).await;
    }
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, socks)).await.expect("it listens");
    let mut request = b"\x05\x01\x00\x05\x01\x00\x03\x09localhost".to_vec();
    request.extend(port.to_be_bytes());
    client.write_all(&request).await.expect("writes");
    let mut reply = [0; 12];
    wait(client.read_exact(&mut reply)).await.expect("a reply");
    assert_eq!(reply[..4], [5, 0, 5, 0]);
    converse(client, 100_000).await;
    stop.cancel();
}

//= hostile tunnel
//# a key used for more than its line permits
//= bound: the line
#[tokio::test(flavor = "multi_thread")]
async fn a_key_may_only_do_what_its_line_permits() {
    let stage = Stage::new(r#"permit-open="localhost:1",permit-listen="none""#).await;
    let port = echo().await;
    let tunnel = stage.tunnel(&[Transport::Quic]).await.expect("a session");
    for to in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        let to = eyas_tunnel::forward::destination(&to).expect("valid");
        let refused = wait(tunnel.open(to)).await.err().expect("not allowed");
        assert!(refused.to_string().contains("permit-open"), "{refused}");
    }
    let to = eyas_tunnel::forward::destination("localhost:1").expect("valid");
    let refused = wait(tunnel.open(to)).await.err().expect("nothing listens there");
    assert!(!refused.to_string().contains("permit-open"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_is_refused_and_another_server_is_not_trusted() {
    let stage = Stage::new("").await;
    let other = ServerIdentity::self_signed(["other.test"]).expect("an identity");
    for transport in ALL {
        let (target, policy) = stage.target(&[transport]);
        let unknown = stage.endpoint(&other, &stage.server);
        let refused = match wait(reach(&unknown, &target, &policy, None)).await {
            // In TLS 1.3 the client's handshake completes before the server has checked its certificate.
            Ok((stream, _)) => {
                wait(ServerTunnel::begin(stream, SessionLimits::default())).await.err()
            }
            Err(error) => Some(error),
        };
        let refused = refused.expect("an unknown key");
        let is_expected = match transport {
            Transport::SctpUdp => matches!(refused, TunnelError::NotAccepted(_)),
            _ => matches!(refused, TunnelError::NotAccepted(_) | TunnelError::Connect(_)),
        };
        assert!(is_expected, "{transport}: {refused}");
        let with_other_roots = stage.endpoint(&stage.client, &other);
        let refused =
            wait(reach(&with_other_roots, &target, &policy, None)).await.expect_err("no trust");
        let TunnelError::Connect(error) = refused else { panic!("{transport}: {refused}") };
        let (_, failure) = error.certificate().expect("it is the certificate");
        assert!(failure.detail.contains("SHA256:"), "{transport}: {failure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_is_reported_and_reestablished() {
    let (mut stage, port) = (Stage::new("").await, echo().await);
    let (here, other) = (ports::own_port(), ports::own_port());
    let (answers, _ends) = destination().await;
    let local = [(here, port), (other, answers)]
        .map(|(at, to)| forward(format!("127.0.0.1:{at}:127.0.0.1:{to}")))
        .to_vec();
    let (stop, notices) = stage.client(ClientForwards { local, ..ClientForwards::default() }).await;
    let client = || TcpStream::connect((Ipv4Addr::LOCALHOST, here));
    converse(client().await.expect("it listens"), 1000).await;
    let mut open = TcpStream::connect((Ipv4Addr::LOCALHOST, other)).await.expect("it listens");
    open.write_all(b"half a sentence").await.expect("writes");
    wait(open.read_u8()).await.expect("in time");
    stage.stop().await;
    let cut = wait(open.read_to_end(&mut Vec::new())).await.expect_err("a reset, not an end");
    assert_eq!(cut.kind(), std::io::ErrorKind::ConnectionReset);
    stage.start().await;
    // Programs that connect meanwhile wait for the next session.
    converse(client().await.expect("it listens"), 1000).await;
    let events: Vec<_> = notices.try_iter().map(|notice| notice.event).collect();
    assert!(events.contains(&"disconnected") && events.contains(&"connected"), "{events:?}");
    stop.cancel();
}

/// The result with which a destination reads the end of a connection, after the first byte.
async fn destination() -> (u16, tokio::sync::mpsc::Receiver<std::io::Result<usize>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
    let port = listener.local_addr().expect("an address").port();
    let (sender, ends) = tokio::sync::mpsc::channel(4);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                stream.read_u8().await.expect("the first byte");
                stream.write_u8(1).await.expect("writes");
                let end = stream.read_to_end(&mut Vec::new()).await;
                sender.send(end).await.expect("the test listens");
            });
        }
    });
    (port, ends)
}

//= hostile tunnel
//# truncation that looks like an end
//= bound: a reset, unless the stream was complete
#[tokio::test(flavor = "multi_thread")]
async fn a_destination_gets_a_reset_unless_the_stream_was_complete() {
    let mut stage = Stage::new("").await;
    let (port, mut ends) = destination().await;
    let to = eyas_tunnel::forward::destination(&format!("127.0.0.1:{port}")).expect("valid");
    let is_reset = |end: Option<std::io::Result<usize>>| {
        let error = end.expect("an end").expect_err("not as if everything had been sent");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    };
    for transport in ALL {
        let tunnel = stage.tunnel(&[transport]).await.expect("a session");
        let mut channels = Vec::new();
        for _ in 0..3 {
            let mut channel = wait(tunnel.open(to.clone())).await.expect("a channel");
            channel.write_all(b"x").await.expect("writes");
            wait(channel.read_u8()).await.expect("in time");
            channels.push(channel);
        }
        let mut whole = channels.pop().expect("one");
        whole.shutdown().await.expect("ends");
        assert_eq!(wait(whole.read_to_end(&mut Vec::new())).await.expect("an end"), 0);
        assert_eq!(wait(ends.recv()).await.expect("an end").expect("as it should"), 0);
        drop(channels.pop());
        is_reset(wait(ends.recv()).await);
        // The last one ends with the session, or with the server.
        match transport {
            Transport::Tcp => stage.stop().await,
            _ => wait(tunnel.end()).await,
        }
        is_reset(wait(ends.recv()).await);
        if transport == Transport::Tcp {
            stage.start().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnected_client_gets_its_ports_back_and_an_active_one_keeps_them() {
    let (stage, port) = (Stage::new("").await, echo().await);
    let there = ports::own_port();
    let forwards = || ClientForwards {
        remote: vec![forward(format!("{there}:127.0.0.1:{port}"))],
        ..ClientForwards::default()
    };
    let listens = |notices: &Receiver<TunnelNotice>| {
        let notice =
            tokio::task::block_in_place(|| notices.recv_timeout(TIMEOUT)).expect("a notice");
        assert_eq!(notice.event, "listening", "{notice:?}");
    };
    let line = Line::to(stage.address).await;
    let (former_stop, notices, _former) = stage.client_at(line.port, forwards()).await;
    listens(&notices);
    let (_stop, _, second) = stage.client_at(stage.address.port(), forwards()).await;
    let refused = wait(second).await.expect("it ends").expect_err("the port is in use");
    assert!(matches!(refused, TunnelError::Refused { .. }), "{refused}");
    let client = TcpStream::connect((Ipv4Addr::LOCALHOST, there)).await.expect("it listens");
    converse(client, 1000).await;
    line.go_silent().await;
    let (stop, notices) = stage.client(forwards()).await;
    listens(&notices);
    let client = TcpStream::connect((Ipv4Addr::LOCALHOST, there)).await.expect("it listens");
    converse(client, 1000).await;
    former_stop.cancel();
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_have_streams_of_their_own_where_the_transport_has_streams() {
    let (stage, port) = (Stage::new("").await, echo().await);
    let to = eyas_tunnel::forward::destination(&format!("127.0.0.1:{port}")).expect("valid");
    for transport in ALL {
        let tunnel = stage.tunnel(&[transport]).await.expect("a session");
        let mut channels = Vec::new();
        for wanted in 2..8 {
            // Another one is opened whenever all are in use.
            let is_ready = async {
                while transport != Transport::Tcp && tunnel.streams() < wanted {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            wait(is_ready).await;
            channels.push(wait(tunnel.open(to.clone())).await.expect("a channel"));
        }
        futures_util::future::join_all(channels.into_iter().map(|one| converse(one, 300_000)))
            .await;
        match transport {
            Transport::Tcp => assert_eq!(tunnel.streams(), 1),
            _ => assert!((7..10).contains(&tunnel.streams()), "{}", tunnel.streams()),
        }
        wait(tunnel.end()).await;
    }
}

/// Starts a destination that sends nothing, and returns how much it receives until the end.
async fn discarding_server() -> (u16, JoinHandle<std::io::Result<usize>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
    let port = listener.local_addr().expect("an address").port();
    let received = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        stream.shutdown().await?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await
    });
    (port, received)
}

#[tokio::test(flavor = "multi_thread")]
async fn data_sent_before_the_end_arrives_over_every_transport() {
    const LENGTH: usize = 1_000_000;
    let stage = Stage::new("").await;
    for transport in ALL {
        let tunnel = stage.tunnel(&[transport]).await.expect("a session");
        let (port, received) = discarding_server().await;
        let to = eyas_tunnel::forward::destination(&format!("127.0.0.1:{port}"));
        let mut channel = wait(tunnel.open(to.expect("valid"))).await.expect("a channel");
        wait(channel.read_to_end(&mut Vec::new())).await.expect("it sends nothing");
        wait(channel.write_all(&vec![7; LENGTH])).await.expect("writes");
        wait(channel.shutdown()).await.expect("ends");
        // The last data still waits to be sent.
        drop(channel);
        wait(tunnel.end()).await;
        let received = wait(received).await.expect("it runs").expect("an end, not a reset");
        assert_eq!(received, LENGTH, "{transport}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_channels_move_to_a_transport_with_streams_and_open_ones_stay() {
    let (stage, port) = (Stage::new("").await, echo().await);
    let (middlebox, here, there) = (ports::own_port(), ports::own_port(), ports::own_port());
    forward_tcp(middlebox, stage.address).await;
    let forwards = ClientForwards {
        local: vec![forward(format!("127.0.0.1:{here}:127.0.0.1:{port}"))],
        remote: vec![forward(format!("{there}:127.0.0.1:{port}"))],
        ..ClientForwards::default()
    };
    let both = [Transport::Quic, Transport::Tcp];
    let (stop, notices, running, sessions) = stage.client_over(middlebox, &both, forwards).await;
    let until = |event: &str| {
        tokio::task::block_in_place(|| {
            while notices.recv_timeout(TIMEOUT).expect("a notice").event != event {}
        });
    };
    let at = |port| async move {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("it listens")
    };
    // There are two listeners, one at each end.
    until("listening");
    until("listening");
    let (mut open, mut served) = (at(here).await, at(there).await);
    open.write_all(b"said before, ").await.expect("writes");
    served.write_all(b"said before, ").await.expect("writes");
    let sessions_by_transport = || {
        let read = sessions.read();
        read.iter().map(|one| (one.transport, one.channels)).collect::<Vec<_>>()
    };
    wait(async {
        // The channel of the listener, and two connections.
        while sessions_by_transport() != [(Transport::Tcp, 3)] {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;

    forward_udp(middlebox, stage.address).await;
    until("moved");
    until("listening");
    converse(at(here).await, 100_000).await;
    converse(at(there).await, 100_000).await;
    let read = sessions_by_transport();
    assert!(read.contains(&(Transport::Tcp, 2)), "{read:?}");
    assert!(read.iter().any(|(transport, _)| *transport == Transport::Quic), "{read:?}");

    for mut stream in [open, served] {
        stream.write_all(b"and after").await.expect("writes");
        stream.shutdown().await.expect("ends");
        let mut received = String::new();
        wait(stream.read_to_string(&mut received)).await.expect("reads");
        assert_eq!(received, "said before, and after");
    }
    wait(async {
        while sessions_by_transport().iter().any(|(transport, _)| *transport == Transport::Tcp) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    stop.cancel();
    wait(running).await.expect("it ends").expect("it was stopped");
}
