//! Random channels over a network that loses and reorders: no message is lost, duplicated or
//! misdelivered.

use std::collections::BTreeMap;

use crate::data_channels::world::{A, B, World, ms};
use crate::network::lost;
use eyas_netem::link::ReorderingMode;
use eyas_sctp::data_channel::{ChannelEvent, ChannelOptions, ChannelState, MessageKind};
use eyas_sctp::identifier::StreamId;
use proptest::prelude::*;

/// An action of one side's user.
#[derive(Clone, Debug)]
enum Act {
    Open { side: usize, ordered: bool },
    Send { side: usize, which: usize, length: usize },
    Close { side: usize, which: usize },
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let side = 0usize..2;
    let length = prop_oneof![8 => 8usize..200, 2 => 8usize..5000, 1 => 8usize..100_000];
    prop_oneof![
        2 => (side.clone(), any::<bool>()).prop_map(|(side, ordered)| Act::Open { side, ordered }),
        8 => (side.clone(), 0usize..8, length)
            .prop_map(|(side, which, length)| Act::Send { side, which, length }),
        2 => (side, 0usize..8).prop_map(|(side, which)| Act::Close { side, which }),
        4 => (1u64..300).prop_map(Act::Wait),
    ]
}

/// What both users know.
#[derive(Default)]
struct Users {
    /// Channels opened so far; the label of each is its index here.
    opened: u32,
    /// The numbers of the messages that one side sent on a channel and the other side received.
    sent: BTreeMap<(u32, usize), Vec<u32>>,
    received: BTreeMap<(u32, usize), Vec<u32>>,
    /// The channel that a side knows by this ID.
    known: [BTreeMap<StreamId, u32>; 2],
    unordered: BTreeMap<u32, bool>,
}

impl Users {
    /// Processes the events of both sides.
    fn read(&mut self, world: &mut World) {
        for side in [A, B] {
            for event in world.take_events(side) {
                match event {
                    ChannelEvent::Opened { id, by_peer: true } => {
                        let label = world.hosts[side].labels.pop_front().expect("one each");
                        self.known[side].insert(id, label.parse().unwrap());
                    }
                    ChannelEvent::Message { id, data, .. } => {
                        let label = self.known[side][&id];
                        let word = |at| u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
                        assert_eq!(word(0), label, "a message of another channel");
                        assert!(data[8..].iter().all(|byte| *byte == data[7]), "mixed");
                        self.received.entry((label, 1 - side)).or_default().push(word(4));
                    }
                    ChannelEvent::Closed { id } => {
                        self.known[side].remove(&id);
                    }
                    _ => {}
                }
            }
        }
    }

    fn act(&mut self, world: &mut World, act: &Act) {
        match *act {
            Act::Open { side, ordered } => {
                let label = self.opened;
                let mut options = ChannelOptions::new(&label.to_string());
                options.ordered = ordered;
                if let Ok(id) = world.try_open(side, &options) {
                    self.opened += 1;
                    self.known[side].insert(id, label);
                    self.unordered.insert(label, !ordered);
                }
            }
            Act::Send { side, which, length } => {
                let Some((&id, &label)) = self.known[side].iter().nth(which) else { return };
                let numbers = self.sent.entry((label, side)).or_default();
                let number = numbers.len() as u32;
                let mut data = vec![number as u8; length.max(8)];
                data[..4].copy_from_slice(&label.to_be_bytes());
                data[4..8].copy_from_slice(&number.to_be_bytes());
                if world.send(side, id, MessageKind::Binary, data).is_ok() {
                    numbers.push(number);
                }
            }
            Act::Close { side, which } => {
                if let Some((&id, _)) = self.known[side].iter().nth(which) {
                    let _ = world.close(side, id);
                }
            }
            Act::Wait(time) => {
                world.run_for(ms(time));
            }
        }
        world.drain_host(A);
        world.drain_host(B);
        self.read(world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    //= rfc8831 §6.1
    //# messages are interleaved, if the peer offers it
    #[test]
    fn nothing_is_lost_repeated_or_mixed(
        acts in prop::collection::vec(act(), 1..60),
        seed: u64,
        loss in prop_oneof![Just(0u32), 0u32..250],
        jitter in prop_oneof![Just(0u64), 0u64..30],
        interleaving: bool,
    ) {
        let mut world =
            World::with(|_| {}, |config| config.extensions.interleaving = interleaving);
        world.network.seed(seed);
        world.change_links(|_, link| {
            (link.loss, link.jitter) = (lost(loss), ms(jitter));
            link.reordering = ReorderingMode::ByJitter;
        });
        let mut users = Users::default();
        for act in &acts {
            users.act(&mut world, act);
        }
        world.lose_per_thousand(0);
        users.act(&mut world, &Act::Wait(1000));
        world.run_until_quiet();
        users.read(&mut world);
        for (of, sent) in &users.sent {
            let mut received = users.received.remove(of).unwrap_or_default();
            if users.unordered[&of.0] {
                received.sort_unstable();
            }
            prop_assert_eq!(&received, sent, "on channel {} from side {}", of.0, of.1);
        }
        prop_assert!(users.received.is_empty(), "received but never sent: {:?}", users.received);
        // Both sides have the same channels, and none that is half open or half closed.
        let all = |side: usize| -> Vec<_> {
            let channels = world.channels(side).iter();
            channels.map(|(id, one)| (id, one.label().to_owned(), one.state())).collect()
        };
        prop_assert_eq!(all(A), all(B));
        prop_assert!(all(A).iter().all(|(_, _, state)| *state == ChannelState::Open));
    }
}
