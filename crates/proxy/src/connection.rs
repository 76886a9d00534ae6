//! Serves one client, from its handshake to its report.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use eyas::RaceRecording;
use eyas::race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use eyas_http::HttpDatagrams;
use eyas_http::serve::StreamServer;
use eyas_relay::copy::{self, ByteCounts, CopyEnd, CopyUntil};
use eyas_relay::destination::{Destination, RefusedRequest, RequestRefusal};
use eyas_relay::destination_stream::DestinationStream;
use eyas_relay::handshake::ClientCredentials;
use eyas_relay::handshake::{HandshakeProtocol, HandshakeRequest, HandshakeStep, ProxyHandshake};
use eyas_relay::proxy_status::ErrorType;
use eyas_relay::rules::ClientRules;
use futures_util::FutureExt as _;
use http::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::SemaphorePermit;
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::admission::ClientPermit;
use crate::associate::{self, AssociationSetup};
use crate::client::ClientStream;
use crate::connect::{ConnectedDestination, DestinationRace, NoConnection, RaceUp};
use crate::connect_udp::{self, UdpRoute};
use crate::peers;
use crate::report::{ClientEnding, DatagramReport, ProxyClientReport, WonBy};
use crate::requester::RequestReader;
use crate::shared::SharedProxy;
use crate::traffic::DatagramTraffic;

/// Bytes read at once before the client's destination is known.
const READ: usize = 4 * 1024;
/// How long a client that is answered before its request has ended may go on sending, and may take to
/// read the answer.
const REFUSAL_TIME: Duration = Duration::from_secs(5);
/// The same for a client whose place another one has got: it still has a descriptor.
const EVICTION_TIME: Duration = Duration::from_millis(100);

/// Serves a client, and reports the outcome. An HTTP/2 connection is passed to `streams`, where each stream
/// is a client with a report of its own.
pub(crate) async fn serve(
    shared: Arc<SharedProxy>,
    tcp: TcpStream,
    client: SocketAddr,
    (mut permit, streams): (ClientPermit, Option<StreamServer>),
) {
    let mut client_state = ClientState::new(client);
    // Small messages of a handshake must not wait for one another's acknowledgement.
    let _ = tcp.set_nodelay(true);
    let evicted = permit.evicted();
    let serving = async {
        match (secured(&shared, tcp, streams.as_ref(), &permit).await, &streams) {
            (Ok(ClientStream::Tls(tls)), Some(streams)) if is_http2(&tls) => Err((tls, streams)),
            (Ok(tcp), _) => Ok(client_state.run(&shared, tcp, &mut permit).await),
            (Err(ending), _) => Ok(ending),
        }
    };
    let ending = tokio::select! {
        ending = serving => ending,
        // Whoever has named its destination is told why it is not connected.
        () = evicted.cancelled().then(|()| eviction_ends()) => Ok(place_needed()),
        () = shared.abort.cancelled() => Ok(ClientEnding::Stopped),
    };
    drop(permit);
    match ending {
        Ok(ending) => client_state.report(&shared, ending),
        Err((tls, streams)) => {
            let local = tls.get_ref().0.local_addr().ok();
            // Boxed because it is large, and most clients do not need it.
            Box::pin(streams.serve(tls, client, local)).await;
        }
    }
}

/// Waits until another client gets the place of this one, and what this one has sent can be read.
async fn is_evicted(evicted: &CancellationToken) {
    evicted.cancelled().await;
    yield_now().await;
}

/// Waits until the time is over that a client has whose place another one has got.
fn eviction_ends() -> Pin<Box<Sleep>> {
    // Boxed, because every connection would otherwise keep room for it.
    Box::pin(sleep(EVICTION_TIME))
}

fn place_needed() -> ClientEnding {
    let why = "it named no destination before its place was needed for another client";
    ClientEnding::Refused(RequestRefusal::TimedOut(why.to_owned()))
}

fn is_http2(tls: &TlsStream<TcpStream>) -> bool {
    tls.get_ref().1.alpn_protocol() == Some(b"h2")
}

/// Sets up TLS, if it is required: `streams` then has the certificates.
async fn secured(
    shared: &SharedProxy,
    tcp: TcpStream,
    streams: Option<&StreamServer>,
    permit: &ClientPermit,
) -> Result<ClientStream, ClientEnding> {
    let Some(streams) = streams else { return Ok(ClientStream::Plain(tcp)) };
    let evicted = permit.evicted();
    let handshake = Box::pin(streams.handshake(tcp));
    let accepted = tokio::select! {
        accepted = timeout(shared.limits.handshake_time, handshake) => accepted,
        () = is_evicted(&evicted) => return Err(place_needed()),
        () = shared.drain.cancelled() => return Err(ClientEnding::Stopped),
    };
    match accepted {
        Ok(Ok(tls)) => Ok(ClientStream::Tls(Box::new(tls))),
        Ok(Err(error)) => Err(ClientEnding::Refused(RequestRefusal::Malformed(format!(
            "it does not speak TLS: {error}"
        )))),
        Err(_) => Err(ClientEnding::Refused(RequestRefusal::TimedOut(
            "its TLS handshake did not start in time".to_owned(),
        ))),
    }
}

/// The state of a client so far, for its report.
pub(crate) struct ClientState {
    at: SystemTime,
    began: Instant,
    client: SocketAddr,
    pub(crate) user: Option<String>,
    pub(crate) protocol: Option<HandshakeProtocol>,
    pub(crate) destination: Option<Destination>,
    /// The proxies that its request has passed.
    pub(crate) hops: Option<HeaderValue>,
    connection: Option<Arc<eyas::ConnectionInfo>>,
    won_by: Option<WonBy>,
    race: Option<RaceRecording>,
    pub(crate) bytes: ByteCounts,
    datagrams: Option<DatagramReport>,
}

impl ClientState {
    pub(crate) fn new(client: SocketAddr) -> Self {
        Self {
            at: SystemTime::now(),
            began: Instant::now(),
            client,
            user: None,
            protocol: None,
            destination: None,
            hops: None,
            connection: None,
            won_by: None,
            race: None,
            bytes: ByteCounts::default(),
            datagrams: None,
        }
    }

    /// Reports the outcome.
    pub(crate) fn report(self, shared: &SharedProxy, end: ClientEnding) {
        shared.report(ProxyClientReport {
            at: self.at,
            took: self.began.elapsed(),
            client: self.client,
            user: self.user,
            protocol: self.protocol,
            destination: self.destination,
            connection: self.connection,
            won_by: self.won_by,
            race: self.race,
            sent: self.bytes.sent,
            received: self.bytes.received,
            datagrams: self.datagrams,
            end,
        });
    }

    async fn run(
        &mut self,
        shared: &Arc<SharedProxy>,
        mut tcp: ClientStream,
        permit: &mut ClientPermit,
    ) -> ClientEnding {
        let mut handshake = ProxyHandshake::new(shared.users().is_some());
        let ip = self.client.ip();
        let authenticate = |given: &ClientCredentials| shared.authenticate(ip, Some(given));
        let reading = read_request(&mut tcp, &mut handshake, authenticate);
        let requested = {
            let evicted = permit.evicted();
            tokio::select! {
                // A request that has arrived is answered.
                biased;
                requested = timeout(shared.limits.handshake_time, reading) => requested,
                () = shared.drain.cancelled() => return ClientEnding::Stopped,
                () = is_evicted(&evicted) => return place_needed(),
            }
        };
        self.protocol = handshake.protocol();
        self.user = handshake.user().map(str::to_owned);
        self.hops = handshake.hops().cloned();
        let request = match requested {
            Ok(Ok(request)) => request,
            Ok(Err(ending)) => {
                if let ClientEnding::Refused(_) = ending {
                    let _ = timeout(REFUSAL_TIME, close_gracefully(&mut tcp)).await;
                }
                return ending;
            }
            Err(_) => {
                let why = "it did not name a destination in time".to_owned();
                return ClientEnding::Refused(RequestRefusal::TimedOut(why));
            }
        };
        self.destination = request.destination().cloned();
        if let Err(denial) = permit.settle(self.user.as_deref()) {
            let why = RequestRefusal::Failed(denial.to_string());
            let refused = RefusedRequest::new(ErrorType::ConnectionLimitReached, why);
            return refuse(&mut tcp, &handshake, refused).await;
        }
        let ended = match request.clone() {
            HandshakeRequest::Connect(to) => self.connect(shared, &mut tcp, &to, handshake).await,
            // Boxed, like the race, since an open connection would otherwise keep the memory for it.
            HandshakeRequest::ConnectUdp(to) => {
                Box::pin(self.connect_udp(shared, &mut tcp, &to, handshake)).await
            }
            HandshakeRequest::Associate { port } => {
                Box::pin(self.associate(shared, &mut tcp, port, handshake)).await
            }
            HandshakeRequest::Forward { destination, head, body } => {
                let forwarded =
                    self.forward(shared, &mut tcp, &destination, (head, body, handshake));
                Box::pin(forwarded).await
            }
        };
        match ended {
            Ok(ending) | Err(ending) => {
                tcp.cut_if_broken(&ending).await;
                ending
            }
        }
    }

    /// Serves a client that requested a byte stream.
    async fn connect(
        &mut self,
        shared: &Arc<SharedProxy>,
        tcp: &mut ClientStream,
        destination: &Destination,
        handshake: ProxyHandshake,
    ) -> Result<ClientEnding, ClientEnding> {
        let rest = handshake.rest();
        let reached = tokio::select! {
            reached = Box::pin(self.reach(shared, destination)) => reached,
            () = tcp.disconnected(rest.is_empty()) => return Err(ClientEnding::Left),
        };
        let mut race = match reached {
            Ok(race) => race,
            Err(NoConnection::Refused(refused)) => {
                return Err(refuse(tcp, &handshake, refused).await);
            }
            Err(failure) => return Err(failure.into()),
        };
        let granted = handshake.granted(None);
        drop(handshake);
        let granting = Box::pin(race.alongside(tcp.write_all(&granted)));
        granting.await.map_err(|_| ClientEnding::Left)?;
        drop(granted);
        self.relay_bytes(shared, tcp, race, rest).await
    }

    /// Races to a destination until a transport is established.
    pub(crate) async fn reach<'a>(
        &mut self,
        shared: &'a SharedProxy,
        destination: &'a Destination,
    ) -> Result<RaceUp<'a>, NoConnection> {
        let race = DestinationRace::new(shared, destination, self.client).await;
        let race = race.map_err(|why| NoConnection::Refused(why.into()))?;
        race.establish(self.hops.as_ref(), &mut self.race).await
    }

    /// Copies bytes between a client that has its success reply and its destination, until both have ended.
    /// `rest` is data that the client has already sent.
    pub(crate) async fn relay_bytes(
        &mut self,
        shared: &SharedProxy,
        tcp: &mut ClientStream,
        race: RaceUp<'_>,
        rest: Bytes,
    ) -> Result<ClientEnding, ClientEnding> {
        let connected = Box::pin(race.decide(tcp, rest)).await?;
        let ConnectedDestination { mut stream, won_by, unsent, sent } = connected;
        self.note_connection(&stream, won_by);
        self.bytes.sent = sent;
        self.write(&mut stream, &unsent).await?;
        drop(unsent);
        if !shared.has_reports() {
            self.race = None;
        }
        let kind = (CopyUntil::Both, shared.limits.idle_time);
        let end = copy::bidirectional(tcp, &mut stream, kind, &mut self.bytes).await;
        Ok(self.ending(end, &stream))
    }

    /// Serves a client that requested datagrams to one destination.
    async fn connect_udp(
        &mut self,
        shared: &Arc<SharedProxy>,
        tcp: &mut ClientStream,
        destination: &Destination,
        handshake: ProxyHandshake,
    ) -> Result<ClientEnding, ClientEnding> {
        let rest = handshake.rest();
        let reached = tokio::select! {
            reached = self.reach_udp(shared, destination) => reached,
            () = tcp.disconnected(rest.is_empty()) => return Err(ClientEnding::Left),
        };
        let (route, _permit) = match reached {
            Ok(reached) => reached,
            Err(refused) => return Err(refuse(tcp, &handshake, refused).await),
        };
        tcp.write_all(&handshake.granted(None)).await.map_err(|_| ClientEnding::Left)?;
        drop(handshake);
        Ok(self.relay_datagrams(shared, tcp, (destination, route), (&rest, None)).await)
    }

    /// Prepares to send datagrams to a destination. The tunnel counts until its permit is dropped.
    pub(crate) async fn reach_udp<'a>(
        &mut self,
        shared: &'a SharedProxy,
        destination: &Destination,
    ) -> Result<(UdpRoute, SemaphorePermit<'a>), RefusedRequest> {
        let client = (self.client.ip(), self.hops.as_ref());
        connect_udp::reach(shared, destination, client, &mut self.race).await
    }

    /// Forwards datagrams between a client that has its success reply and its destination, until one of them
    /// ends. `received` is data that the client has already sent, and its datagrams beside the stream.
    pub(crate) async fn relay_datagrams(
        &mut self,
        shared: &SharedProxy,
        client: &mut ClientStream,
        (destination, route): (&Destination, UdpRoute),
        received: (&[u8], Option<HttpDatagrams>),
    ) -> ClientEnding {
        if let UdpRoute::Via(upstream) = &route {
            self.note_connection(upstream, WonBy::Transport);
        }
        let idle_time = shared.limits.idle_time;
        let datagrams = self.datagrams.insert(DatagramReport::default());
        let mut traffic = DatagramTraffic::new(&mut self.bytes, datagrams);
        let counts = &mut traffic;
        let ending = match route {
            UdpRoute::Direct(peer) => {
                connect_udp::serve(shared, client, received, peer, counts).await
            }
            UdpRoute::Via(upstream) => {
                connect_udp::forward(idle_time, client, received, upstream, counts).await
            }
        };
        if let Some((age, is_answered)) = traffic.quic() {
            shared.note_quic(destination, age, is_answered);
        }
        ending
    }

    /// Serves a client that requested an association.
    async fn associate(
        &mut self,
        shared: &Arc<SharedProxy>,
        tcp: &mut ClientStream,
        port: Option<u16>,
        handshake: ProxyHandshake,
    ) -> Result<ClientEnding, ClientEnding> {
        if !tcp.is_plain() {
            let why = RequestRefusal::Unsupported("datagrams would not be encrypted".to_owned());
            return Err(refuse(tcp, &handshake, why.into()).await);
        }
        let _permit = match shared.admit_udp() {
            Ok(permit) => permit,
            Err(refused) => return Err(refuse(tcp, &handshake, refused).await),
        };
        let network = shared.endpoint.network_view().await;
        let rules = ClientRules::new(&shared.rules, self.client.ip(), Arc::clone(&network));
        let opened = local_addr(tcp).and_then(|proxy| {
            let socket = peers::bind(proxy.ip().to_canonical())?;
            let peers = match &shared.via {
                Some(_) => None,
                None => {
                    Some(peers::PeerSockets::open(network, shared.policy.only_family, |_| true)?)
                }
            };
            Ok((socket.local_addr()?, (socket, peers)))
        });
        let (address, (socket, peers)) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let why = RequestRefusal::Failed(format!("cannot accept datagrams: {error}"));
                return Err(refuse(tcp, &handshake, why.into()).await);
            }
        };
        tcp.write_all(&handshake.granted(Some(address))).await.map_err(|_| ClientEnding::Left)?;
        drop(handshake);
        // A NAT may have changed the port of a client on another machine.
        let port = port.filter(|_| self.client.ip().to_canonical().is_loopback());
        let destinations = shared.limits.association_destinations;
        let setup = AssociationSetup { port, rules, destinations };
        let datagrams = self.datagrams.insert(DatagramReport::default());
        let traffic = DatagramTraffic::new(&mut self.bytes, datagrams);
        Ok(match peers {
            Some(peers) => associate::serve(shared, tcp, setup, (socket, peers), traffic).await,
            None => associate::serve_via(shared, tcp, &setup, socket, traffic).await,
        })
    }

    /// Serves a client that sent a request with a whole URL.
    async fn forward(
        &mut self,
        shared: &Arc<SharedProxy>,
        tcp: &mut ClientStream,
        destination: &Destination,
        (head, body, handshake): (Bytes, eyas_relay::body::BodyDelimiter, ProxyHandshake),
    ) -> Result<ClientEnding, ClientEnding> {
        let race = match DestinationRace::new(shared, destination, self.client).await {
            Ok(race) => race,
            Err(why) => return Err(refuse(tcp, &handshake, why.into()).await),
        };
        let mut stream = tokio::select! {
            connected = race.transport(self.hops.as_ref(), &mut self.race) => match connected {
                Ok(stream) => stream,
                Err(NoConnection::Refused(refused)) => {
                    return Err(refuse(tcp, &handshake, refused).await);
                }
                Err(NoConnection::Unanswered(why)) => {
                    return Err(refuse(tcp, &handshake, why.into()).await);
                }
                Err(NoConnection::Left) => return Err(ClientEnding::Left),
            },
            () = tcp.failed() => return Err(ClientEnding::Left),
        };
        self.note_connection(&stream, WonBy::Transport);
        self.write(&mut stream, &head).await?;
        let mut requester = RequestReader::new(tcp, handshake.into_rest(), body);
        let kind = (CopyUntil::Destination, shared.limits.idle_time);
        let end = copy::bidirectional(&mut requester, &mut stream, kind, &mut self.bytes).await;
        if !requester.has_all() && self.bytes.received > 0 {
            let rest = async {
                match &end {
                    CopyEnd::Both => close_gracefully(tcp).await,
                    CopyEnd::Destination(_) => discard(tcp).await,
                    CopyEnd::Client(_) | CopyEnd::Idle => Ok(()),
                }
            };
            let _ = timeout(REFUSAL_TIME, rest).await;
        }
        Ok(self.ending(end, &stream))
    }

    fn note_connection(&mut self, stream: &DestinationStream, won_by: WonBy) {
        self.connection = Some(stream.info());
        self.won_by = Some(won_by);
    }

    /// Writes data to the destination that is not part of the copy.
    async fn write(
        &mut self,
        stream: &mut DestinationStream,
        bytes: &[u8],
    ) -> Result<(), ClientEnding> {
        self.bytes.sent += bytes.len() as u64;
        let written = stream.write_all(bytes).await;
        written.map_err(|error| ClientEnding::Destination(error.to_string()))
    }

    fn ending(&self, end: CopyEnd, stream: &DestinationStream) -> ClientEnding {
        match end {
            CopyEnd::Both => ClientEnding::Done,
            CopyEnd::Idle => ClientEnding::Idle,
            CopyEnd::Client(error) => ClientEnding::Client(error.to_string()),
            CopyEnd::Destination(error) => {
                if self.bytes.received == 0 {
                    // It accepted the connection, and broke it without sending anything.
                    stream.report_broken(AttemptFailure::new(
                        FailureCause::Reset,
                        EvidenceLevel::Transport,
                        error.to_string(),
                    ));
                }
                ClientEnding::Destination(error.to_string())
            }
        }
    }
}

/// Exchanges messages with the client until its request is complete.
async fn read_request(
    tcp: &mut ClientStream,
    handshake: &mut ProxyHandshake,
    authenticate: impl Fn(&ClientCredentials) -> Result<Option<String>, RequestRefusal>,
) -> Result<HandshakeRequest, ClientEnding> {
    loop {
        let step = match handshake.step() {
            HandshakeStep::Authenticate(given) => handshake.authenticated(authenticate(&given)),
            step => step,
        };
        match step {
            HandshakeStep::More => {
                match tcp.read_piece(READ, |bytes| handshake.receive(bytes)).await {
                    Ok(0) | Err(_) => return Err(ClientEnding::Left),
                    Ok(_) => {}
                }
            }
            HandshakeStep::Send(bytes) => {
                tcp.write_all(&bytes).await.map_err(|_| ClientEnding::Left)?
            }
            HandshakeStep::Authenticate(_) => {}
            HandshakeStep::Request(request) => return Ok(request),
            HandshakeStep::Close(bytes, why) => {
                tcp.write_all(&bytes).await.map_err(|_| ClientEnding::Left)?;
                return Err(ClientEnding::Refused(why));
            }
        }
    }
}

/// Sends the client the refusal.
async fn refuse(
    tcp: &mut ClientStream,
    handshake: &ProxyHandshake,
    refused: RefusedRequest,
) -> ClientEnding {
    let sending = async {
        tcp.write_all(&handshake.refusal(&refused)).await?;
        close_gracefully(tcp).await
    };
    // A client that has disconnected does not need the reason.
    let _ = timeout(REFUSAL_TIME, sending).await;
    ClientEnding::Refused(refused.why)
}

/// Closes the connection so that the last data arrives: with unread data the system would reset it (RFC
/// 9112 §9.6). However much the client sends, the caller limits the time.
async fn close_gracefully(tcp: &mut ClientStream) -> std::io::Result<()> {
    tcp.shutdown().await?;
    discard(tcp).await
}

/// Reads and discards what a client still sends.
async fn discard(tcp: &mut ClientStream) -> std::io::Result<()> {
    let mut scratch = vec![0; READ];
    while tcp.read(&mut scratch).await? > 0 {}
    Ok(())
}

/// Returns the address at which a client has reached the proxy.
fn local_addr(client: &ClientStream) -> std::io::Result<SocketAddr> {
    client.tcp().ok_or(std::io::ErrorKind::NotConnected)?.local_addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, C, D, F>(_: impl Fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_task_of_a_connection_is_small() {
        let bytes = size(serve);
        assert!(bytes <= 3 * 1024, "{bytes}");
    }
}
