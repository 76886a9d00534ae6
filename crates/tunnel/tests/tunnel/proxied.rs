//! Sessions through an HTTP proxy.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::{Endpoint, KeyFingerprint, Resolver, SecurityParameters, ServerIdentity};
use eyas_http::Versions;
use eyas_proxy::users::ProxyUsers;
use eyas_proxy::{ClientEnding, Proxy, ProxyLimits, RunningProxy};
use eyas_relay::destination::Destination;
use eyas_relay::via::UpstreamProxy;
use eyas_tunnel::SessionLimits;
use eyas_tunnel::{
    ClientForwards, ProxyFault, ServerProxy, ServerTunnel, TunnelError, TunnelNotice, reach,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::packets::{Wire, packet};
use crate::restarts::Middlebox;
use crate::stage::Stage as ProxyStage;
use crate::{Stage, TIMEOUT, converse, echo, forward, ports, wait};

/// Names the server's port at 127.0.0.1, which only the proxy resolves.
const SERVER: &str = "gate.test";

fn system() -> Endpoint {
    Endpoint::builder().build().expect("an endpoint")
}

/// Returns an endpoint that resolves this name to 127.0.0.1.
fn resolving(name: &str, port: u16, security: SecurityParameters) -> Endpoint {
    let local = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
    let resolver = Resolver::system().overriding(name, port, local);
    Endpoint::builder().resolver(resolver).security(security).build().expect("an endpoint")
}

fn users() -> ProxyUsers {
    ProxyUsers::parse("ada:love:lace\n").expect("users")
}

impl Stage {
    /// Starts a proxy for ada that resolves the name of the server, with TLS if there is an identity.
    fn proxy(&self, identity: Option<ServerIdentity>) -> ProxyStage {
        let platform = SecurityParameters::platform();
        let endpoint = resolving(SERVER, self.address.port(), platform);
        ProxyStage::new(endpoint, |proxy| {
            let proxy = proxy.users(users());
            match identity {
                Some(identity) => proxy.security(identity),
                None => proxy,
            }
        })
    }

    fn destination(&self) -> Destination {
        let host = eyas::race::target::TargetHost::parse(SERVER).expect("a name");
        Destination::new(host, self.address.port())
    }

    /// Returns the way to the server through the proxy at this URL.
    fn through(&self, url: &str) -> ServerProxy {
        ServerProxy::new(UpstreamProxy::parse(url).expect("a proxy"), system(), self.destination())
    }

    /// Begins a session through a proxy; connecting may take this long.
    async fn session(
        &self,
        proxy: &ServerProxy,
        within: Duration,
    ) -> Result<ServerTunnel, TunnelError> {
        let endpoint = self.endpoint(&self.client, &self.server);
        let (target, mut policy) = self.target(&[Transport::Tcp]);
        policy.deadline = within;
        let (stream, key) = wait(reach(&endpoint, &target, &policy, Some(proxy))).await?;
        assert_eq!(Some(key), KeyFingerprint::from_certificate(self.server.certificate()));
        wait(ServerTunnel::begin(stream, SessionLimits::default())).await
    }
}

/// The message that the next such event comes with.
fn text_of(event: &str, notices: &Receiver<TunnelNotice>) -> String {
    tokio::task::block_in_place(|| {
        loop {
            let notice = notices.recv_timeout(TIMEOUT).expect("a notice");
            if notice.event == event {
                return notice.text;
            }
        }
    })
}

async fn connect(port: u16) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("it listens")
}

/// ```text
/// client ── TLS with the tunnel's keys, inside CONNECT of ada ──▶ proxy ──▶ gate.test
/// ```
#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_through_a_proxy_over_every_version_of_http() {
    let (stage, port) = (Stage::new("").await, echo().await);
    let identity = ServerIdentity::self_signed(["proxy.test"]).expect("an identity");
    let trusted = identity.certificate().clone();
    let (plain, secure) = (stage.proxy(None), stage.proxy(Some(identity)));
    let at = |proxy: &ProxyStage| proxy.running.local_addr().port();
    let security = SecurityParameters::platform().with_roots([trusted]);
    let trusting = resolving("proxy.test", at(&secure), security);
    let mut ways = vec![(
        format!("http://127.0.0.1:{}", at(&plain)),
        stage.through(&format!("http://ada:love%3Alace@127.0.0.1:{}", at(&plain))),
    )];
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let url = format!("https://ada:love%3Alace@proxy.test:{}", at(&secure));
        let via = UpstreamProxy::parse(&url).expect("a proxy").versions(versions);
        let way = ServerProxy::new(via, trusting.clone(), stage.destination());
        ways.push((format!("https://proxy.test:{}", at(&secure)), way));
    }
    for (number, (name, way)) in ways.iter().enumerate() {
        let (endpoint, (target, policy)) =
            (stage.endpoint(&stage.client, &stage.server), stage.target(&[Transport::Tcp]));
        let (stream, _) =
            wait(reach(&endpoint, &target, &policy, Some(way))).await.expect("a server");
        assert_eq!(stream.to_string(), format!("tcp through the proxy {name}"));
        let tunnel =
            wait(ServerTunnel::begin(stream, SessionLimits::default())).await.expect("accepted");
        let to = || eyas_tunnel::forward::destination(&format!("127.0.0.1:{port}"));
        let one = wait(tunnel.open(to().expect("valid"))).await.expect("a channel");
        let other = wait(tunnel.open(to().expect("valid"))).await.expect("a channel");
        tokio::join!(converse(one, 3_000_000), converse(other, 10));
        wait(tunnel.end()).await;
        let report = if number == 0 { plain.report().await } else { secure.report().await };
        assert_eq!(
            (report.user.as_deref(), &report.end),
            (Some("ada"), &ClientEnding::Done),
            "{name}"
        );
        assert!(report.sent > 3_000_000, "{report:?}");
    }
}

/// Starts a proxy at this port, as after a restart.
async fn proxy_at(port: u16) -> RunningProxy {
    wait(async {
        loop {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            // What is in progress is cut off.
            let limits = ProxyLimits { grace: Duration::ZERO, ..ProxyLimits::default() };
            match Proxy::builder(system()).limits(limits).listen(address).start() {
                Ok(running) => return running,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn forwardings_come_back_with_the_proxy() {
    let (stage, port) = (Stage::new("").await, echo().await);
    let (at, here, there, socks) =
        (ports::own_port(), ports::own_port(), ports::own_port(), ports::own_port());
    let running = proxy_at(at).await;
    let via = UpstreamProxy::parse(&format!("http://127.0.0.1:{at}")).expect("a proxy");
    let place = Destination::new(stage.target(&[]).0.host, stage.address.port());
    let proxy = ServerProxy::new(via, system(), place);
    let forwards = ClientForwards {
        local: vec![forward(format!("127.0.0.1:{here}:127.0.0.1:{port}"))],
        remote: vec![forward(format!("{there}:127.0.0.1:{port}"))],
        dynamic: vec![format!("127.0.0.1:{socks}").parse().expect("a port")],
        ..ClientForwards::default()
    };
    let way = (stage.address.port(), &[Transport::Tcp, Transport::Quic][..]);
    let (stop, notices, client, sessions) = stage.client_through(Some(proxy), way, forwards).await;
    for _ in 0..3 {
        text_of("listening", &notices);
    }
    let by_socks = async || {
        let mut program = connect(socks).await;
        let request = [&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes()].concat();
        program.write_all(&request).await.expect("writes");
        let mut reply = [0; 12];
        wait(program.read_exact(&mut reply)).await.expect("a reply");
        assert_eq!(reply[..4], [5, 0, 5, 0]);
        program
    };
    converse(connect(here).await, 100_000).await;
    converse(connect(there).await, 100_000).await;
    converse(by_socks().await, 100_000).await;
    let shown = sessions.read();
    let name = format!("the proxy http://127.0.0.1:{at}");
    assert_eq!(shown[0].proxy.as_deref(), Some(name.as_str()));
    // QUIC would be tried meanwhile, if it were not for the proxy.
    assert_eq!((shown.len(), shown[0].transport), (1, Transport::Tcp));

    running.shutdown().await;
    text_of("disconnected", &notices);
    let text = text_of("unreachable", &notices);
    assert!(text.contains(&name), "{text}");
    let running = proxy_at(at).await;
    // Programs that connect meanwhile wait for the next session.
    converse(connect(here).await, 100_000).await;
    let text = text_of("connected", &notices);
    assert!(text.contains(&name), "{text}");
    text_of("listening", &notices);
    converse(connect(there).await, 100_000).await;
    converse(by_socks().await, 100_000).await;
    stop.cancel();
    wait(client).await.expect("no panic").expect("it was stopped");
    running.shutdown().await;
}

/// Acknowledgements of the proxy are no signs of life of the server.
#[tokio::test(flavor = "multi_thread")]
async fn another_session_is_used_when_one_through_a_proxy_is_silent() {
    let (stage, port) = (Stage::new("").await, echo().await);
    let running = Proxy::builder(system()).start().expect("a proxy");
    for behind in [false, true] {
        let (middle, here) = (ports::own_port(), ports::own_port());
        let (url, server, middlebox) = match behind {
            // What goes silent is between the proxy and the server.
            true => {
                let middlebox = Middlebox::new(middle, stage.address).await;
                (running.local_addr(), middle, middlebox)
            }
            false => {
                let middlebox = Middlebox::new(middle, running.local_addr()).await;
                ((Ipv4Addr::LOCALHOST, middle).into(), stage.address.port(), middlebox)
            }
        };
        let via = UpstreamProxy::parse(&format!("http://{url}")).expect("a proxy");
        let place = Destination::new(stage.target(&[]).0.host, server);
        let proxy = ServerProxy::new(via, system(), place);
        let local = vec![forward(format!("127.0.0.1:{here}:127.0.0.1:{port}"))];
        let forwards = ClientForwards { local, ..ClientForwards::default() };
        let way = (stage.address.port(), &[Transport::Tcp][..]);
        let (stop, notices, client, _) = stage.client_through(Some(proxy), way, forwards).await;
        converse(connect(here).await, 1000).await;
        middlebox.forget();
        converse(connect(here).await, 1000).await;
        let text = text_of("replaced", &notices);
        assert!(text.contains("through the proxy"), "{text}");
        stop.cancel();
        wait(client).await.expect("no panic").expect("it was stopped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_go_through_a_proxy() {
    let (near, near_wire) = Wire::new(&["10.9.0.2/24"]);
    let (far, far_wire) = Wire::new(&["10.9.0.1/24"]);
    let stage = Stage::new(r#"permit-tun="10.9.0.2""#).await;
    let stage = stage.with_interface(far, String::new()).await;
    let proxy = stage.proxy(None);
    let url = format!("http://ada:love%3Alace@{}", proxy.running.local_addr());
    let forwards = ClientForwards { interface: Some(near), ..ClientForwards::default() };
    let way = (stage.address.port(), &[Transport::Tcp][..]);
    let through = Some(stage.through(&url));
    let (stop, _, client, _) = stage.client_through(through, way, forwards).await;
    let (there, back) =
        (packet("10.9.0.2", "10.9.0.1", b"there"), packet("10.9.0.1", "10.9.0.2", b"back"));
    near_wire.reaches(&far_wire, &there).await;
    far_wire.send(&back).await;
    near_wire.receives(&back).await;
    stop.cancel();
    wait(client).await.expect("no panic").expect("it was stopped");
}

/// Starts a server that answers whatever each client sends with this, and then closes the connection or does not.
async fn answering(answer: &'static [u8], closes: bool) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = client.read(&mut [0; 4096]).await;
                let _ = client.write_all(answer).await;
                if !closes {
                    let _ = client.read_to_end(&mut Vec::new()).await;
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    address
}

//= hostile tunnel
//# a proxy between the ends that lies
//= bound: `MAX_HEAD`, `MAX_TEXT`, `--connect-timeout`
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_does_not_lead_to_the_server_is_named_with_the_reason() {
    const LONG: &[u8] = &[b'x'; 100_000];
    let stage = Stage::new("").await;
    let forbidding: &[u8] = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 10\r\n\r\nno way out";
    let squid: &[u8] = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 15\r\n\r\n<!DOCTYPE html>";
    let wants_user: &[u8] = b"HTTP/1.1 407 Proxy Authentication Required\r\n\
        Proxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
    let away: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
    let granted: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
    let garbled: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nSSH-2.0-OpenSSH_9.2p1 no TLS at all\r\n";
    for (answer, closes, user, fault, words) in [
        (forbidding, false, "", ProxyFault::NotAllowed, "403 Forbidden: no way out"),
        (squid, false, "", ProxyFault::NotAllowed, "403 Forbidden"),
        (wants_user, false, "", ProxyFault::Unauthorized, "put NAME:PASSWORD@ before its host"),
        (wants_user, false, "ada:x@", ProxyFault::Unauthorized, "does not accept this NAME:PASSW"),
        (away, false, "", ProxyFault::Unreachable, "502 Bad Gateway"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", false, "", ProxyFault::Protocol, "does not answer"),
        (LONG, true, "", ProxyFault::Protocol, "does not answer"),
        (b"", true, "", ProxyFault::Unreachable, "does not answer"),
        (b"", false, "", ProxyFault::TimedOut, "1s"),
        (b"HTTP/1.1 200 OK\r\nX: ", false, "", ProxyFault::TimedOut, "1s"),
        (granted, true, "", ProxyFault::Unreachable, "then the TLS handshake failed"),
        (garbled, false, "", ProxyFault::Unreachable, "the peer does not speak TLS"),
        (granted, false, "", ProxyFault::TimedOut, "1s"),
    ] {
        let proxy = answering(answer, closes).await;
        let way = stage.through(&format!("http://{user}{proxy}"));
        let failed = stage.session(&way, Duration::from_secs(1)).await.expect_err(words);
        let TunnelError::Proxy { fault: found, text } = failed else { panic!("{words}: {failed}") };
        assert_eq!(found, fault, "{text}");
        let is_named = text.contains(&format!("the proxy http://{proxy}"));
        assert!(is_named && text.contains(words) && !text.contains("<!"), "{words}: {text}");
    }
    let too_old: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n\x15\x03\x01\x00\x02\x02\x46";
    let way = stage.through(&format!("http://{}", answering(too_old, false).await));
    let failed = stage.session(&way, TIMEOUT).await.expect_err("an alert");
    assert!(matches!(failed, TunnelError::Handshake(_)), "{failed}");
    assert!(failed.to_string().starts_with("through the proxy: "), "{failed}");
    for scheme in ["http", "https"] {
        let way = stage.through(&format!("{scheme}://127.0.0.1:{}", ports::own_port()));
        let failed = stage.session(&way, TIMEOUT).await.expect_err("nothing listens");
        let TunnelError::Proxy { fault: found, text } = failed else { panic!("{failed}") };
        let is_expected = found == ProxyFault::Unreachable;
        assert!(is_expected && text.contains("cannot reach the proxy"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_the_proxy_and_the_keys_of_both_ends_are_checked() {
    let mut stage = Stage::new("").await;
    let identity = ServerIdentity::self_signed(["proxy.test"]).expect("an identity");
    let (plain, secure) = (stage.proxy(None), stage.proxy(Some(identity)));
    let way = stage.through(&format!("https://ada:love%3Alace@{}", secure.running.local_addr()));
    let failed = stage.session(&way, TIMEOUT).await.expect_err("nobody trusts it");
    let is_named = failed.to_string().contains("the proxy https://127.0.0.1");
    assert!(is_named && failed.rejected_key().is_none(), "{failed}");
    assert!(
        matches!(failed, TunnelError::Proxy { fault: ProxyFault::Certificate, .. }),
        "{failed}"
    );

    let way = stage.through(&format!("http://ada:love%3Alace@{}", plain.running.local_addr()));
    let other = ServerIdentity::self_signed(["other.test"]).expect("an identity");
    let own = std::mem::replace(&mut stage.client, other.clone());
    let failed = stage.session(&way, TIMEOUT).await.expect_err("an unknown key");
    assert!(matches!(failed, TunnelError::NotAccepted(_)), "{failed}");
    (stage.client, stage.server) = (own, other);
    let failed = stage.session(&way, TIMEOUT).await.expect_err("another server");
    let rejected = failed.rejected_key().expect("it is the key");
    assert!(rejected.detail.contains("SHA256:"), "{rejected}");
}
