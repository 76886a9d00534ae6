//! Where channels begin and end: sockets that listen, and connections to destinations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::sockets::{self, StreamProtocol, Wanted};
use eyas::{Endpoint, Feedback};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use super::forward::Place;
use super::frame::Why;
use super::link::ChannelStream;
use super::notice::Repeated;
use crate::copy::{self, End, Passed, Until};
use crate::handshake::Destination;
use crate::permitted::PermittedRace;
use crate::rules::Rules;

/// Until a destination is connected to, or given up.
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// A channel on which nothing moves for so long is cut. Keystrokes may be far apart.
const IDLE_TIME: Duration = Duration::from_hours(24);
/// After a failed accept nothing is accepted for this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Who asks is on this machine, as far as the rules about private destinations go: a key decides.
const ASKS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Why it cannot be listened at a place.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub(crate) struct ListenError {
    words: String,
    /// Somebody else listens there.
    pub(crate) is_taken: bool,
}

/// Listens at a place: loopback in both families where nothing is named, if there are both.
pub(crate) fn listen(at: &Place) -> Result<(Vec<TcpListener>, u16), ListenError> {
    let (four, six) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let tries: Vec<Vec<IpAddr>> = match at.bind.as_str() {
        "" | "localhost" => vec![vec![four, six], vec![four], vec![six]],
        "*" => vec![vec![Ipv6Addr::UNSPECIFIED.into()], vec![Ipv4Addr::UNSPECIFIED.into()]],
        bind => {
            let bind = bind.trim_start_matches('[').trim_end_matches(']');
            let no_address =
                |_| ListenError { words: format!("{bind:?} is not an address"), is_taken: false };
            vec![vec![bind.parse().map_err(no_address)?]]
        }
    };
    let wanted = Wanted { stream: Some(StreamProtocol::Tcp), udp: false };
    let mut why = ListenError { words: String::new(), is_taken: false };
    for addresses in tries {
        let addresses: Vec<_> =
            addresses.into_iter().map(|ip| SocketAddr::new(ip, at.port)).collect();
        match sockets::bind(&addresses, wanted) {
            Ok(bound) => {
                let port = bound.first().map_or(0, |one| one.address.port());
                return Ok((bound.into_iter().filter_map(|one| one.tcp).collect(), port));
            }
            // A family that this machine has not is no reason; a port that is taken is.
            Err(error) => {
                let is_taken = error.source.kind() == std::io::ErrorKind::AddrInUse;
                why = ListenError { words: error.to_string(), is_taken };
                if is_taken {
                    break;
                }
            }
        }
    }
    Err(why)
}

/// A connection to where a channel leads.
#[derive(Debug)]
pub(crate) struct Reached {
    tcp: TcpStream,
    feedback: Feedback,
}

impl Reached {
    /// Passes on everything between it and the channel.
    pub(crate) async fn pass(self, channel: ChannelStream) {
        // What is sent on the channel is what the destination has said.
        if pass(self.tcp, channel).await.sent > 0 {
            self.feedback.first_byte_seen();
        }
    }
}

/// Connects to where a channel is to lead.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    rules: &Arc<Rules>,
    to: &Destination,
) -> Result<Reached, (Why, String)> {
    let policy =
        Policy { transports: vec![Transport::Tcp], deadline: CONNECT_TIME, ..Policy::default() };
    let not_allowed =
        || (Why::NotAllowed, format!("this key may not connect to {to} (permit-open)"));
    let race = PermittedRace::new(endpoint, policy, rules, to, ASKS).map_err(|_| not_allowed())?;
    let connection = race.preconnection.clone().connect().await.map_err(|error| {
        let is_sifted = race.is_sifted() && error.attempts().is_empty();
        if is_sifted { not_allowed() } else { (Why::Failed, error.to_string()) }
    })?;
    let feedback = connection.feedback();
    let other = |_| (Why::Failed, "the connection is not TCP".to_owned());
    let tcp = connection.into_tcp().map_err(other)?;
    Ok(Reached { tcp, feedback })
}

/// Passes on everything between a channel and a connection of this host. Whatever ends it before both
/// directions have ended, a task that is stopped and a process that is killed too, is a reset to who is
/// connected: it must not look like an end.
pub(crate) async fn pass(mut here: TcpStream, mut channel: ChannelStream) -> Passed {
    let mut passed = Passed::default();
    reset_when_dropped(&here);
    let kind = (Until::Both, IDLE_TIME);
    let end = copy::both_ways(&mut here, &mut channel, kind, &mut passed).await;
    if matches!(end, End::Both) {
        let _ = SockRef::from(&here).set_linger(None);
    }
    passed
}

/// Has the end of this connection be a reset, from now on.
pub(crate) fn reset_when_dropped(here: &TcpStream) {
    let _ = SockRef::from(here).set_linger(Some(Duration::ZERO));
}

/// The next client of a listener; `None` after a pause and a complaint, if the machine has no room for one.
pub(crate) async fn accept(
    listener: &TcpListener,
    complaints: &Repeated,
) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok((client, peer)) => {
            // Keystrokes must not wait for one another's acknowledgement.
            let _ = client.set_nodelay(true);
            Some((client, peer))
        }
        Err(error) => {
            complaints.complain("exhausted", sockets::exhausted(&error));
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
