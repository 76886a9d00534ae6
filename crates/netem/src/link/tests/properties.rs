//! What holds for every link, whatever is offered to it and however it changes.

use proptest::prelude::*;

use super::*;

/// An event of a link.
#[derive(Clone, Debug)]
enum Step {
    /// This many microseconds pass; then arrived packets are taken out.
    Pass(u64),
    /// A packet of this size arrives, which may be fragmented or not.
    Offer(usize, bool, u8),
    Change(LinkChange),
}

fn step() -> impl Strategy<Value = Step> {
    let change = prop_oneof![
        Just(LinkChange::Up),
        Just(LinkChange::Up),
        Just(LinkChange::Down),
        prop_oneof![Just(None), Just(Some(0)), (1_000_u64..100_000_000).prop_map(Some)]
            .prop_map(LinkChange::Rate),
        (0_u64..50_000).prop_map(|delay| LinkChange::Delay(micros(delay))),
        (0_u64..5_000).prop_map(|jitter| LinkChange::Jitter(micros(jitter))),
        loss().prop_map(LinkChange::Loss),
    ];
    prop_oneof![
        6 => (0_u64..20_000).prop_map(Step::Pass),
        20 => (24_usize..3000, any::<bool>(), 0_u8..4).prop_map(|(bytes, whole, ecn)| {
            Step::Offer(bytes, whole, ecn)
        }),
        1 => change.prop_map(Step::Change),
    ]
}

fn loss() -> impl Strategy<Value = LossConfig> {
    prop_oneof![
        Just(LossConfig::None),
        (0.0..0.5).prop_map(LossConfig::Probability),
        (0.0..0.3, 0.1..1.0).prop_map(|(to_bad, to_good)| {
            let (loss_good, loss_bad) = (0.001, 0.8);
            LossConfig::GilbertElliott(GilbertElliott { to_bad, to_good, loss_good, loss_bad })
        }),
        prop::collection::vec(0_u64..200, 0..10).prop_map(LossConfig::List),
    ]
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    prop_oneof![
        (0_usize..30).prop_map(QueueConfig::Packets),
        (0_usize..30_000).prop_map(QueueConfig::Bytes),
        (1_usize..60, 0.001..0.5).prop_map(|(limit, weight)| {
            QueueConfig::Red(RedConfig { limit, weight, ..RedConfig::default() })
        }),
        (1_usize..60, 100_u64..5_000, 1_000_u64..100_000).prop_map(|(limit, target, interval)| {
            let (target, interval) = (micros(target), micros(interval));
            QueueConfig::CoDel(CoDelConfig { limit, target, interval, ecn: true })
        }),
    ]
}

fn reordering() -> impl Strategy<Value = ReorderingMode> {
    prop_oneof![
        Just(ReorderingMode::Never),
        Just(ReorderingMode::ByJitter),
        (0.0..0.5, 0_u64..20_000)
            .prop_map(|(probability, by)| ReorderingMode::Late { probability, by: micros(by) }),
    ]
}

fn distribution() -> impl Strategy<Value = JitterDistribution> {
    prop_oneof![
        Just(JitterDistribution::Above),
        Just(JitterDistribution::Uniform),
        Just(JitterDistribution::Normal),
        Just(JitterDistribution::Pareto),
        Just(JitterDistribution::ParetoNormal),
    ]
}

fn trace() -> impl Strategy<Value = DeliveryTrace> {
    prop::collection::vec(0_u32..6, 1..20).prop_map(|steps| {
        let mut time = 0;
        let mut text = alloc::string::String::new();
        for step in steps.into_iter().chain([1]) {
            time += step;
            text += &alloc::format!("{time}\n");
        }
        DeliveryTrace::parse(&text).expect("a trace")
    })
}

prop_compose! {
    fn any_config()(
        rate in prop::option::weighted(0.9, 10_000_u64..100_000_000),
        delay in 0_u64..50_000,
        jitter in (0_u64..5_000, distribution(), prop_oneof![Just(0.0), 0.0..=1.0]),
        trace in prop::option::weighted(0.2, trace()),
        framing in 0_usize..40,
        mtu in prop::option::of(500_usize..2000),
        queue in queue(),
        loss in loss(),
        errors in prop::option::of((0.0..1e-3, any::<bool>())),
        duplication in prop_oneof![Just(0.0), 0.0..0.5],
        reordering in reordering(),
    ) -> LinkConfig {
        let bit_error = errors.map(|(probability, corrupt)| {
            let effect = if corrupt { BitErrorEffect::Corrupt } else { BitErrorEffect::Drop };
            BitErrorConfig { probability, effect }
        });
        let (jitter, jitter_distribution, jitter_correlation) = jitter;
        let (delay, jitter) = (micros(delay), micros(jitter));
        LinkConfig {
            rate, trace, delay, jitter, jitter_distribution, jitter_correlation, framing, mtu,
            queue, loss, bit_error, duplication, reordering,
        }
    }
}

/// Runs the steps, calling as often as a simulation does, or only when something is offered or
/// taken. Returns the arrivals and the link.
fn run(config: &LinkConfig, seed: u64, steps: &[Step], exact: bool) -> (Vec<(u64, Packet)>, Link) {
    let mut link = Link::new(config.clone(), seed);
    let (mut now, mut arrived) = (Duration::ZERO, Vec::new());
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Pass(time) => {
                let until = now + micros(*time);
                while exact && link.next_timeout().is_some_and(|next| next < until) {
                    now = link.next_timeout().unwrap_or(until);
                    take(&mut link, now, &mut arrived);
                }
                now = until;
                take(&mut link, now, &mut arrived);
            }
            Step::Offer(bytes, whole, ecn) => {
                let packet = numbered(number as u32, *bytes);
                let packet = Packet { dont_fragment: *whole, ecn: *ecn, ..packet };
                // Drops are in the counters.
                let _ = link.offer(now, packet);
            }
            Step::Change(change) => link.change(now, change.clone()),
        }
    }
    (arrived, link)
}

fn take(link: &mut Link, now: Duration, arrived: &mut Vec<(u64, Packet)>) {
    while let Some(packet) = link.poll(now) {
        arrived.push((now.as_nanos() as u64, packet));
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..200)
}

proptest! {
    /// Every packet offered or duplicated is delivered, dropped for a cause, or in the link.
    #[test]
    fn no_packet_is_unaccounted_for(config in any_config(), seed: u64, steps in steps()) {
        let (arrived, link) = run(&config, seed, &steps, true);
        let counters = *link.counters();
        let inside = Link::queued(&mut link.clone(), Duration::ZERO).plus(link.in_flight());
        let gone = counters.delivered.plus(counters.total_dropped());
        prop_assert_eq!(counters.offered.plus(counters.duplicated), gone.plus(inside));
        prop_assert_eq!(counters.delivered.packets, arrived.len() as u64);
    }

    /// Without reordering, packets arrive in the order in which they were offered.
    #[test]
    fn a_fifo_keeps_the_order(config in any_config(), seed: u64, steps in steps()) {
        let never = LinkConfig { reordering: ReorderingMode::Never, ..config };
        let never = LinkConfig { bit_error: None, ..never };
        let (arrived, _) = run(&never, seed, &steps, true);
        prop_assert!(arrived.is_sorted_by_key(|(_, packet)| number(packet)));
    }

    /// Between two arrivals, no more bits arrive than the rate allows for that time.
    #[test]
    fn no_rate_is_exceeded(
        rate in 10_000_u64..1_000_000_000,
        framing in 0_usize..40,
        queue in queue(),
        seed: u64,
        offers in prop::collection::vec((0_u64..5_000, 24_usize..3000), 1..100),
    ) {
        let config = LinkConfig { framing, queue, ..LinkConfig::new(rate, micros(3000)) };
        let steps: Vec<_> = offers
            .iter()
            .flat_map(|(wait, bytes)| [Step::Pass(*wait), Step::Offer(*bytes, true, 0)])
            .chain([Step::Pass(1_000_000_000)])
            .collect();
        let (arrived, _) = run(&config, seed, &steps, true);
        for (place, (begin, _)) in arrived.iter().enumerate() {
            let mut bits = 0;
            for (end, packet) in &arrived[place + 1..] {
                bits += (packet.len() + framing) as u128 * 8;
                prop_assert!(bits * 1_000_000_000 <= u128::from(rate) * u128::from(end - begin));
            }
        }
    }

    /// Over any time, no more bytes arrive than the opportunities of a trace have room for, and a
    /// saturated link uses all of them.
    #[test]
    fn a_trace_is_the_rate(trace in trace(), sizes in prop::collection::vec(24_usize..3000, 1..100)) {
        let opportunities: Vec<u64> = (0..).map(|round| trace.times().map(move |time| (round, time)))
            .take(1000 / trace.times().count() + 1)
            .flatten()
            .map(|(round, time)| round * u64::from(trace.times().last().unwrap_or(1)) + u64::from(time))
            .collect();
        let config = LinkConfig { trace: Some(trace), ..LinkConfig::default() };
        let mut link = Link::new(config, 1);
        for (number, size) in (0..).zip(&sizes) {
            link.offer(Duration::ZERO, numbered(number, *size)).unwrap();
        }
        // With everything waiting from the start, the byte at offset n leaves at opportunity
        // n / 1500.
        let mut offset = 0;
        while let Some(time) = link.next_timeout() {
            while let Some(packet) = link.poll(time) {
                offset += packet.len();
                let wanted = opportunities[(offset - 1) / 1500];
                prop_assert_eq!(time, Duration::from_millis(wanted));
            }
        }
        prop_assert_eq!(offset, sizes.iter().sum::<usize>());
    }

    /// The same seed and steps give the same arrivals, and another order of calls for what has
    /// arrived gives the same packets with the same marks.
    #[test]
    fn a_late_caller_gets_the_same(config in any_config(), seed: u64, steps in steps()) {
        let (first, link) = run(&config, seed, &steps, true);
        let (repeated, _) = run(&config, seed, &steps, true);
        prop_assert_eq!(&first, &repeated);
        let (late, late_link) = run(&config, seed, &steps, false);
        let packets = |arrived: Vec<(u64, Packet)>| -> Vec<Packet> {
            arrived.into_iter().map(|(_, packet)| packet).collect()
        };
        prop_assert_eq!(packets(first), packets(late));
        prop_assert_eq!(link.counters(), late_link.counters());
    }
}
