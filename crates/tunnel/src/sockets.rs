//! The sockets at the ends of channels: listeners, and connections to destinations.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas::host::unix_socket::UnixStream;
use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::race::target::TargetError;
use eyas::sockets::{self, StreamProtocol, WantedSockets};
use eyas::zone::parse_address;
use eyas::{ConnectionFeedback, Endpoint};
use eyas_relay::accept::accept_next;
use eyas_relay::copy::{self, ByteCounts, CopyEnd, CopyUntil};
use eyas_relay::destination::Destination;
use eyas_relay::permitted::PermittedRace;
use eyas_relay::rules::{ClientRules, DestinationRules};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::forward::{ListenAt, ListenPlace};
use crate::frame::{RefuseReason, UnixPath};
use crate::link::ChannelStream;
use crate::local::{LocalListener, LocalStream, end_when_dropped, reset_when_dropped};
use crate::notice::ThrottledWarnings;

/// The time for connecting to a destination.
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// The idle time after which a channel is reset. Keystrokes may be far apart.
const IDLE_TIME: Duration = Duration::from_hours(24);
/// The client's address for the rules. They must not forbid private destinations, which is up to the key.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Why it is impossible to listen.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct ListenError {
    text: String,
    /// Whether the address is in use.
    pub(crate) is_in_use: bool,
}

/// Listens at an address or a Unix socket, which has no port.
pub(crate) fn listen(at: &ListenAt) -> Result<(Vec<LocalListener>, u16), ListenError> {
    match at {
        ListenAt::Tcp(place) => {
            let (listeners, port) = listen_tcp(place)?;
            Ok((listeners.into_iter().map(LocalListener::Tcp).collect(), port))
        }
        ListenAt::Unix(path) => match LocalListener::unix(path) {
            Ok(listener) => Ok((vec![listener], 0)),
            Err(error) => {
                let is_in_use = error.kind() == std::io::ErrorKind::AddrInUse;
                let text = match is_in_use {
                    true => format!("{path} exists"),
                    false => format!("{path}: {error}"),
                };
                Err(ListenError { text, is_in_use })
            }
        },
    }
}

/// Listens at an address: without one, on loopback, in both families if possible.
fn listen_tcp(at: &ListenPlace) -> Result<(Vec<TcpListener>, u16), ListenError> {
    let (four, six) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let at_port = |ip: IpAddr| SocketAddr::new(ip, at.port);
    let tries: Vec<Vec<SocketAddr>> = match at.bind.as_str() {
        "" | "localhost" => {
            vec![vec![at_port(four), at_port(six)], vec![at_port(four)], vec![at_port(six)]]
        }
        "*" => vec![
            vec![at_port(Ipv6Addr::UNSPECIFIED.into())],
            vec![at_port(Ipv4Addr::UNSPECIFIED.into())],
        ],
        bind => {
            let unusable =
                |cause: TargetError| ListenError { text: cause.to_string(), is_in_use: false };
            vec![vec![parse_address(bind, at.port).map_err(unusable)?]]
        }
    };
    let wanted = WantedSockets { stream: Some(StreamProtocol::Tcp), udp: false };
    let mut why = ListenError { text: String::new(), is_in_use: false };
    for addresses in tries {
        match sockets::bind(&addresses, wanted) {
            Ok(bound) => {
                let port = bound.first().map_or(0, |one| one.address.port());
                return Ok((bound.into_iter().filter_map(|one| one.tcp).collect(), port));
            }
            // The machine may lack a family, but if the address is in use, other attempts do not help.
            Err(error) => {
                let is_in_use = error.source.kind() == std::io::ErrorKind::AddrInUse;
                why = ListenError { text: error.to_string(), is_in_use };
                if is_in_use {
                    break;
                }
            }
        }
    }
    Err(why)
}

/// A connection to the destination of a channel.
#[derive(Debug)]
pub(crate) struct ReachedDestination {
    stream: LocalStream,
    /// For the memory, if it was raced.
    feedback: Option<ConnectionFeedback>,
}

impl ReachedDestination {
    /// Forwards data between the destination and the channel.
    pub(crate) async fn forward(self, channel: ChannelStream) {
        // Data sent on the channel comes from the destination.
        let counts = forward(self.stream, channel).await;
        if let Some(feedback) = self.feedback.filter(|_| counts.sent > 0) {
            feedback.first_byte_seen();
        }
    }
}

/// Connects to the destination of a channel.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    rules: &Arc<DestinationRules>,
    to: &Destination,
) -> Result<ReachedDestination, (RefuseReason, String)> {
    let to = &to.on_this_host().map_err(|cause| (RefuseReason::Failed, cause.to_string()))?;
    let policy =
        Policy { transports: vec![Transport::Tcp], deadline: CONNECT_TIME, ..Policy::default() };
    let not_allowed =
        || (RefuseReason::NotAllowed, format!("this key may not connect to {to} (permit-open)"));
    let rules = ClientRules::new(rules, CLIENT, endpoint.network_view().await);
    let race = PermittedRace::new(endpoint, policy, rules, to).map_err(|_| not_allowed())?;
    let connection = race.preconnection.clone().connect().await.map_err(|error| {
        let is_filtered = race.is_filtered() && error.attempts().is_empty();
        if is_filtered { not_allowed() } else { (RefuseReason::Failed, error.to_string()) }
    })?;
    let feedback = connection.feedback();
    let other = |_| (RefuseReason::Failed, "the connection is not TCP".to_owned());
    let tcp = connection.into_tcp().map_err(other)?;
    Ok(ReachedDestination { stream: LocalStream::Left(tcp), feedback: Some(feedback) })
}

/// Connects to a Unix socket.
pub(crate) async fn connect_unix(
    path: &UnixPath,
) -> Result<ReachedDestination, (RefuseReason, String)> {
    let failed =
        |cause: String| (RefuseReason::Failed, format!("cannot connect to {path}: {cause}"));
    // A listener whose queue is full holds it up.
    let connected = timeout(CONNECT_TIME, UnixStream::connect(path.as_str())).await;
    let connected = connected.map_err(|_| failed("it accepts nothing".to_owned()))?;
    let unix = connected.map_err(|error| failed(error.to_string()))?;
    Ok(ReachedDestination { stream: LocalStream::Right(unix), feedback: None })
}

/// Forwards data between a channel and a local connection. If anything ends it before both directions have
/// ended, even if the task is stopped or the process killed, the local connection is reset, so that it does not
/// look complete.
pub(crate) async fn forward(mut stream: LocalStream, mut channel: ChannelStream) -> ByteCounts {
    let mut bytes = ByteCounts::default();
    reset_when_dropped(&stream);
    let kind = (CopyUntil::Both, IDLE_TIME);
    let end = copy::bidirectional(&mut stream, &mut channel, kind, &mut bytes).await;
    if matches!(end, CopyEnd::Both) {
        end_when_dropped(&stream);
    }
    bytes
}

/// Accepts the next client of a listener, with warnings while the machine is out of resources.
pub(crate) async fn accept(
    listener: &LocalListener,
    warnings: &ThrottledWarnings,
) -> (LocalStream, SocketAddr) {
    let exhausted = |error: &io::Error| warnings.warn("exhausted", sockets::exhausted(error));
    accept_next(|| listener.accept(), exhausted).await
}
