//! INITs exchanged out of band (draft-hancke-tsvwg-snap): no packet before the first data.

use crate::associations::world::{A, B, PORT, World, ms, quiet, socket};
use eyas_sctp::config::{AssociationConfig, ConnectOptions};
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::error::Error;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::snap::SnapInit;

/// The INIT of each host, as signalled.
fn exchanged(world: &mut World, config: &AssociationConfig) -> [SnapInit; 2] {
    [A, B].map(|host| {
        let line = world.hosts[host].endpoint.init_out_of_band(config).to_attribute();
        SnapInit::from_attribute(&line).expect("what was written can be read")
    })
}

fn options(peer: usize, config: &AssociationConfig) -> ConnectOptions {
    let mut options = ConnectOptions::new(socket(peer, 0), PORT);
    options.local_port = PORT;
    options.association = config.clone();
    options
}

fn connect(
    world: &mut World,
    config: &AssociationConfig,
    host: usize,
    inits: &[SnapInit; 2],
) -> Result<AssociationId, Error> {
    let (now, peer) = (world.now, 1 - host);
    let options = options(peer, config);
    let endpoint = &mut world.hosts[host].endpoint;
    endpoint.connect_out_of_band(now, &options, &inits[host], &inits[peer])
}

/// Both hosts, with the association established under `config`.
fn up(config: &AssociationConfig) -> (World, [AssociationId; 2]) {
    let mut world = World::new();
    let inits = exchanged(&mut world, config);
    let ids = [A, B].map(|host| connect(&mut world, config, host, &inits).unwrap());
    (world, ids)
}

//= snap SCTP
//# both are ESTABLISHED once DTLS is; the first packet carries data
#[test]
fn the_first_packet_carries_data() {
    let mut config = quiet();
    config.extensions.zero_checksum = true;
    let (mut world, [a, b]) = up(&config);
    world.tap.keep = Some("DATA");
    world.send(A, a, 5, "hello");
    world.send(B, b, 6, "good day");
    world.run_until(ms(10), |world| world.hosts.iter().all(|host| host.received_messages() == 1));
    assert_eq!(world.tap.ladder[..2], ["A -> B  I-DATA", "A <- B  I-DATA"]);
    assert_eq!(
        world.tap.kept.as_ref().unwrap()[8..12],
        [0; 4],
        "no handshake, so no checksum at all"
    );
    let expected = Event::Up { outbound: 1024, inbound: 1024, by_peer: false };
    for host in &world.hosts {
        assert_eq!(host.events[0].1, expected);
        assert_eq!(host.state(), AssociationState::Established);
    }
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world.run_for(ms(1000));
    assert!(world.hosts.iter().all(|host| host.events.last().unwrap().1 == Event::Closed));
}

//= snap offer
//# the parameters that a packet would have, without addresses
#[test]
fn an_extension_missing_on_one_side_is_not_negotiated() {
    let mut world = World::new();
    let (rich, mut poor) = (quiet(), quiet());
    poor.extensions.interleaving = false;
    poor.extensions.partial_reliability = false;
    (poor.outbound_streams, poor.max_inbound_streams) = (16, 32);
    let inits = [
        world.hosts[A].endpoint.init_out_of_band(&rich),
        world.hosts[B].endpoint.init_out_of_band(&poor),
    ];
    let a = connect(&mut world, &rich, A, &inits).unwrap();
    let b = connect(&mut world, &poor, B, &inits).unwrap();
    let (of_a, of_b) = (world.hosts[A].status(a), world.hosts[B].status(b));
    assert_eq!(of_a.agreed, of_b.agreed);
    assert!(!of_a.agreed.interleaving && !of_a.agreed.partial_reliability);
    assert!(of_a.agreed.reconfiguration);
    assert_eq!((of_a.outbound_streams, of_a.inbound_streams), (32, 16));
    assert_eq!((of_b.outbound_streams, of_b.inbound_streams), (16, 32));
}

//= snap SCTP
//# writing and reading the attribute starts nothing
#[test]
fn encoding_and_parsing_the_attribute_starts_nothing() {
    let mut world = World::new();
    exchanged(&mut world, &quiet());
    world.run_for(ms(60_000));
    assert_eq!(world.tap.ladder, [""; 0]);
    assert_eq!(world.hosts[A].endpoint.associations(), []);
}

//= snap offerer
//# our own INIT, echoed, is rejected
#[test]
fn our_own_attribute_sent_back_is_rejected() {
    let mut world = World::new();
    let own = world.hosts[A].endpoint.init_out_of_band(&quiet());
    let echoed = [own.clone(), own];
    assert_eq!(connect(&mut world, &quiet(), A, &echoed), Err(Error::BadInit));
    // A handshake still works.
    let (a, _) = world.connected();
    assert_eq!(world.hosts[A].status(a).state, AssociationState::Established);
}

//= snap modifying
//# one INIT opens one association
#[test]
fn an_init_opens_one_association() {
    let mut world = World::new();
    let config = quiet();
    let inits = exchanged(&mut world, &config);
    connect(&mut world, &config, A, &inits).unwrap();
    assert_eq!(connect(&mut world, &config, A, &inits), Err(Error::Busy));
    let mut elsewhere = options(B, &config);
    elsewhere.remotes = vec![socket(B, 1)];
    let endpoint = &mut world.hosts[A].endpoint;
    let again = endpoint.connect_out_of_band(world.now, &elsewhere, &inits[A], &inits[B]);
    assert_eq!(again, Err(Error::Busy), "its tag is taken");
    elsewhere.local_port = 0;
    let unnamed = endpoint.connect_out_of_band(world.now, &elsewhere, &inits[A], &inits[B]);
    assert_eq!(unnamed, Err(Error::NoPort));
}

//= snap beyond
//# a peer that sends an INIT anyway is answered as one that restarted
#[test]
fn a_peer_that_still_connects_with_a_handshake_gets_one() {
    let mut world = World::new();
    let config = quiet();
    let inits = exchanged(&mut world, &config);
    connect(&mut world, &config, B, &inits).unwrap();
    let a = world.connect_with(|options| options.local_port = PORT);
    world.run_until(ms(1000), |world| {
        world.hosts[A].status(a).state == AssociationState::Established
    });
    assert!(world.hosts[B].events().contains(&Event::Restarted));
    world.send(A, a, 0, "after all");
    world.run_until(ms(1000), |world| world.hosts[B].received_messages() == 1);
}
