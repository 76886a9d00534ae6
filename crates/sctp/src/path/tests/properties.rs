//! Paths under arbitrary events: nothing overflows, timers are in the future, data is never sent to
//! an unconfirmed address, and every window admits at least one packet.

use alloc::vec::Vec;
use core::net::SocketAddr;

use proptest::prelude::*;

use super::*;
use crate::config::CongestionControlKind;
use crate::congestion::{CongestionKind, PacketNumber};

#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    Add(u8),
    Remove(u16),
    Send(u16, usize, bool),
    Acknowledge(u16, u32, bool),
    Lose(u16, u32),
    Forget(u16, u32),
    Congestion(u16, bool),
    Recovered(u16),
    Timeout(u16),
    Error(u16),
    Suspect(u16),
    SetPrimary(u16),
    Answer(usize, bool),
    TooBig(u16, u16),
    Ask(u16),
}

fn event() -> impl Strategy<Value = Event> {
    let path = 0..5_u16;
    prop_oneof![
        4 => prop_oneof![0..50_u64, Just(1_000), Just(40_000), Just(700_000)].prop_map(Event::Pass),
        1 => (1..5_u8).prop_map(Event::Add),
        1 => path.clone().prop_map(Event::Remove),
        6 => (path.clone(), 1..9000_usize, any::<bool>())
            .prop_map(|(path, bytes, last)| Event::Send(path, bytes, last)),
        6 => (path.clone(), 0..40_u32, any::<bool>())
            .prop_map(|(path, packet, once)| Event::Acknowledge(path, packet, once)),
        2 => (path.clone(), 0..40_u32).prop_map(|(path, packet)| Event::Lose(path, packet)),
        1 => (path.clone(), 0..40_u32).prop_map(|(path, packet)| Event::Forget(path, packet)),
        1 => (path.clone(), any::<bool>()).prop_map(|(path, mark)| Event::Congestion(path, mark)),
        1 => path.clone().prop_map(Event::Recovered),
        1 => path.clone().prop_map(Event::Timeout),
        1 => path.clone().prop_map(Event::Error),
        1 => path.clone().prop_map(Event::Suspect),
        1 => path.clone().prop_map(Event::SetPrimary),
        3 => (0..4_usize, any::<bool>()).prop_map(|(which, forged)| Event::Answer(which, forged)),
        1 => (path.clone(), any::<u16>()).prop_map(|(path, size)| Event::TooBig(path, size)),
        1 => path.prop_map(Event::Ask),
    ]
}

struct Bench {
    paths: AssociationPaths,
    config: AssociationConfig,
    now: Duration,
    outstanding: Vec<HeartbeatToSend>,
}

impl Bench {
    fn new(kind: CongestionControlKind) -> Self {
        let config =
            AssociationConfig { congestion_control: kind.into(), ..AssociationConfig::default() };
        let mut paths = AssociationPaths::new(address(1), None, &config, [1; 32]);
        paths.start();
        Self { paths, config, now: Duration::from_secs(1), outstanding: Vec::new() }
    }

    fn apply(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Pass(milliseconds) => self.now += Duration::from_millis(milliseconds),
            Event::Add(last) => {
                self.paths.add(address(last), None, &self.config);
            }
            Event::Remove(id) => drop(self.paths.remove(PathId(id))),
            Event::Error(id) => self.paths.on_error(PathId(id), &self.config),
            Event::Suspect(id) => self.paths.suspect(PathId(id)),
            Event::SetPrimary(id) => drop(self.paths.set_primary(PathId(id))),
            Event::TooBig(id, size) => self.paths.on_too_big(now, PathId(id), size),
            Event::Ask(id) => self.paths.request_heartbeat(PathId(id)),
            Event::Answer(which, forged) => self.answer(which, forged),
            Event::Send(id, ..)
            | Event::Acknowledge(id, ..)
            | Event::Lose(id, _)
            | Event::Forget(id, _)
            | Event::Congestion(id, _)
            | Event::Recovered(id)
            | Event::Timeout(id) => {
                let siblings = self.paths.siblings(PathId(id));
                if let Some(path) = self.paths.get_mut(PathId(id)) {
                    apply_to(path, now, &event, siblings);
                }
            }
        }
    }

    fn answer(&mut self, which: usize, forged: bool) {
        let Some(heartbeat) = self.outstanding.get(which).copied() else { return };
        let mut info = heartbeat.info;
        if forged {
            info[5] ^= 1;
        }
        let taken = self.paths.on_heartbeat_ack(self.now, &info, None);
        assert!(!(forged && taken), "a forged answer was taken");
        self.outstanding.remove(which);
    }

    fn check(&mut self) {
        self.paths.handle_timeout(self.now, &self.config);
        let before = self.outstanding.len();
        while let Some(heartbeat) = self.paths.poll_heartbeat(self.now, &self.config) {
            self.outstanding.push(heartbeat);
            assert!(self.outstanding.len() < before + 20, "endless heartbeats");
        }
        let surplus = self.outstanding.len().saturating_sub(4);
        self.outstanding.drain(..surplus);
        assert!(self.paths.next_timeout().is_none_or(|at| at > self.now), "a timer in the past");
        assert!(self.paths.get(self.paths.primary()).is_some());
        if let Some(id) = self.paths.for_data(None) {
            let state = self.paths.get(id).map(Path::state);
            assert_ne!(state, Some(PathState::Unconfirmed));
        }
        for path in self.paths.iter() {
            assert!(path.congestion.window() > 0);
            assert!(path.mtu().is_multiple_of(4) && path.mtu() >= 500);
            if path.outstanding() == 0 {
                assert_ne!(path.allowance(self.now, 1000), SendAllowance::Closed);
            }
        }
    }
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 9899))
}

/// An event that the sender reports to a path. More may be acknowledged or lost than was sent: the
/// path must tolerate it.
fn apply_to(
    path: &mut Path,
    now: Duration,
    event: &Event,
    siblings: crate::congestion::SiblingPaths,
) {
    let return_path =
        |path: &Path, packet: u32| PacketNumber(path.next_packet().0.wrapping_sub(packet));
    match *event {
        Event::Send(_, bytes, last) => path.on_sent(now, bytes, last),
        Event::Acknowledge(_, packet, once) => {
            let packet = return_path(path, packet);
            path.on_chunk_acknowledged(now, packet, 1000);
            let rtt = once.then(|| Duration::from_micros(u64::from(packet.0) * 777));
            let answered = rtt.map(|rtt| (PathId(0), rtt));
            let progress =
                PathProgress { cumulative_advanced: once, rtt, answered, peer_sends: false };
            path.on_sack(now, progress, siblings);
        }
        Event::Lose(_, packet) => path.on_chunk_lost(now, return_path(path, packet), 1000),
        Event::Forget(_, packet) => path.on_chunk_forgotten(return_path(path, packet), 1000),
        Event::Congestion(_, mark) => {
            let kind = if mark { CongestionKind::Ecn } else { CongestionKind::Loss };
            path.on_congestion(now, kind, siblings);
        }
        Event::Recovered(_) => path.on_recovered(now),
        Event::Timeout(_) => path.on_timeout(now, siblings),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_events_never_break_paths(
        kind in prop::sample::select(&CongestionControlKind::ALL[..]),
        events in prop::collection::vec(event(), 1..300),
    ) {
        let mut bench = Bench::new(kind);
        for event in events {
            bench.apply(event);
            bench.check();
        }
    }
}
