//! Several paths (RFC 9260 §6.4, §8): what happens when one breaks.

use crate::world::{A, B, World, ms, multihomed};
use eyas_sctp::endpoint::PathState;

#[test]
fn data_goes_on_over_another_path_when_one_is_cut() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    let (a, b) = world.connected();
    world.run_for(ms(2000));
    for (host, id) in [(A, a), (B, b)] {
        let status = world.hosts[host].status(id);
        assert_eq!(status.paths.len(), 2);
        assert!(status.paths.iter().all(|path| path.state == PathState::Active), "{status:?}");
    }
    world.network.cut = vec![0];
    world.clear_ladder();
    world.send(A, a, 0, "over there");
    world.run_until(ms(5000), |world| world.hosts[B].received_messages() == 1);
    assert!(world.ladder.iter().any(|line| line == "A -> B  I-DATA (network 1)"));
}
