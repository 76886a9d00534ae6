//! From a destination to a connection: a race, won by the first server that replies, if possible.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use eyas::{ConnectError, Connection, Initiation, Recording};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};

use crate::client::Client;
use crate::client_hello::{FirstFlight, MAX_CLIENT_HELLO, first_flight};
use crate::far::Far;
use crate::handshake::{Destination, Refusal, Refused};
use crate::permitted::PermittedRace;
use crate::proxy_status::ErrorType;
use crate::report::{Ending, WonBy};
use crate::shared::Shared;
use crate::via::Wanted;
use crate::via::lanes::Lanes;

/// How long a client that has been told that it is connected may keep silent before it is taken to
/// wait for the server. The race would start its next attempt after 250 ms.
const CLIENT_SPEAKS: Duration = Duration::from_millis(200);
/// The same where TLS is spoken from the start, or has been begun: there the server never speaks
/// first, and some clients set up their TLS only then.
const TLS_CLIENT_SPEAKS: Duration = Duration::from_secs(3);
/// Ports at which TLS is spoken from the start (RFC 8314 §3, IANA's service names).
const TLS_PORTS: [u16; 11] = [443, 465, 563, 636, 853, 989, 990, 993, 995, 5061, 8443];

/// A connection, and what it came from.
pub(crate) struct Connected {
    pub(crate) stream: Far,
    pub(crate) won_by: WonBy,
    /// Data received from the client and not yet sent to the destination.
    pub(crate) unsaid: Bytes,
    /// Bytes sent to it.
    pub(crate) said: u64,
}

/// Why there is none.
pub(crate) enum Missed {
    /// The client waits for its answer.
    Refused(Refused),
    /// The client has been told that it is connected.
    Unanswered(Refusal),
    /// The client has left.
    Left,
}

impl From<Missed> for Ending {
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::Refused(refused) => Self::Refused(refused.why),
            Missed::Unanswered(why) => Self::Unanswered(why),
            Missed::Left => Self::Left,
        }
    }
}

/// A race to be run for a client.
pub(crate) struct DestinationRace<'a> {
    race: PermittedRace,
    shared: &'a Shared,
    destination: &'a Destination,
}

impl<'a> DestinationRace<'a> {
    /// A race to this destination, if this client may go there.
    pub(crate) fn new(
        shared: &'a Shared,
        destination: &'a Destination,
        client: SocketAddr,
    ) -> Result<Self, Refusal> {
        let (policy, rules) = (shared.policy.clone(), &shared.rules);
        let race = PermittedRace::new(&shared.endpoint, policy, rules, destination, client.ip());
        let race = race.map_err(|why| Refusal::NotAllowed(why.to_string()))?;
        Ok(Self { race, shared, destination })
    }

    /// Races until a transport is up, in a race that goes on until a server speaks.
    pub(crate) async fn up(self, race: &mut Option<Recording>) -> Result<RaceUp<'a>, Missed> {
        if let Some(via) = &self.shared.via {
            return Ok(RaceUp::Via(self.through(via, race).await?));
        }
        let mut initiation = self.race.preconnection.clone().until_spoken().initiate();
        *race = Some(initiation.recording());
        let up = initiation.transport_up().await;
        up.map_err(|error| Missed::Refused(self.refusal(&error)))?;
        Ok(RaceUp::Direct(Box::new(DirectRace { race: self, initiation })))
    }

    /// Races until a transport is up.
    pub(crate) async fn transport(self, race: &mut Option<Recording>) -> Result<Far, Missed> {
        if let Some(via) = &self.shared.via {
            return self.through(via, race).await;
        }
        let mut initiation = self.race.preconnection.clone().initiate();
        *race = Some(initiation.recording());
        let usable = initiation.usable().await;
        let connection = usable.map_err(|error| Missed::Refused(self.refusal(&error)))?;
        initiation.detach();
        stream(connection)
    }

    /// Through another proxy.
    async fn through(&self, via: &Lanes, race: &mut Option<Recording>) -> Result<Far, Missed> {
        via.reach(Wanted::Bytes, self.destination, race).await.map_err(Missed::Refused)
    }

    fn refusal(&self, error: &ConnectError) -> Refused {
        let refused = Refused::from(error);
        match refused.why {
            Refusal::NoAddress(_) if self.race.is_sifted() => {
                Refused::prohibited(self.destination)
            },
            Refusal::TimedOut(_) if error.attempts().is_empty() => {
                let after = self.shared.limits.connect_time;
                let text =
                    format!("DNS returned no address of {} in {after:?}", self.destination.host);
                Refused::new(ErrorType::DnsTimeout, Refusal::TimedOut(text))
            }
            _ => refused,
        }
    }
}

/// An established transport to a destination: the client may be told so.
pub(crate) enum RaceUp<'a> {
    /// A transport of a race is.
    Direct(Box<DirectRace<'a>>),
    /// Another proxy says that it is connected.
    Via(Far),
}

impl RaceUp<'_> {
    /// Goes on with what the client says first, of which `rest` has been read.
    pub(crate) async fn conversation(
        self,
        client: &mut Client,
        rest: Bytes,
    ) -> Result<Connected, Missed> {
        match self {
            Self::Direct(race) => race.conversation(client, rest).await,
            Self::Via(stream) => {
                Ok(Connected { stream, won_by: WonBy::Transport, unsaid: rest, said: 0 })
            }
        }
    }
}

/// A race in which a transport is up.
pub(crate) struct DirectRace<'a> {
    race: DestinationRace<'a>,
    initiation: Initiation,
}

impl DirectRace<'_> {
    /// Goes on, if the client begins with a ClientHello, until a server answers that. `rest` is what the
    /// client has said already.
    async fn conversation(mut self, client: &mut Client, rest: Bytes) -> Result<Connected, Missed> {
        let mut first = BytesMut::from(&rest[..]);
        self.hear(client, &mut first).await?;
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
                usable.map_err(|error| Missed::Unanswered(race.refusal(&error).why))?
            }
            () = client.left(is_hello) => return Err(Missed::Left),
        };
        initiation.detach();
        let timings = connection.info().timings;
        let won_by = if timings.spoke.is_some() { WonBy::FirstByte } else { WonBy::Transport };
        let (unsaid, said) = match timings.opened {
            Some(_) => (Bytes::new(), first.len() as u64),
            None => (first, 0),
        };
        Ok(Connected { stream: stream(connection)?, won_by, unsaid, said })
    }

    /// Reads what the client says first, until it is known what that is, or it is clear that it says
    /// nothing, or the server speaks.
    async fn hear(&mut self, client: &mut Client, first: &mut BytesMut) -> Result<(), Missed> {
        let began = Instant::now();
        while first_flight(first) == FirstFlight::Partial {
            let is_tls = !first.is_empty() || TLS_PORTS.contains(&self.race.destination.port);
            let patience = if is_tls { TLS_CLIENT_SPEAKS } else { CLIENT_SPEAKS };
            first.reserve(MAX_CLIENT_HELLO + 1 - first.len());
            let read = tokio::select! {
                read = timeout_at(began + patience, client.read_buf(first)) => read,
                over = self.initiation.decided() => {
                    return over.map_err(|error| Missed::Unanswered(self.race.refusal(&error).why));
                }
            };
            match read {
                // It only reads, or has sent everything.
                Err(_) | Ok(Ok(0)) => return Ok(()),
                Ok(Ok(_)) => {}
                Ok(Err(_)) => return Err(Missed::Left),
            }
        }
        Ok(())
    }
}

/// Only QUIC connections that are closed cannot become one, and there are none of them.
fn stream(connection: Connection) -> Result<Far, Missed> {
    connection.into_stream().map(Far::Direct).map_err(|_| {
        Missed::Unanswered(Refusal::Failed("the connection was closed at once".to_owned()))
    })
}
