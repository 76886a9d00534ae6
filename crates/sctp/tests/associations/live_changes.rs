//! Settings changed while an endpoint and its associations run.

use crate::associations::world::{A, B, World, ms, quiet};
use eyas_sctp::error::Error;
use eyas_sctp::event::{Event, LossReason};

#[test]
fn an_endpoint_stops_and_restarts_listening() {
    let mut world = World::new();
    let port = world.hosts[B].endpoint.config().listen_port;
    world.hosts[B].endpoint.listen(None);
    world.connect();
    world.run_for(ms(1000));
    let refused = |event: &Event| matches!(event, Event::Lost(LossReason::AbortedByPeer { .. }));
    assert!(world.hosts[A].events().iter().any(refused), "{:?}", world.hosts[A].events());
    assert!(world.hosts[A].endpoint.is_idle() && world.hosts[B].endpoint.is_idle());
    world.hosts[B].endpoint.listen(port);
    let mut config = quiet();
    config.max_inbound_streams = 3;
    world.hosts[B].endpoint.accept_with(config);
    let (a, _) = world.connected();
    assert_eq!(world.hosts[A].status(a).outbound_streams, 3, "the limit that was set since");
}

#[test]
fn settings_of_a_running_association_take_effect() {
    let mut world = World::with_associations(|config| config.send_buffer = 10_000);
    let (a, _) = world.connected();
    let now = world.now;
    let endpoint = &mut world.hosts[A].endpoint;
    assert!(!endpoint.is_writable(a, 10_001));
    let mut config = endpoint.association_config(a).unwrap().clone();
    config.send_buffer = 20_000;
    config.rto_min = ms(7000);
    endpoint.association_mut(now, a).unwrap().configure(&config).unwrap();
    assert!(endpoint.is_writable(a, 10_001));
    assert_eq!(endpoint.association_config(a).unwrap().send_buffer, 20_000);
    assert!(world.hosts[A].status(a).paths.iter().all(|path| path.rto >= ms(7000)));
}

#[test]
fn a_waiting_sender_is_notified_of_free_space() {
    let mut world = World::with_associations(|config| config.send_buffer = 10_000);
    let (a, _) = world.connected();
    world.send(A, a, 0, vec![0; 9000]);
    let now = world.now;
    let endpoint = &mut world.hosts[A].endpoint;
    assert_eq!(endpoint.queued(a), 9000);
    endpoint.wait_for_room(now, a, 10_000);
    assert!(!world.hosts[A].events().contains(&Event::Writable));
    world.run_for(ms(5000));
    assert!(world.hosts[A].events().contains(&Event::Writable));
    assert_eq!(world.hosts[A].endpoint.queued(a), 0);
}

#[test]
fn a_removed_association_cannot_be_changed() {
    let mut world = World::new();
    let (a, _) = world.connected();
    let now = world.now;
    let endpoint = &mut world.hosts[A].endpoint;
    assert!(endpoint.association_mut(now, a).is_ok());
    endpoint.forget(now, a);
    assert_eq!(endpoint.association_mut(now, a).err(), Some(Error::NoAssociation));
}
