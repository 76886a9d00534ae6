//! An association whose INITs went another way, as in SDP: it is up without a packet
//! (draft-hancke-tsvwg-snap, "SCTP considerations").

use alloc::boxed::Box;
use core::net::{IpAddr, SocketAddr};

use super::init_params::InitParams;
use super::state::State;
use super::{Association, AssociationSeed};

impl Association {
    /// One that both sides know all about: `own` is what our INIT said, `peer` what the peer's did.
    /// Steps A to E of RFC 9260 §5.1 are behind it.
    pub(crate) fn agreed_out_of_band(
        base: AssociationSeed,
        own: &InitParams,
        peer: &InitParams,
        remotes: &[SocketAddr],
        local: Option<IpAddr>,
    ) -> Box<Self> {
        let paths = base.paths_to(remotes, local);
        let mut association = Box::new(Self::new(base, own, peer, paths, State::Established));
        association.announce_up(false);
        association
    }
}
