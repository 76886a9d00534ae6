//! Congestion control and schedulers that the caller supplies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eyas_netem::link::QueueConfig;
use eyas_sctp::config::{
    AlgorithmSelection, AssociationConfig, CongestionControlKind, SchedulerKind,
};
use eyas_sctp::congestion::{
    AcknowledgedData, CongestionControl, CongestionControlFactory, CongestionEvent,
};
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::Message;
use eyas_sctp::scheduler::{Scheduler, SchedulerFactory, StreamSlot, StreamTurn};

use crate::associations::world::{A, B, World, ms, multihomed};
use crate::network::lost;

/// A fixed window, in bytes.
#[derive(Debug)]
struct FixedWindow(usize);

impl CongestionControl for FixedWindow {
    fn window(&self) -> usize {
        self.0
    }

    fn on_acknowledged(&mut self, _acknowledged: &AcknowledgedData) {}

    fn on_congestion(&mut self, _event: &CongestionEvent) {}

    fn on_timeout(&mut self, _event: &CongestionEvent) {}
}

/// Gives every path the same window, and counts the paths.
#[derive(Debug, Default)]
struct FixedWindows {
    window: usize,
    built: AtomicUsize,
}

impl CongestionControlFactory for FixedWindows {
    fn build(&self, _config: &AssociationConfig, mtu: usize) -> Box<dyn CongestionControl> {
        assert_eq!(mtu, 1500);
        self.built.fetch_add(1, Ordering::Relaxed);
        Box::new(FixedWindow(self.window))
    }
}

/// Serves streams with low numbers before those with high ones.
#[derive(Debug, Default)]
struct ByNumber {
    /// The stream's number and its queued messages, by slot.
    streams: Vec<(StreamId, usize)>,
}

impl Scheduler for ByNumber {
    fn on_opened(&mut self, stream: StreamSlot, id: StreamId) {
        assert_eq!(stream.index(), self.streams.len(), "slots come in order");
        self.streams.push((id, 0));
    }

    fn on_queued(&mut self, stream: StreamSlot) {
        self.streams[stream.index()].1 += 1;
    }

    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        let waiting = (0..).map(StreamSlot).zip(&self.streams).filter(|(_, (_, waits))| *waits > 0);
        let may = waiting.filter(|(slot, _)| eligible(*slot));
        may.min_by_key(|(_, (id, _))| *id).map(|(slot, _)| slot)
    }

    fn on_sent(&mut self, turn: &StreamTurn) {
        let (_, waiting) = &mut self.streams[turn.stream.index()];
        *waiting -= usize::from(turn.ends_message);
        assert_eq!(*waiting == 0, turn.ends_stream);
    }
}

#[derive(Debug)]
struct ByNumbers;

impl SchedulerFactory for ByNumbers {
    fn build(&self, _by_chunk: bool) -> Box<dyn Scheduler> {
        Box::<ByNumber>::default()
    }
}

/// Always chooses the given stream, whether it is eligible or not.
#[derive(Clone, Copy, Debug)]
struct FixedChoice(StreamSlot);

impl Scheduler for FixedChoice {
    fn on_queued(&mut self, _stream: StreamSlot) {}

    fn next(&mut self, _eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        Some(self.0)
    }

    fn on_sent(&mut self, _turn: &StreamTurn) {}
}

impl SchedulerFactory for FixedChoice {
    fn build(&self, _by_chunk: bool) -> Box<dyn Scheduler> {
        Box::new(*self)
    }
}

fn streams_in_order_of_arrival(world: &World) -> Vec<u16> {
    let messages = world.hosts[B].received.values().flatten();
    messages.filter(|message| message.ends).map(|message| message.stream.0).collect()
}

#[test]
fn a_callers_window_limits_the_data_in_flight_despite_losses() {
    let control = Arc::new(FixedWindows { window: 14_000, ..FixedWindows::default() });
    let mut world = World::with_associations(|config| {
        config.congestion_control = AlgorithmSelection::Custom(control.clone());
    });
    let (a, _) = world.connected();
    world.lose_per_thousand(20);
    world.send(A, a, 0, vec![7; 400_000]);
    for _ in 0..40 {
        world.run_for(ms(5));
        let path = &world.hosts[A].status(a).paths[0];
        assert_eq!(path.congestion_window, 14_000);
        // The rest of the window allows a whole packet.
        assert!(path.outstanding < 14_000 + 1500, "{}", path.outstanding);
    }
    world.run_until(ms(60_000), |world| world.hosts[B].received_messages() == 1);
}

#[test]
fn each_path_gets_a_controller_of_its_own() {
    let control = Arc::new(FixedWindows { window: 5000, ..FixedWindows::default() });
    let mut from = multihomed(A, 2);
    from.association.congestion_control = AlgorithmSelection::Custom(control.clone());
    let mut world = World::with(from, multihomed(B, 2));
    let (a, _) = world.connected();
    assert_eq!(world.hosts[A].status(a).paths.len(), 2);
    assert_eq!(control.built.load(Ordering::Relaxed), 2);
}

#[test]
fn a_callers_scheduler_selects_the_stream() {
    let mut world = World::with_associations(|config| {
        config.scheduler = AlgorithmSelection::Custom(Arc::new(ByNumbers));
    });
    let a = world.connect();
    for stream in [5, 3, 9, 1, 3, 5] {
        world.send(A, a, stream, vec![0; 3000]);
    }
    world.finish_handshake(a);
    world.run_until(ms(5000), |world| world.hosts[B].received_messages() == 6);
    assert_eq!(streams_in_order_of_arrival(&world), [1, 3, 3, 5, 5, 9]);
}

#[test]
fn a_callers_scheduler_can_take_over_with_queued_messages() {
    let mut world = World::new();
    let a = world.connect();
    for stream in [5, 3, 1] {
        world.send(A, a, stream, vec![0; 3000]);
    }
    let mut config = world.hosts[A].endpoint.config().association.clone();
    config.scheduler = AlgorithmSelection::Custom(Arc::new(ByNumbers));
    world.association(A, a).configure(&config).unwrap();
    world.finish_handshake(a);
    world.run_until(ms(5000), |world| world.hosts[B].received_messages() == 3);
    assert_eq!(streams_in_order_of_arrival(&world), [1, 3, 5]);
}

#[test]
fn a_scheduler_that_selects_an_empty_stream_only_stops_its_association() {
    for wrong in [StreamSlot(1), StreamSlot(u16::MAX)] {
        let mut world = World::with_associations(|config| {
            config.scheduler = AlgorithmSelection::Custom(Arc::new(FixedChoice(wrong)));
        });
        let (a, _) = world.connected();
        world.send(A, a, 0, "one");
        world.run_for(ms(1000));
        assert_eq!(world.hosts[B].received_messages(), 0);
        let mut config = world.hosts[A].endpoint.config().association.clone();
        config.scheduler = SchedulerKind::Fcfs.into();
        world.association(A, a).configure(&config).unwrap();
        world.run_until(ms(5000), |world| world.hosts[B].received_messages() == 1);
    }
}

/// A digest of the traffic, with losses and three streams of messages.
fn digest(set: impl Fn(&mut AssociationConfig)) -> (u64, usize) {
    let mut world = World::with_associations(set);
    world.network.seed(11);
    let (a, _) = world.connected();
    world.change_links(|_, link| {
        (link.loss, link.rate) = (lost(15), Some(8_000_000));
        link.queue = QueueConfig::Packets(usize::MAX);
    });
    for round in 0..40_u16 {
        world.send(A, a, round % 3, vec![1; 500 + 400 * usize::from(round)]);
    }
    world.run_until(ms(120_000), |world| world.hosts[B].received_messages() == 40);
    let bytes = world.hosts[B].received.values().flatten().map(Message::len).sum();
    (world.tap.digest, bytes)
}

#[test]
fn a_built_in_implementation_behaves_the_same_if_supplied_by_a_caller() {
    for kind in CongestionControlKind::ALL {
        let built_in = digest(|config| config.congestion_control = kind.into());
        let custom =
            digest(|config| config.congestion_control = AlgorithmSelection::Custom(Arc::new(kind)));
        assert_eq!(built_in, custom, "{kind:?}");
    }
    for kind in SchedulerKind::ALL {
        let built_in = digest(|config| config.scheduler = kind.into());
        let custom = digest(|config| config.scheduler = AlgorithmSelection::Custom(Arc::new(kind)));
        assert_eq!(built_in, custom, "{kind:?}");
    }
}

#[test]
fn two_selections_are_equal_if_they_create_the_same() {
    let one: Arc<dyn SchedulerFactory> = Arc::new(ByNumbers);
    let custom = |factory| AlgorithmSelection::<SchedulerKind, _>::Custom(factory);
    assert_eq!(custom(Arc::clone(&one)), custom(Arc::clone(&one)));
    assert_ne!(custom(one), custom(Arc::new(FixedChoice(StreamSlot(0)))));
    assert_ne!(
        AlgorithmSelection::BuiltIn(SchedulerKind::Fcfs),
        custom(Arc::new(SchedulerKind::Fcfs))
    );
    assert_eq!(format!("{:?}", custom(Arc::new(ByNumbers))), "ByNumbers");
}
