//! Arbitrary arrivals of a correct peer's data, and arbitrary chunks of a hostile one.

use super::*;
use crate::wire::{ForwardTsnChunk, IForwardTsnChunk, SkippedMid, SkippedSsn};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use proptest::prelude::*;

/// A message that a peer sends: stream, whether unordered, in how many fragments.
type Sent = (u16, bool, usize);

fn text(index: usize, fragment: usize) -> Bytes {
    Bytes::from(format!("<{index}.{fragment}>"))
}

fn whole_text(index: usize, fragments: usize) -> Vec<u8> {
    (0..fragments).flat_map(|fragment| text(index, fragment)).collect()
}

/// The chunks of these messages, in TSN order. With I-DATA, messages of different streams are
/// interleaved according to `mix`.
fn chunks_of(messages: &[Sent], interleaving: bool, mix: &[u8]) -> Vec<DataChunk> {
    let mut numbers: BTreeMap<(u16, bool), u32> = BTreeMap::new();
    let mut queues: BTreeMap<u16, alloc::collections::VecDeque<DataChunk>> = BTreeMap::new();
    for (index, &(stream, unordered, fragments)) in messages.iter().enumerate() {
        let number = numbers.entry((stream, unordered)).or_default();
        for fragment in 0..fragments {
            let fsn = u32::try_from(fragment).expect("small");
            let queue = if interleaving { stream } else { 0 };
            queues.entry(queue).or_default().push_back(DataChunk {
                tsn: Tsn(0),
                stream: StreamId(stream),
                flags: DataFlags {
                    unordered,
                    begin: fragment == 0,
                    end: fragment + 1 == fragments,
                    immediate: false,
                },
                order: match interleaving {
                    true => DataOrder::Mid { mid: Mid(*number), fsn },
                    false => DataOrder::Ssn(Ssn(*number as u16)),
                },
                ppid: Ppid(if interleaving && fragment > 0 { 0 } else { 9 }),
                payload: text(index, fragment),
            });
        }
        *number += 1;
    }
    let mut chunks = Vec::new();
    let mut mix = mix.iter().cycle();
    while !queues.is_empty() {
        let pick = usize::from(*mix.next().unwrap_or(&0)) % queues.len();
        let stream = *queues.keys().nth(pick).expect("one of them");
        let queue = queues.get_mut(&stream).expect("it exists");
        let mut chunk = queue.pop_front().expect("it is not empty");
        if queue.is_empty() {
            queues.remove(&stream);
        }
        chunk.tsn = tsn(u32::try_from(chunks.len()).expect("small"));
        chunks.push(chunk);
    }
    chunks
}

/// An application that reassembles the parts of messages.
#[derive(Default)]
struct Application {
    open: BTreeMap<(u16, bool, u32), Vec<u8>>,
    whole: Vec<(u16, bool, Vec<u8>)>,
}

impl Application {
    fn take(&mut self, message: Message) -> Result<(), TestCaseError> {
        let key = (message.stream.0, message.unordered, message.number);
        // Parts of an unordered message in DATA chunks are identified by their stream alone.
        let key = if message.unordered { (key.0, true, 0) } else { key };
        prop_assert_eq!(message.begins, !self.open.contains_key(&key));
        prop_assert_eq!(message.ppid, Ppid(9));
        let ends = message.ends;
        self.open.entry(key).or_default().extend(message.into_bytes());
        if ends && let Some(data) = self.open.remove(&key) {
            self.whole.push((key.0, key.1, data));
        }
        Ok(())
    }
}

/// The TSN offsets that a SACK reports, without those up to the cumulative TSN ack.
fn reported(sack: &SackChunk) -> BTreeSet<u32> {
    let cumulative = sack.cumulative_tsn.distance_from(tsn(0).previous());
    gaps(sack)
        .into_iter()
        .flat_map(|(start, end)| start..=end)
        .map(|offset| cumulative + u32::from(offset) - 1)
        .collect()
}

/// Checks a SACK against the set of all TSN offsets that have arrived.
fn check_sack(sack: &SackChunk, arrived: &BTreeSet<u32>) -> Result<(), TestCaseError> {
    let missing = (0..).find(|offset| !arrived.contains(offset)).expect("not all of them");
    prop_assert_eq!(sack.cumulative_tsn, tsn(missing).previous());
    let above: BTreeSet<u32> = arrived.range(missing..).copied().collect();
    prop_assert_eq!(reported(sack), above);
    let blocks = gaps(sack);
    prop_assert!(blocks.iter().all(|(start, end)| start <= end && *start >= 2));
    prop_assert!(blocks.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
    Ok(())
}

fn arrivals_give_the_messages(
    messages: &[Sent],
    interleaving: bool,
    (mix, arrivals, reads): (&[u8], &[u16], &[bool]),
    point: usize,
) -> Result<(), TestCaseError> {
    let chunks = chunks_of(messages, interleaving, mix);
    let mut config = config();
    config.partial_delivery_point = Some(point);
    let mut side = Side::with(&config, interleaving, false);
    let mut application = Application::default();
    let mut arrived = BTreeSet::new();
    let picked = arrivals.iter().map(|pick| usize::from(*pick) % chunks.len());
    let mut reads = reads.iter().cycle();
    for index in picked.chain(0..chunks.len()) {
        let new = arrived.insert(u32::try_from(index).expect("small"));
        let expected = if new { DataOutcome::Accepted } else { DataOutcome::Duplicate };
        prop_assert_eq!(side.chunk(&chunks[index]), expected);
        check_sack(&side.sack(), &arrived)?;
        if reads.next() == Some(&true) {
            while let Some(message) = side.receiver.receive() {
                application.take(message)?;
            }
        }
    }
    while let Some(message) = side.receiver.receive() {
        application.take(message)?;
    }
    prop_assert!(application.open.is_empty());
    prop_assert_eq!(side.receiver.memory(), 0);
    for stream in 0..4 {
        for unordered in [false, true] {
            let of = |index: usize, sent: &Sent| {
                ((sent.0, sent.1) == (stream, unordered)).then(|| whole_text(index, sent.2))
            };
            let mut sent: Vec<_> =
                messages.iter().enumerate().filter_map(|(index, one)| of(index, one)).collect();
            let mut got: Vec<_> = application
                .whole
                .iter()
                .filter(|one| (one.0, one.1) == (stream, unordered))
                .map(|one| one.2.clone())
                .collect();
            if unordered {
                sent.sort();
                got.sort();
            }
            prop_assert_eq!(sent, got);
        }
    }
    Ok(())
}

fn sent(unordered: impl Strategy<Value = bool>) -> impl Strategy<Value = Sent> {
    (0_u16..4, unordered, prop_oneof![3 => Just(1_usize), 2 => 2_usize..6])
}

proptest! {
    #[test]
    fn data_arrives_in_any_order_and_is_delivered_in_the_right_one(
        messages in prop::collection::vec(sent(any::<bool>()), 1..25),
        arrivals in prop::collection::vec(any::<u16>(), 0..80),
        reads in prop::collection::vec(any::<bool>(), 1..9),
    ) {
        arrivals_give_the_messages(&messages, false, (&[0], &arrivals, &reads), 1 << 20)?;
    }

    //= rfc8260 §2.2.3
    //# I-DATA is reassembled by stream, U bit, message and fragment number, not by TSN
    #[test]
    fn i_data_arrives_in_any_order_and_is_delivered_in_the_right_one(
        messages in prop::collection::vec(sent(any::<bool>()), 1..25),
        mix in prop::collection::vec(any::<u8>(), 1..20),
        arrivals in prop::collection::vec(any::<u16>(), 0..80),
        reads in prop::collection::vec(any::<bool>(), 1..9),
    ) {
        arrivals_give_the_messages(&messages, true, (&mix, &arrivals, &reads), 1 << 20)?;
    }

    #[test]
    fn parts_of_ordered_messages_make_the_same_messages(
        messages in prop::collection::vec(sent(Just(false)), 1..25),
        interleaving: bool,
        mix in prop::collection::vec(any::<u8>(), 1..20),
        arrivals in prop::collection::vec(any::<u16>(), 0..80),
        reads in prop::collection::vec(any::<bool>(), 1..9),
        point in 1_usize..16,
    ) {
        arrivals_give_the_messages(&messages, interleaving, (&mix, &arrivals, &reads), point)?;
    }
}

/// An action of a hostile peer.
#[derive(Clone, Debug)]
enum HostileAction {
    Data(DataChunk),
    Forward(i16, Vec<(u16, bool, u32)>),
    Read,
    Reset(Vec<u16>),
}

fn chunk() -> impl Strategy<Value = DataChunk> {
    let flags = prop_oneof![2 => Just(3_u8), 1 => Just(7_u8), 1 => 0_u8..16];
    let place = (-3_i32..60, 0_u16..18, flags, 0_u32..5, 0_u32..6);
    (place, prop_oneof![9 => 1_usize..40, 1 => 0_usize..9000], any::<bool>()).prop_map(
        |((offset, stream, flags, number, fsn), length, interleaved)| {
            let flags = DataFlags::from_bits(flags);
            let fsn = if flags.begin { 0 } else { fsn };
            DataChunk {
                tsn: tsn(0).plus(offset.cast_unsigned()),
                stream: StreamId(stream),
                flags,
                order: match interleaved {
                    true => DataOrder::Mid { mid: Mid(number), fsn },
                    false => DataOrder::Ssn(Ssn(number as u16)),
                },
                ppid: Ppid(1),
                payload: Bytes::from(alloc::vec![b'x'; length]),
            }
        },
    )
}

fn action() -> impl Strategy<Value = HostileAction> {
    let skips = prop::collection::vec((0_u16..18, any::<bool>(), 0_u32..6), 0..6);
    prop_oneof![
        20 => chunk().prop_map(HostileAction::Data),
        2 => (-5_i16..70, skips).prop_map(|(offset, skips)| HostileAction::Forward(offset, skips)),
        3 => Just(HostileAction::Read),
        1 => prop::collection::vec(0_u16..18, 0..4).prop_map(HostileAction::Reset),
    ]
}

/// Applies an action; returns whether the association would survive it.
fn apply(side: &mut Side, action: &HostileAction, interleaving: bool) -> bool {
    match action {
        HostileAction::Data(chunk) => {
            let mut chunk = chunk.clone();
            // Mostly of the right kind, since otherwise everything would be rejected.
            if let (false, DataOrder::Mid { mid, .. }) = (interleaving, chunk.order) {
                chunk.order = DataOrder::Ssn(Ssn(mid.0 as u16));
            }
            !matches!(side.chunk(&chunk), DataOutcome::Violation(_))
        }
        HostileAction::Forward(offset, skips) => {
            let to = tsn(0).plus(i32::from(*offset).cast_unsigned());
            let ssns: Vec<SkippedSsn> = skips
                .iter()
                .map(|one| SkippedSsn { stream: StreamId(one.0), ssn: Ssn(one.2 as u16) })
                .collect();
            let mids: Vec<SkippedMid> = skips
                .iter()
                .map(|one| SkippedMid {
                    stream: StreamId(one.0),
                    unordered: one.1,
                    mid: Mid(one.2),
                })
                .collect();
            let chunk = IForwardTsnChunk::new(to, &mids);
            let result = if interleaving {
                side.receiver.handle_i_forward_tsn(&chunk, &mut side.counters)
            } else {
                let chunk = ForwardTsnChunk::new(to, &ssns);
                side.receiver.handle_forward_tsn(&chunk, &mut side.counters)
            };
            side.receiver.end_of_packet(side.now, (PATH, None), 40, false);
            result.is_ok()
        }
        HostileAction::Read => {
            side.receiver.receive();
            true
        }
        HostileAction::Reset(streams) => {
            let streams: Vec<StreamId> = streams.iter().map(|stream| StreamId(*stream)).collect();
            side.receiver.reset_streams(&streams);
            true
        }
    }
}

/// Memory is accounted only for queued data: once everything is read and abandoned, there is none.
fn nothing_leaks(side: &mut Side, interleaving: bool) -> Result<(), TestCaseError> {
    side.receive();
    let to = side.receiver.highest_tsn().plus(1);
    let streams = 0..16;
    if interleaving {
        let skip =
            |stream, unordered| SkippedMid { stream: StreamId(stream), unordered, mid: Mid(9) };
        let skips: Vec<_> =
            streams.flat_map(|stream| [skip(stream, false), skip(stream, true)]).collect();
        let chunk = IForwardTsnChunk::new(to, &skips);
        let _ = side.receiver.handle_i_forward_tsn(&chunk, &mut side.counters);
    } else {
        let skips: Vec<_> =
            streams.map(|stream| SkippedSsn { stream: StreamId(stream), ssn: Ssn(9) }).collect();
        let chunk = ForwardTsnChunk::new(to, &skips);
        let _ = side.receiver.handle_forward_tsn(&chunk, &mut side.counters);
    }
    side.receive();
    side.receiver.reset_streams(&[]);
    prop_assert_eq!(side.receiver.memory(), 0);
    Ok(())
}

proptest! {
    //= rfc9260 §6.2
    //# data reported beyond gaps MAY be dropped; it never is
    #[test]
    fn nothing_that_a_peer_sends_breaks_the_bounds(
        actions in prop::collection::vec(action(), 0..150),
        interleaving: bool,
        nr_sack: bool,
    ) {
        let mut config = config();
        config.receive_buffer = 10_000;
        config.partial_delivery_point = Some(2000);
        let mut side = Side::with(&config, interleaving, nr_sack);
        let mut survives = true;
        for action in &actions {
            survives &= apply(&mut side, action, interleaving);
            prop_assert!(side.receiver.memory() <= side.receiver.window.memory_bound());
            let sack = side.sack();
            let blocks = gaps(&sack);
            prop_assert!(blocks.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
        if survives {
            nothing_leaks(&mut side, interleaving)?;
        }
    }
}
