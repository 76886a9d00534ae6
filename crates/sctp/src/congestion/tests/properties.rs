//! Every controller under arbitrary rounds, losses and pauses: nothing overflows, and the window
//! always admits a packet.

use alloc::boxed::Box;
use core::time::Duration;

use proptest::prelude::*;

use crate::config::{AssociationConfig, CongestionControlKind};
use crate::congestion::{
    AcknowledgedData, CongestionControl, CongestionControlFactory, CongestionEvent, CongestionKind,
    SentData, SiblingPaths,
};

const MTU: usize = 1500;
const PACKET: usize = 1448;

#[derive(Clone, Debug)]
enum Step {
    /// Rounds with a full window, whose RTTs grow by so many milliseconds from one to the next.
    Rounds {
        count: u64,
        first_rtt: u64,
        growth: u64,
    },
    Loss {
        recovers: bool,
        is_spurious: bool,
    },
    Timeout {
        is_spurious: bool,
    },
    Idle(u64),
    Mtu(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..15_u64, 1..300_u64, 0..40_u64)
            .prop_map(|(count, first_rtt, growth)| Step::Rounds { count, first_rtt, growth }),
        1 => any::<(bool, bool)>()
            .prop_map(|(recovers, is_spurious)| Step::Loss { recovers, is_spurious }),
        1 => any::<bool>().prop_map(|is_spurious| Step::Timeout { is_spurious }),
        2 => prop_oneof![1..2_000_u64, Just(60_000)].prop_map(Step::Idle),
        1 => (576..9_000_usize).prop_map(Step::Mtu),
    ]
}

struct Sender {
    control: Box<dyn CongestionControl>,
    now: Duration,
}

impl Sender {
    fn new(kind: CongestionControlKind) -> Self {
        let control = kind.build(&AssociationConfig::default(), MTU);
        Self { control, now: Duration::from_secs(1) }
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Rounds { count, first_rtt, growth } => {
                for round in 0..count {
                    self.round(Duration::from_millis(first_rtt + growth * round));
                }
            }
            Step::Loss { recovers, is_spurious } => {
                self.control.on_congestion(&self.congestion());
                if is_spurious {
                    self.control.on_spurious(self.now);
                }
                if recovers {
                    self.control.on_recovered(self.now);
                }
            }
            Step::Timeout { is_spurious } => {
                self.control.on_timeout(&self.congestion());
                if is_spurious {
                    self.control.on_spurious(self.now);
                }
            }
            Step::Idle(milliseconds) => {
                self.now += Duration::from_millis(milliseconds);
                self.control.on_idle(self.now);
            }
            Step::Mtu(mtu) => self.control.on_mtu(mtu),
        }
        assert!(self.control.window() > 0);
    }

    /// Sends and acknowledges a window of at most 20 packets.
    fn round(&mut self, rtt: Duration) {
        let packets = (self.control.window() / PACKET).clamp(1, 20);
        for sent in 1..=packets {
            let outstanding = sent * PACKET;
            let (now, app_limited) = (self.now, false);
            self.control.on_sent(&SentData { now, bytes: PACKET, outstanding, app_limited });
        }
        self.now += rtt;
        for left in (0..packets).rev() {
            self.control.on_acknowledged(&AcknowledgedData {
                now: self.now,
                bytes: PACKET,
                cumulative_advanced: true,
                window_was_full: true,
                rtt: Some(rtt),
                smoothed_rtt: Some(rtt),
                outstanding: left * PACKET,
                delivery: None,
                siblings: SiblingPaths::default(),
            });
        }
    }

    fn congestion(&self) -> CongestionEvent {
        let (now, outstanding) = (self.now, self.control.window());
        let siblings = SiblingPaths::default();
        CongestionEvent { now, kind: CongestionKind::Loss, outstanding, siblings }
    }
}

proptest! {
    #[test]
    fn nothing_overflows(steps in prop::collection::vec(step(), 1..40)) {
        for kind in CongestionControlKind::ALL {
            let mut sender = Sender::new(kind);
            steps.iter().for_each(|step| sender.apply(step));
        }
    }
}
