//! No peer can break the sender, and a correct peer receives everything.

use alloc::collections::BTreeSet;
use proptest::prelude::*;

use super::*;
use crate::config::SchedulerKind;
use crate::message::MessageReliability;

/// An operation on a sender.
#[derive(Clone, Debug)]
enum Operation {
    Send {
        stream: u16,
        length: usize,
        reliability: MessageReliability,
        path: Option<u16>,
    },
    Output,
    /// Offsets from the cumulative TSN, and pairs of start and end; may be invalid.
    Sack {
        advance: i64,
        blocks: Vec<(u16, u16)>,
        non_renegable: Vec<(u16, u16)>,
        window: u32,
    },
    Duplicates(Vec<u32>),
    Time(u64),
    Timer,
    RemovePath(u16),
    AddPath,
    Pause(u16),
    Resume(u16),
    Echo(u32),
    Restart,
}

fn reliability() -> impl Strategy<Value = MessageReliability> {
    prop_oneof![
        3 => Just(MessageReliability::Reliable),
        1 => (1..3000_u64).prop_map(|time| MessageReliability::Lifetime(milliseconds(time))),
        1 => (0..3_u16).prop_map(MessageReliability::Retransmissions),
        1 => (0..5_u32).prop_map(MessageReliability::Priority),
    ]
}

fn blocks() -> impl Strategy<Value = Vec<(u16, u16)>> {
    let likely = prop::collection::vec((1..4_u16, 0..4_u16), 0..5).prop_map(|steps| {
        let mut at = 0;
        steps
            .into_iter()
            .map(|(gap, length)| {
                let start = at + 1 + gap;
                at = start + length;
                (start, at)
            })
            .collect()
    });
    prop_oneof![4 => likely, 1 => prop::collection::vec((0..20_u16, 0..20_u16), 0..4)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let message = (0..4_u16, 1..6000_usize, reliability(), prop::option::of(0..3_u16));
    let sack = (-2..8_i64, blocks(), blocks(), prop_oneof![Just(1 << 20), 0..5000_u32]);
    prop_oneof![
        6 => message.prop_map(|(stream, length, reliability, path)| Operation::Send {
            stream, length, reliability, path
        }),
        6 => Just(Operation::Output),
        8 => sack.prop_map(|(advance, blocks, non_renegable, window)| Operation::Sack {
            advance, blocks, non_renegable, window
        }),
        1 => prop::collection::vec(0..50_u32, 1..4).prop_map(Operation::Duplicates),
        2 => (0..3000_u64).prop_map(Operation::Time),
        2 => Just(Operation::Timer),
        1 => (0..3_u16).prop_map(Operation::RemovePath),
        1 => Just(Operation::AddPath),
        1 => (0..4_u16).prop_map(Operation::Pause),
        1 => (0..4_u16).prop_map(Operation::Resume),
        1 => (0..50_u32).prop_map(Operation::Echo),
        1 => Just(Operation::Restart),
    ]
}

fn as_blocks(pairs: &[(u16, u16)]) -> Vec<GapBlock> {
    pairs.iter().map(|&(start, end)| GapBlock { start, end }).collect()
}

fn apply(bench: &mut Bench, operation: &Operation) {
    match operation {
        Operation::Send { stream, length, reliability, path } => {
            let path = path.map(PathId);
            let info = SendInfo { reliability: *reliability, path, ..on(*stream) };
            match bench.send(info, *length) {
                Ok(()) | Err(Error::Full) => {}
                Err(other) => panic!("{other}"),
            }
        }
        Operation::Output => {
            bench.any_output();
        }
        Operation::Sack { advance, blocks, non_renegable, window } => {
            let from = bench.sender.cumulative_tsn_acked();
            let (gap_blocks, nr_gap_blocks) = (as_blocks(blocks), as_blocks(non_renegable));
            let sack = SackBuilder {
                cumulative_tsn: Tsn(from.0.wrapping_add(*advance as u32)),
                a_rwnd: *window,
                gap_blocks: &gap_blocks,
                nr_gap_blocks: &nr_gap_blocks,
                is_nr: !non_renegable.is_empty(),
                ..Default::default()
            };
            bench.handle(&sack.build());
        }
        Operation::Duplicates(offsets) => {
            let from = bench.sender.cumulative_tsn_acked();
            let duplicates: Vec<Tsn> = offsets.iter().map(|offset| from.plus(*offset)).collect();
            let sack = SackBuilder {
                cumulative_tsn: from,
                a_rwnd: 1 << 20,
                duplicates: &duplicates,
                ..Default::default()
            };
            bench.handle(&sack.build());
        }
        Operation::Time(time) => {
            bench.pass(milliseconds(*time));
            bench.sender.handle_timeout(bench.now, &mut bench.paths);
        }
        Operation::Timer => {
            if bench.sender.next_timeout(&bench.paths).is_some() {
                bench.timeout();
            }
        }
        Operation::RemovePath(path) => {
            bench.paths.remove(PathId(*path));
            bench.sender.paths_changed(bench.now, &mut bench.paths);
        }
        Operation::AddPath => {
            bench.add_path();
        }
        Operation::Pause(stream) => bench.sender.pause_streams(&[StreamId(*stream)]),
        Operation::Resume(stream) => bench.sender.resume_streams(&[StreamId(*stream)]),
        Operation::Echo(offset) => {
            let tsn = bench.sender.cumulative_tsn_acked().plus(*offset);
            bench.sender.handle_ecne(bench.now, tsn, PathId(0), &mut bench.paths);
        }
        Operation::Restart => bench.restart(),
    }
    bench.check();
    bench.bounded();
}

impl Bench {
    /// Like [`Bench::output`], with either kind of data chunk and FORWARD-TSN; returns the TSNs.
    fn any_output(&mut self) -> (Vec<Tsn>, Option<Tsn>) {
        let (mut tsns, mut forward) = (Vec::new(), None);
        let ids: Vec<PathId> = self.paths.iter().map(|path| path.id).collect();
        for id in ids {
            while let Some(path) = self.paths.get(id) {
                let (allowance, mtu) = (path.allowance(self.now, path.mtu()), path.mtu());
                let mut buffer = BytesMut::new();
                let limit = self.sender.packet_limit(id, mtu);
                let mut packet = PacketWriter::begin(&mut buffer, HEADER, limit);
                if self.sender.forward_tsn_due() {
                    self.sender.write_forward_tsn(self.now, id, &mut self.paths, &mut packet);
                }
                let mut bytes = 0;
                if matches!(allowance, SendAllowance::Now(_)) {
                    let (paths, counters) = (&mut self.paths, &mut self.counters);
                    bytes = self.sender.fill(self.now, id, paths, &mut packet, counters);
                }
                let is_empty = packet.is_empty();
                packet.finish(ChecksumKind::Crc32c);
                let contents = buffer.freeze();
                let (_, chunks) =
                    PacketParser::parse(&contents, ChecksumKind::Crc32c).expect("a packet");
                for chunk in chunks {
                    match chunk {
                        Chunk::Data(data) => tsns.push(data.tsn),
                        Chunk::ForwardTsn(chunk) => forward = Some(chunk.new_cumulative_tsn),
                        Chunk::IForwardTsn(chunk) => forward = Some(chunk.new_cumulative_tsn),
                        other => panic!("{other:?} from the sending side"),
                    }
                }
                if is_empty || bytes == 0 {
                    break;
                }
            }
        }
        (tsns, forward)
    }

    fn restart(&mut self) {
        let next = self.sender.next_tsn().plus(1000);
        let terms = SenderTerms { initial_tsn: next, ..*self.sender.terms() };
        // The association creates new paths when its peer restarts.
        let remote = SocketAddr::from(([192, 0, 2, 1], 0));
        self.paths = AssociationPaths::new(remote, None, &self.config, [7; 32]);
        self.sender.paths_changed(self.now, &mut self.paths);
        self.sender.restart(terms, &mut self.paths);
    }

    /// Memory is bounded by what was queued.
    fn bounded(&self) {
        assert!(self.sender.queue.queued() <= self.sender.queue.limit());
        assert!(self.sender.queue.len() <= 2 * self.sender.queue.max_messages());
        for flight in self.sender.outstanding.flights() {
            assert!(flight.runs().count() <= 4 * self.sender.outstanding.len() + 4096);
        }
    }
}

fn schedulers() -> impl Strategy<Value = SchedulerKind> {
    prop::sample::select(&SchedulerKind::ALL[..])
}

fn detections() -> impl Strategy<Value = LossDetection> {
    prop_oneof![Just(LossDetection::Classic), Just(LossDetection::Rack)]
}

fn bench(scheduler: SchedulerKind, detection: LossDetection, interleaving: bool) -> Bench {
    let config = AssociationConfig {
        scheduler: scheduler.into(),
        loss_detection: detection,
        send_buffer: 40_000,
        ..config()
    };
    Bench::with(config, SenderTerms { interleaving, ..terms() })
}

/// A peer that keeps and acknowledges everything that it receives.
#[derive(Default)]
struct Peer {
    /// Chunks counted from the first one.
    held: BTreeSet<u32>,
    cumulative: u32,
}

impl Peer {
    fn receive(&mut self, tsn: Tsn) {
        self.held.insert(tsn.distance_from(FIRST));
        self.advance();
    }

    fn forward(&mut self, tsn: Tsn) {
        let to = tsn.next().distance_from(FIRST);
        self.cumulative = self.cumulative.max(to);
        self.advance();
    }

    fn advance(&mut self) {
        while self.held.contains(&self.cumulative) {
            self.cumulative += 1;
        }
        let cumulative = self.cumulative;
        self.held.retain(|chunk| *chunk >= cumulative);
    }

    fn sack(&self) -> SackChunk {
        let mut beyond: Vec<(u32, u32)> = Vec::new();
        for chunk in &self.held {
            match beyond.last_mut() {
                Some(last) if last.1 + 1 == *chunk => last.1 = *chunk,
                _ => beyond.push((*chunk, *chunk)),
            }
        }
        sack(self.cumulative, &beyond, 1 << 20)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    //= rfc3758 §3.5 A2
    //# an abandoned chunk counts as acknowledged, and opens no window
    #[test]
    fn arbitrary_sacks_never_break_the_sender(
        operations in prop::collection::vec(operation(), 1..120),
        scheduler in schedulers(),
        detection in detections(),
        interleaving: bool,
    ) {
        let mut bench = bench(scheduler, detection, interleaving);
        for operation in &operations {
            apply(&mut bench, operation);
        }
    }

    #[test]
    fn a_fair_peer_gets_everything(
        messages in prop::collection::vec((0..4_u16, 1..6000_usize, reliability()), 1..40),
        losses in prop::collection::vec(0..5_u8, 200),
        scheduler in schedulers(),
        detection in detections(),
        interleaving: bool,
        two_paths: bool,
    ) {
        let mut bench = bench(scheduler, detection, interleaving);
        if two_paths {
            bench.add_path();
        }
        let (mut peer, mut left) = (Peer::default(), messages.into_iter().peekable());
        let mut losses = losses.into_iter();
        for round in 0.. {
            prop_assert!(round < 2000, "no progress: {:?}", bench.sender);
            while let Some((stream, length, reliability)) = left.peek().copied() {
                let info = SendInfo { reliability, ..on(stream) };
                if bench.send(info, length) == Err(Error::Full) {
                    break;
                }
                left.next();
            }
            let (tsns, forward) = bench.any_output();
            bench.pass(milliseconds(20));
            let sent = !tsns.is_empty() || forward.is_some();
            let arrives = |losses: &mut dyn Iterator<Item = u8>| losses.next() != Some(0);
            tsns.into_iter().filter(|_| arrives(&mut losses)).for_each(|tsn| peer.receive(tsn));
            forward.filter(|_| arrives(&mut losses)).into_iter().for_each(|tsn| peer.forward(tsn));
            if sent && arrives(&mut losses) {
                bench.handle(&peer.sack());
            }
            if bench.sender.is_drained() && left.peek().is_none() {
                break;
            }
            if let Some(at) = bench.sender.next_timeout(&bench.paths) && (!sent || at <= bench.now) {
                bench.timeout();
            }
            bench.check();
        }
        prop_assert_eq!(bench.sender.queued_bytes(), 0);
        prop_assert_eq!(bench.sender.in_flight(), 0);
        prop_assert_eq!(bench.counters.bad_sacks, 0);
    }
}
