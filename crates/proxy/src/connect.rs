//! Connects to a destination by a race, which is won by the first server that replies, if possible.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use eyas::{ConnectError, Connection, Initiation, RaceRecording};
use eyas_relay::destination::{Destination, RefusedRequest, RequestRefusal};
use eyas_relay::destination_stream::DestinationStream;
use eyas_relay::permitted::PermittedRace;
use eyas_relay::proxy_status::ErrorType;
use eyas_relay::via::TunnelKind;
use eyas_relay::via::lanes::ProxyLanes;
use http::HeaderValue;
use tokio::time::{Instant, timeout_at};

use crate::client::ClientStream;
use crate::client_hello::{FirstFlight, MAX_CLIENT_HELLO, first_flight};
use crate::report::{ClientEnding, WonBy};
use crate::shared::SharedProxy;

/// How long a client that got a success reply may be silent before it is assumed to wait for the server. The
/// race would start its next attempt after 250 ms.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(200);
/// The same on ports of implicit TLS, or after the beginning of a ClientHello: there the server never sends
/// first, and some clients set up TLS only after the reply.
const TLS_CLIENT_TIMEOUT: Duration = Duration::from_secs(3);
/// Ports with implicit TLS (RFC 8314 §3, IANA's service names).
const TLS_PORTS: [u16; 11] = [443, 465, 563, 636, 853, 989, 990, 993, 995, 5061, 8443];

/// A connection to a destination.
pub(crate) struct ConnectedDestination {
    pub(crate) stream: DestinationStream,
    pub(crate) won_by: WonBy,
    /// Data received from the client and not yet sent to the destination.
    pub(crate) unsent: Bytes,
    /// The number of bytes already sent to the destination.
    pub(crate) sent: u64,
}

/// Why there is no connection.
pub(crate) enum NoConnection {
    /// The client is still waiting for the reply.
    Refused(RefusedRequest),
    /// The client already has a success reply.
    Unanswered(RequestRefusal),
    /// The client has disconnected.
    Left,
}

impl From<NoConnection> for ClientEnding {
    fn from(failure: NoConnection) -> Self {
        match failure {
            NoConnection::Refused(refused) => Self::Refused(refused.why),
            NoConnection::Unanswered(why) => Self::Unanswered(why),
            NoConnection::Left => Self::Left,
        }
    }
}

/// A race to be run for a client.
pub(crate) struct DestinationRace<'a> {
    race: PermittedRace,
    shared: &'a SharedProxy,
    destination: &'a Destination,
}

impl<'a> DestinationRace<'a> {
    /// Creates a race to this destination.
    ///
    /// # Errors
    /// If the rules forbid the destination to this client.
    pub(crate) async fn new(
        shared: &'a SharedProxy,
        destination: &'a Destination,
        client: SocketAddr,
    ) -> Result<Self, RequestRefusal> {
        let (policy, rules) = (shared.policy.clone(), shared.rules_for(client.ip()).await);
        let here = destination.on_this_host();
        let here = here.map_err(|cause| RequestRefusal::NoAddress(cause.to_string()))?;
        let race = PermittedRace::new(&shared.endpoint, policy, rules, &here);
        let race = race.map_err(|why| RequestRefusal::NotAllowed(why.to_string()))?;
        Ok(Self { race, shared, destination })
    }

    /// Races until a transport is established. The race then continues until a server speaks.
    pub(crate) async fn establish(
        self,
        hops: Option<&HeaderValue>,
        race: &mut Option<RaceRecording>,
    ) -> Result<RaceUp<'a>, NoConnection> {
        if let Some(via) = &self.shared.via {
            return Ok(RaceUp::Via(Box::new(self.via(via, hops, race).await?)));
        }
        let mut initiation =
            self.race.preconnection.clone().until_spoken().without_task().initiate();
        *race = Some(initiation.recording());
        let established = initiation.transport_up().await;
        established.map_err(|error| NoConnection::Refused(self.refusal(&error)))?;
        Ok(RaceUp::Direct(Box::new(DirectRace { race: self, initiation })))
    }

    /// Races until a transport is established, which wins.
    pub(crate) async fn transport(
        self,
        hops: Option<&HeaderValue>,
        race: &mut Option<RaceRecording>,
    ) -> Result<DestinationStream, NoConnection> {
        if let Some(via) = &self.shared.via {
            return self.via(via, hops, race).await;
        }
        let mut initiation = self.race.preconnection.clone().without_task().initiate();
        *race = Some(initiation.recording());
        let usable = initiation.usable().await;
        let connection = usable.map_err(|error| NoConnection::Refused(self.refusal(&error)))?;
        initiation.detach();
        stream(connection)
    }

    /// Connects through another proxy.
    async fn via(
        &self,
        via: &ProxyLanes,
        hops: Option<&HeaderValue>,
        race: &mut Option<RaceRecording>,
    ) -> Result<DestinationStream, NoConnection> {
        let reached = via.reach((TunnelKind::Bytes, self.destination), hops, race).await;
        reached.map_err(NoConnection::Refused)
    }

    fn refusal(&self, error: &ConnectError) -> RefusedRequest {
        let refused = RefusedRequest::from(error);
        match refused.why {
            RequestRefusal::NoAddress(_) if self.race.is_filtered() => {
                RefusedRequest::prohibited(self.destination)
            }
            RequestRefusal::TimedOut(_) if error.attempts().is_empty() => {
                let after = self.shared.limits.connect_time;
                let text = format!(
                    "DNS returned no address for {} within {after:?}",
                    self.destination.given_host()
                );
                RefusedRequest::new(ErrorType::DnsTimeout, RequestRefusal::TimedOut(text))
            }
            _ => refused,
        }
    }
}

/// An established transport to a destination: the client may get its success reply.
pub(crate) enum RaceUp<'a> {
    /// A race with an established transport.
    Direct(Box<DirectRace<'a>>),
    /// A tunnel through another proxy, which has granted it.
    Via(Box<DestinationStream>),
}

impl RaceUp<'_> {
    /// Waits for something while the race proceeds.
    pub(crate) async fn alongside<T>(&mut self, other: impl Future<Output = T>) -> T {
        let proceeding = async {
            if let Self::Direct(race) = self {
                race.initiation.finished().await;
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            done = other => done,
            never = proceeding => never,
        }
    }

    /// Decides the race by the client's first data, of which `rest` has been read.
    pub(crate) async fn decide(
        self,
        client: &mut ClientStream,
        rest: Bytes,
    ) -> Result<ConnectedDestination, NoConnection> {
        match self {
            Self::Direct(race) => race.decide(client, rest).await,
            Self::Via(stream) => Ok(ConnectedDestination {
                stream: *stream,
                won_by: WonBy::Transport,
                unsent: rest,
                sent: 0,
            }),
        }
    }
}

/// A race in which a transport is established.
pub(crate) struct DirectRace<'a> {
    race: DestinationRace<'a>,
    initiation: Initiation,
}

impl DirectRace<'_> {
    /// Continues the race until a server answers, if the client begins with a ClientHello. `rest` is data that
    /// the client has already sent.
    async fn decide(
        mut self,
        client: &mut ClientStream,
        rest: Bytes,
    ) -> Result<ConnectedDestination, NoConnection> {
        let mut first = BytesMut::from(&rest[..]);
        self.read_first_flight(client, &mut first).await?;
        let Self { race, mut initiation } = self;
        let first = first.freeze();
        let is_hello = first_flight(&first) == FirstFlight::ClientHello;
        if is_hello {
            initiation.open_with(first.clone());
        } else {
            initiation.open_without();
        }
        let connection = tokio::select! {
            usable = initiation.usable() => {
                usable.map_err(|error| NoConnection::Unanswered(race.refusal(&error).why))?
            }
            () = client.disconnected(is_hello) => return Err(NoConnection::Left),
        };
        initiation.detach();
        let timings = connection.info().timings;
        let won_by = if timings.spoke.is_some() { WonBy::FirstByte } else { WonBy::Transport };
        let (unsent, sent) = match timings.opened {
            Some(_) => (Bytes::new(), first.len() as u64),
            None => (first, 0),
        };
        Ok(ConnectedDestination { stream: stream(connection)?, won_by, unsent, sent })
    }

    /// Reads the client's first data until its kind is known, until the client has been silent for too long,
    /// or until the server sends something.
    async fn read_first_flight(
        &mut self,
        client: &mut ClientStream,
        first: &mut BytesMut,
    ) -> Result<(), NoConnection> {
        let began = Instant::now();
        while first_flight(first) == FirstFlight::Partial {
            let is_tls = !first.is_empty() || TLS_PORTS.contains(&self.race.destination.port);
            let limit = if is_tls { TLS_CLIENT_TIMEOUT } else { CLIENT_TIMEOUT };
            let room = MAX_CLIENT_HELLO + 1 - first.len();
            let reading = client.read_piece(room, |bytes| first.extend_from_slice(bytes));
            let read = tokio::select! {
                read = timeout_at(began + limit, reading) => read,
                decided = self.initiation.decided() => {
                    return decided.map_err(|error| NoConnection::Unanswered(self.race.refusal(&error).why));
                }
            };
            match read {
                // The client is waiting, or has sent everything.
                Err(_) | Ok(Ok(0)) => return Ok(()),
                Ok(Ok(_)) => {}
                Ok(Err(_)) => return Err(NoConnection::Left),
            }
        }
        Ok(())
    }
}

/// Returns the connection as a stream. Only closed QUIC connections cannot become one, and there is no QUIC.
fn stream(connection: Connection) -> Result<DestinationStream, NoConnection> {
    connection.into_stream().map(DestinationStream::Direct).map_err(|_| {
        NoConnection::Unanswered(RequestRefusal::Failed(
            "the connection was closed at once".to_owned(),
        ))
    })
}
