//! Properties of every coupled controller, whatever its paths are like.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::time::Duration;

use proptest::prelude::*;

use super::coupled::{MTU, acknowledged, event};
use crate::config::{AssociationConfig, CongestionControlKind};
use crate::congestion::loss_window::LossWindow;
use crate::congestion::{
    CmtRpV1, CmtRpV2, CongestionControl, CongestionControlFactory, Lia, Olia, SiblingPath,
    SiblingPaths,
};

type Controller = Box<dyn CongestionControl>;

const COUPLED: [CongestionControlKind; 4] = [
    CongestionControlKind::CmtRpV1,
    CongestionControlKind::CmtRpV2,
    CongestionControlKind::Lia,
    CongestionControlKind::Olia,
];

fn base(kind: CongestionControlKind, controller: &mut dyn CongestionControl) -> &mut LossWindow {
    let controller: &mut dyn Any = controller;
    let base = match kind {
        CongestionControlKind::CmtRpV1 => {
            controller.downcast_mut().map(|it: &mut CmtRpV1| &mut it.base)
        }
        CongestionControlKind::CmtRpV2 => {
            controller.downcast_mut().map(|it: &mut CmtRpV2| &mut it.base)
        }
        CongestionControlKind::Lia => controller.downcast_mut().map(|it: &mut Lia| &mut it.base),
        CongestionControlKind::Olia => controller.downcast_mut().map(|it: &mut Olia| &mut it.base),
        other => panic!("{other:?} is not coupled"),
    };
    base.expect("the controller of that kind")
}

/// Paths in congestion avoidance, with these windows.
fn avoiding(kind: CongestionControlKind, windows: &[usize]) -> Vec<Controller> {
    let config = AssociationConfig::default();
    let path = |window: &usize| {
        let mut path = kind.build(&config, MTU);
        let base = base(kind, path.as_mut());
        (base.window, base.threshold) = (*window, (*window / 2).max(1));
        path
    };
    windows.iter().map(path).collect()
}

fn members(paths: &[Controller], round_trips: &[u64]) -> Vec<SiblingPath> {
    let member = |(path, rtt): (&Controller, &u64)| SiblingPath {
        window: path.window(),
        mtu: MTU,
        slow_start_threshold: path.slow_start_threshold(),
        smoothed_rtt: *rtt,
        loss_interval: path.loss_interval(),
    };
    paths.iter().zip(round_trips).map(member).collect()
}

fn view(paths: &[Controller], round_trips: &[u64], own: usize) -> SiblingPaths {
    let members = members(paths, round_trips);
    SiblingPaths::new(&members[own], members.iter().copied())
}

#[derive(Clone, Debug)]
enum Step {
    Acknowledged(usize),
    Congestion,
    Recovered,
    Timeout,
    Spurious,
    Idle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (1_usize..100_000).prop_map(Step::Acknowledged),
        2 => Just(Step::Congestion),
        2 => Just(Step::Recovered),
        1 => Just(Step::Timeout),
        1 => Just(Step::Spurious),
        1 => Just(Step::Idle),
    ]
}

proptest! {
    #[test]
    fn paths_with_the_same_round_trip_grow_by_one_packet_together(
        windows in prop::collection::vec(6_000_usize..3_000_000, 1..6),
        rtt in 1_000_000_u64..1_000_000_000,
    ) {
        for kind in COUPLED {
            let mut paths = avoiding(kind, &windows);
            let round_trips = alloc::vec![rtt; windows.len()];
            let views: Vec<_> =
                (0..paths.len()).map(|own| view(&paths, &round_trips, own)).collect();
            for (path, view) in paths.iter_mut().zip(views) {
                let window = path.window();
                path.on_acknowledged(&acknowledged(window, view));
            }
            let before: usize = windows.iter().sum();
            let after: usize = paths.iter().map(|path| path.window()).sum();
            // Each path may round up by a byte.
            prop_assert!(after <= before + MTU + windows.len(), "{:?}: {}", kind, after - before);
        }
    }

    #[test]
    fn windows_stay_in_bounds(
        windows in prop::collection::vec(1_500_usize..3_000_000, 1..5),
        round_trips in prop::collection::vec(0_u64..2_000_000_000, 5),
        steps in prop::collection::vec((0_usize..5, step()), 1..200),
    ) {
        for kind in COUPLED {
            let mut paths = avoiding(kind, &windows);
            // No window grows by more than what was acknowledged, and by half as much again where
            // OLIA moves windows; undoing a spurious loss does not count as growth.
            let mut most: Vec<usize> = windows.iter().map(|window| *window.max(&(4 * MTU))).collect();
            for (at, step) in &steps {
                let own = at % paths.len();
                let view = view(&paths, &round_trips, own);
                let path = &mut paths[own];
                let before = path.window();
                match step {
                    Step::Acknowledged(bytes) => {
                        path.on_acknowledged(&acknowledged(*bytes, view));
                        most[own] += bytes * 3 / 2 + MTU;
                    }
                    Step::Congestion => {
                        path.on_congestion(&event(view));
                        prop_assert!(path.window() <= (before / 2).max(4 * MTU), "{:?}", kind);
                    }
                    Step::Timeout => {
                        path.on_timeout(&event(view));
                        prop_assert_eq!(path.window(), MTU);
                    }
                    Step::Recovered => path.on_recovered(Duration::ZERO),
                    Step::Spurious => path.on_spurious(Duration::ZERO),
                    Step::Idle => path.on_idle(Duration::ZERO),
                }
                let window = path.window();
                prop_assert!(window >= MTU, "{:?}, {:?}: {}", kind, step, window);
                prop_assert!(window <= most[own], "{:?}, {:?}: {}", kind, step, window);
            }
        }
    }

    #[test]
    fn arbitrary_sibling_values_never_panic(
        window in 1_usize..usize::MAX,
        others in prop::collection::vec((1_usize..usize::MAX, any::<u64>(), any::<u64>()), 1..8),
    ) {
        for kind in COUPLED {
            let member = |(window, smoothed_rtt, loss_interval): (usize, u64, u64)| SiblingPath {
                window,
                mtu: MTU,
                slow_start_threshold: window,
                smoothed_rtt,
                loss_interval,
            };
            let members: Vec<_> = others.iter().copied().map(member).collect();
            let view = SiblingPaths::new(&members[0], members.iter().copied());
            let mut path = avoiding(kind, &[window]).remove(0);
            path.on_acknowledged(&acknowledged(1 << 30, view));
            path.on_congestion(&event(view));
            path.on_timeout(&event(view));
            prop_assert_eq!(path.window(), MTU);
        }
    }
}
