//! What holds for every world: hosts around a router, with links of all kinds.

use core::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::link::{CoDelConfig, PacketCount, RedConfig, ReorderingMode};
use crate::router::Router;

fn address(host: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, host as u8 + 1))
}

prop_compose! {
    fn any_link()(
        rate in prop::option::of(100_000_u64..100_000_000),
        delay in 0_u64..20_000,
        jitter in 0_u64..2_000,
        queue in prop_oneof![
            (0_usize..20).prop_map(QueueConfig::Packets),
            (0_usize..20_000).prop_map(QueueConfig::Bytes),
            Just(QueueConfig::Red(RedConfig::default())),
            Just(QueueConfig::CoDel(CoDelConfig::default())),
        ],
        loss in 0.0..0.3,
        duplication in 0.0..0.1,
        by_jitter: bool,
    ) -> LinkConfig {
        LinkConfig {
            rate,
            delay: Duration::from_micros(delay),
            jitter: Duration::from_micros(jitter),
            queue,
            loss: LossConfig::Probability(loss),
            duplication,
            reordering: if by_jitter { ReorderingMode::ByJitter } else { ReorderingMode::Never },
            ..LinkConfig::default()
        }
    }
}

/// Packets of a host: time in milliseconds, destination, bytes.
type Sending = Vec<(u64, usize, usize)>;

#[derive(Clone, Debug)]
struct Plan {
    links: Vec<(LinkConfig, LinkConfig)>,
    sendings: Vec<Sending>,
    /// Milliseconds at which a link goes down and comes up again.
    cuts: Vec<(u64, usize, u64)>,
}

fn plan() -> impl Strategy<Value = Plan> {
    (2_usize..6).prop_flat_map(|hosts| {
        let links = prop::collection::vec((any_link(), any_link()), hosts);
        // The last address is unused: the router has no route to it.
        let sending = prop::collection::vec((0_u64..300, 0..=hosts, 24_usize..1500), 0..40);
        let cuts = prop::collection::vec((0_u64..300, 0..hosts, 1_u64..50), 0..3);
        (links, prop::collection::vec(sending, hosts), cuts)
            .prop_map(|(links, sendings, cuts)| Plan { links, sendings, cuts })
    })
}

/// Hosts and a router between them.
enum Station {
    Host(Host),
    Router(Router),
}

impl Node for Station {
    fn handle_input(&mut self, now: Duration, input: NodeInput) {
        match self {
            Self::Host(host) => host.handle_input(now, input),
            Self::Router(router) => router.handle_input(now, input),
        }
    }

    fn poll_output(&mut self, now: Duration) -> NodeOutput {
        match self {
            Self::Host(host) => host.poll_output(now),
            Self::Router(router) => router.poll_output(now),
        }
    }
}

struct Star {
    world: World<Station>,
    router: NodeId,
    hosts: Vec<NodeId>,
    links: Vec<LinkId>,
}

fn build(plan: &Plan, seed: u64) -> Star {
    let mut world = World::new(seed);
    let routes = (0..plan.links.len())
        .fold(Router::new(), |router, host| router.host(address(host), host as u32));
    let router = world.add_node(Station::Router(routes));
    let (mut hosts, mut links) = (Vec::new(), Vec::new());
    for (number, (up, down)) in plan.links.iter().enumerate() {
        let mut sending = plan.sendings[number].clone();
        sending.sort_unstable();
        let to_send = sending.into_iter().map(|(at, to, bytes)| {
            let (source, destination) = (address(number), address(to));
            (milliseconds(at), 0, Packet { source, destination, ..packet(bytes) })
        });
        let host = Host { to_send: to_send.collect(), ..Host::default() };
        let host = world.add_node(Station::Host(host));
        hosts.push(host);
        links.push(world.connect((host, 0), (router, number as u32), up.clone(), down.clone()));
    }
    for (at, link, time) in &plan.cuts {
        world.schedule(milliseconds(*at), WorldAction::link(links[*link], LinkChange::Down));
        world.schedule(milliseconds(at + time), WorldAction::link(links[*link], LinkChange::Up));
    }
    world.keep_records(100_000);
    Star { world, router, hosts, links }
}

impl Star {
    fn arrived(&self) -> u64 {
        let arrived = |host: &NodeId| match self.world.node(*host) {
            Station::Host(host) => host.arrived.len() as u64,
            Station::Router(_) => 0,
        };
        self.hosts.iter().map(arrived).sum()
    }

    fn counters(&self) -> impl Iterator<Item = (LinkCounters, PacketCount)> {
        let both = [LinkDirection::Forward, LinkDirection::Backward];
        let sides = self.links.iter().flat_map(move |link| both.map(|side| (*link, side)));
        sides.map(|(link, direction)| {
            let mut link = self.world.link(link, direction).clone();
            let inside = link.queued(self.world.now()).plus(link.in_flight());
            (*link.counters(), inside)
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// At any time, each packet that a host sent or a link duplicated has arrived, was dropped by a
    /// link, had no route, or is in flight.
    #[test]
    fn no_packet_is_unaccounted_for(plan in plan(), seed: u64, stops in [0_u64..400, 0_u64..400]) {
        let mut star = build(&plan, seed);
        for stop in stops {
            star.world.run_until(milliseconds(stop));
            let now = star.world.now();
            let to_come: usize = star.hosts.iter().map(|host| match star.world.node(*host) {
                Station::Host(host) => host.to_send.len(),
                Station::Router(_) => 0,
            }).sum();
            let sent = plan.sendings.iter().map(Vec::len).sum::<usize>() - to_come;
            let (mut made, mut gone) = (sent as u64, star.arrived());
            for (counters, inside) in star.counters() {
                made += counters.duplicated.packets;
                gone += counters.total_dropped().packets + inside.packets;
            }
            if let Station::Router(router) = star.world.node(star.router) {
                gone += router.unroutable();
            }
            prop_assert_eq!(made, gone, "at {:?}", now);
        }
    }

    /// The same seed gives the same run, however often it is interrupted.
    #[test]
    fn the_same_seed_gives_the_same_run(plan in plan(), seed: u64) {
        let (mut once, mut interrupted) = (build(&plan, seed), build(&plan, seed));
        once.world.run_until(milliseconds(500));
        for time in 0..500 {
            interrupted.world.run_until(milliseconds(time));
        }
        interrupted.world.run_until(milliseconds(500));
        prop_assert_eq!(once.world.records(), interrupted.world.records());
        prop_assert_eq!(once.world.events(), interrupted.world.events());
        prop_assert!(once.world.records().is_sorted_by_key(|record| record.time));
    }

    /// Hosts that talk among themselves change nothing for the others.
    #[test]
    fn unrelated_traffic_changes_nothing(plan in plan(), seed: u64, other in any_link()) {
        let (mut alone, mut beside) = (build(&plan, seed), build(&plan, seed));
        let times = (0..200).map(|at| (at, 0, 700));
        let a = beside.world.add_node(Station::Host(Host::sending(times)));
        let b = beside.world.add_node(Station::Host(Host::echo()));
        beside.world.connect((a, 0), (b, 0), other.clone(), other);
        alone.world.run_until(milliseconds(500));
        beside.world.run_until(milliseconds(500));
        for host in &alone.hosts {
            if let (Station::Host(one), Station::Host(other)) =
                (alone.world.node(*host), beside.world.node(*host))
            {
                prop_assert_eq!(&one.arrived, &other.arrived);
            }
        }
    }
}
