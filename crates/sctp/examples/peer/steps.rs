//! The steps on the command line, in order.

use std::error::Error as Failure;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_sctp::identifier::{Ppid, StreamId};
use eyas_sctp::message::{MessageReliability, SendInfo};

use crate::content;
use crate::options::number;
use crate::peer::Peer;

/// How long to keep running after the last step.
const LINGER: Duration = Duration::from_millis(200);
/// The number of messages sent before received packets are processed.
const BATCH: u32 = 64;

/// Not assigned to any protocol: a packet analyser would try to decode the payload of an assigned
/// one.
const PPID: Ppid = Ppid(0x6579_6173);

/// Runs all steps, then stays for a moment.
pub(crate) fn run(peer: &mut Peer, steps: &[String]) -> Result<(), Box<dyn Failure>> {
    peer.until(|peer| peer.is_up)?;
    for step in steps {
        let (name, rest) = step.split_once(':').unwrap_or((step, ""));
        one(peer, name, rest).map_err(|error| format!("{step}: {error}"))?;
    }
    pause(peer, LINGER)
}

fn one(peer: &mut Peer, name: &str, rest: &str) -> Result<(), Box<dyn Failure>> {
    let now = peer.now();
    let id = peer.id.ok_or("there is no association")?;
    match name {
        "send" => send(peer, rest)?,
        "receive" => {
            let count = number(rest)?;
            peer.until(|peer| peer.arrived.messages >= count)?;
        }
        "dry" => {
            peer.until(|peer| peer.endpoint.status(id).is_none_or(|status| status.queued == 0))?
        }
        "reset" => reset(peer, rest)?,
        "add" => {
            let address = rest.parse()?;
            peer.carrier.add(address)?;
            peer.endpoint.association_mut(now, id)?.add_address(address)?;
        }
        "remove" => peer.endpoint.association_mut(now, id)?.remove_address(rest.parse()?)?,
        "restart" => {
            // As if this host had lost its state: the peer is not informed.
            peer.endpoint.forget(now, id);
            peer.connect()?;
            peer.until(|peer| peer.is_up)?;
        }
        "sleep" => pause(peer, Duration::from_millis(number(rest)?))?,
        "shutdown" => {
            peer.endpoint.shutdown(now, id)?;
            peer.until(|_| false)?;
        }
        "abort" => {
            peer.endpoint.abort(now, id, Bytes::from_static(b"away"))?;
            pause(peer, LINGER)?;
        }
        "wait" => peer.until(|_| false)?,
        _ => return Err("there is no such step".into()),
    }
    Ok(())
}

/// Lets time pass, while handling pending work.
pub(crate) fn pause(peer: &mut Peer, time: Duration) -> Result<(), Box<dyn Failure>> {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        peer.turn(left.min(Duration::from_millis(20)))?;
    }
    Ok(())
}

/// `COUNT:SIZES:STREAMS[:unordered|:lifetime=MS|:retransmit=N]`
fn send(peer: &mut Peer, rest: &str) -> Result<(), Box<dyn Failure>> {
    let words: Vec<&str> = rest.split(':').collect();
    let [count, sizes, streams, how @ ..] = words.as_slice() else {
        return Err("COUNT:SIZES:STREAMS".into());
    };
    let count: u32 = number(count)?;
    let streams: u32 = number(streams)?;
    let sizes: Vec<usize> = sizes.split(',').map(number).collect::<Result<_, _>>()?;
    let mut info = SendInfo::default();
    match how.first().map(|how| how.split_once('=').unwrap_or((how, ""))) {
        None => {}
        Some(("unordered", _)) => info.unordered = true,
        Some(("lifetime", time)) => {
            info.reliability = MessageReliability::Lifetime(Duration::from_millis(number(time)?));
        }
        Some(("retransmit", times)) => {
            info.reliability = MessageReliability::Retransmissions(number(times)?);
        }
        Some((other, _)) => return Err(format!("unknown message option {other}").into()),
    }
    for (round, size) in (0..count).zip(sizes.iter().cycle()) {
        let index = peer.next;
        peer.next += 1;
        info.stream = StreamId((index % streams.max(1)) as u16);
        info.ppid = PPID;
        peer.send(&info, &content::message(index, *size))?;
        if round % BATCH == 0 {
            peer.turn(Duration::ZERO)?;
        }
    }
    Ok(())
}

fn reset(peer: &mut Peer, list: &str) -> Result<(), Box<dyn Failure>> {
    let streams: Vec<StreamId> =
        list.split(',').map(|one| number(one).map(StreamId)).collect::<Result<_, _>>()?;
    let id = peer.id.ok_or("there is no association")?;
    let before = peer.events.len();
    peer.endpoint.association_mut(peer.now(), id)?.reset_streams(true, &streams)?;
    peer.until(|peer| {
        peer.events[before..].iter().any(|event| event.starts_with("reset outgoing"))
    })?;
    Ok(())
}
