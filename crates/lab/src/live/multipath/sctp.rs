//! eyas's SCTP as programs use it: on both sides, or with another implementation as the peer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bytes::Bytes;
use eyas::race::candidate::{Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetError, TargetHost as Name};
use eyas::{ConnectError, Endpoint, MemoryStore};
use eyas_emulator::HostRole;
use eyas_sctp_tokio::protocol::config::AssociationConfig;
use eyas_sctp_tokio::protocol::identifier::StreamId;
use eyas_sctp_tokio::protocol::message::{Message, SendInfo};
use eyas_sctp_tokio::{SctpAssociation, SctpError, SctpListenParameters, SctpListener, SctpOverIp};

use super::network::EmulatedNetwork;
use super::shared::{PairState, RunningPair, run_until_finished};
use crate::live::LiveError;
use crate::simulation;
use crate::situation::QueueInfo;
use crate::situation::live::{MultipathSetup, MultipathStack};

/// The SCTP port.
pub(super) const PORT: u16 = 5000;
/// How long a sender waits before it checks its streams again after all of them had enough data.
/// Less than the transmission time of a packet at 10 Mbit/s, and each stream has several queued.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);
/// The UDP port of SCTP inside UDP (RFC 6951 §4.1).
const ENCAPSULATION: u16 = 9899;

/// Why a sender or receiver has ended early.
#[derive(Debug, thiserror::Error)]
enum TransferError {
    #[error(transparent)]
    Listen(#[from] io::Error),
    #[error(transparent)]
    Endpoint(#[from] eyas::Error),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the connection is not SCTP")]
    NotSctp,
    #[error("the kernel supports SCTP here, so eyas's SCTP cannot be measured over IP")]
    KernelSctp,
    #[error(transparent)]
    Association(#[from] SctpError),
    #[error("the sender has closed")]
    SenderClosed,
    #[error("the receiver has closed")]
    ReceiverClosed,
}

fn config(setup: &MultipathSetup) -> AssociationConfig {
    let names: Vec<&str> = setup.used().map(|(name, _)| name).collect();
    let streams = setup.application.all_streams();
    let mut config = simulation::association_config(&setup.association, streams, &names);
    if setup.added_path.is_some() {
        config.extensions.dynamic_addresses = true;
        config.auto_asconf = true;
    }
    config
}

/// Starts a receiver on the server's host, which listens when this returns.
pub(super) fn receive(
    network: &EmulatedNetwork,
    setup: &MultipathSetup,
    pair: &mut RunningPair,
) -> Result<(), LiveError> {
    let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT);
    let mut parameters = SctpListenParameters::new(any);
    let inside_udp = setup.stack == MultipathStack::EyasUdp;
    parameters.encapsulation_port = inside_udp.then_some(ENCAPSULATION);
    parameters.over_ip = if inside_udp { SctpOverIp::No } else { SctpOverIp::Must };
    parameters.association = config(setup);
    let (shared, setup) = (pair.shared.clone(), setup.clone());
    let (sender, listening) = sync_channel(1);
    pair.threads.push(network.thread(HostRole::Server, move || {
        run_until_finished(&shared, "the receiver", async {
            let listener = SctpListener::bind(&parameters)?;
            let _ = sender.send(());
            let association = listener.accept().await;
            let receiving = receive_all(&shared, &setup, &association);
            if !setup.application.both_ways {
                return receiving.await;
            }
            tokio::try_join!(receiving, send_bulk(&shared, &setup, &association)).map(drop)
        });
    })?);
    // If it ends early, its failure is reported.
    let _ = listening.recv();
    Ok(())
}

async fn receive_all(
    shared: &PairState,
    setup: &MultipathSetup,
    association: &SctpAssociation,
) -> Result<(), TransferError> {
    loop {
        let message = association.receive().await?.ok_or(TransferError::SenderClosed)?;
        if let Some(fell) = fell(setup, &message) {
            shared.keystroke_arrived(fell);
        }
        shared.arrived(message.len());
    }
}

/// Receives what the receiver sends, if both hosts do.
async fn receive_back(
    shared: &PairState,
    association: &SctpAssociation,
) -> Result<(), TransferError> {
    loop {
        let message = association.receive().await?.ok_or(TransferError::ReceiverClosed)?;
        shared.arrived_back(message.len());
    }
}

/// Sends a keystroke each time this has passed, on a stream of their own. One that finds no room waits for
/// it, and counts from when it fell.
async fn send_keystrokes(
    shared: &PairState,
    setup: &MultipathSetup,
    association: &SctpAssociation,
) -> Result<(), TransferError> {
    let Some(every) = setup.application.keystrokes else { return Ok(()) };
    let info = SendInfo { stream: keystroke_stream(setup), ..SendInfo::default() };
    let mut falls = shared.elapsed();
    while !shared.is_finished() {
        tokio::time::sleep(falls.saturating_sub(shared.elapsed())).await;
        let message = simulation::stamped(falls, simulation::KEYSTROKE);
        association.send(&info, message).await?;
        falls += every.0;
    }
    Ok(())
}

/// Returns the stream of keystrokes, after those of the bulk.
const fn keystroke_stream(setup: &MultipathSetup) -> StreamId {
    StreamId(setup.application.streams)
}

/// Returns when a message fell, if it is a keystroke.
fn fell(setup: &MultipathSetup, message: &Message) -> Option<Duration> {
    let is_keystroke =
        setup.application.keystrokes.is_some() && message.stream == keystroke_stream(setup);
    let stamp = message.data.iter().next().filter(|_| is_keystroke)?.first_chunk()?;
    Some(Duration::from_nanos(u64::from_be_bytes(*stamp)))
}

/// Starts a sender on the client's host.
pub(super) fn send(
    network: &EmulatedNetwork,
    setup: &MultipathSetup,
    pair: &mut RunningPair,
) -> Result<(), LiveError> {
    let to = network.server()?;
    let (shared, setup) = (pair.shared.clone(), setup.clone());
    pair.threads.push(network.thread(HostRole::Client, move || {
        run_until_finished(&shared, "the sender", send_until_finished(shared.clone(), setup, to));
    })?);
    Ok(())
}

/// Connects, and sends until the end.
async fn send_until_finished(
    shared: Arc<PairState>,
    setup: MultipathSetup,
    to: IpAddr,
) -> Result<(), TransferError> {
    let transport = match setup.stack {
        MultipathStack::EyasUdp => Transport::SctpUdp,
        _ => Transport::Sctp,
    };
    let endpoint = Endpoint::builder()
        .memory(MemoryStore::none())
        .sctp_encapsulation_port(ENCAPSULATION)
        .sctp_association(config(&setup))
        .build()?;
    let host = Name::parse(&to.to_string())?;
    let target = Target::plain(host, PORT, vec![transport], Security::None);
    let policy = Policy { transports: vec![transport], ..Policy::default() };
    let connection = endpoint.preconnection(target).policy(policy).connect().await?;
    let association = connection.into_sctp().map_err(|_| TransferError::NotSctp)?;
    if association.queue(StreamId(0)).is_none() {
        return Err(TransferError::KernelSctp);
    }
    let back = async {
        match setup.application.both_ways {
            true => receive_back(&shared, &association).await,
            false => Ok(()),
        }
    };
    let keystrokes = send_keystrokes(&shared, &setup, &association);
    let sent = tokio::try_join!(send_bulk(&shared, &setup, &association), keystrokes, back);
    association.abort("measured");
    sent.map(drop)
}

/// Sends messages on the streams in turn until the end.
async fn send_bulk(
    shared: &PairState,
    setup: &MultipathSetup,
    association: &SctpAssociation,
) -> Result<(), TransferError> {
    let message = Bytes::from(vec![0x5a; setup.message()]);
    let streams = setup.application.streams;
    let mut skipped = 0;
    for stream in (0..streams).map(StreamId).cycle() {
        if shared.is_finished() {
            break;
        }
        if skips_stream(setup, association, stream) {
            skipped += 1;
            if skipped >= streams {
                tokio::time::sleep(RETRY_INTERVAL).await;
                skipped = 0;
            }
            continue;
        }
        skipped = 0;
        let info = SendInfo { stream, ..SendInfo::default() };
        association.send(&info, message.clone()).await?;
    }
    Ok(())
}

/// Returns whether a stream has enough, according to the association's queue information.
fn skips_stream(setup: &MultipathSetup, association: &SctpAssociation, stream: StreamId) -> bool {
    let queue = || association.queue(stream).unwrap_or_default();
    let streams = usize::from(setup.application.streams.max(1));
    match setup.application.queue_info {
        QueueInfo::None => false,
        QueueInfo::Share => {
            let buffer = setup.association.buffer.map_or(usize::MAX, |buffer| buffer.0);
            queue().total() >= buffer / streams
        }
        QueueInfo::Unsent => queue().unsent >= setup.message(),
    }
}
