//! An association whose INITs were exchanged out of band, as in SDP: it is established without a
//! packet (draft-hancke-tsvwg-snap, "SCTP considerations").

use alloc::boxed::Box;
use core::net::{IpAddr, SocketAddr};

use super::init_params::InitParams;
use super::state::AssociationPhase;
use super::{Association, AssociationSeed};

impl Association {
    /// Creates an established association from both sides' INITs: steps A to E of RFC 9260 §5.1 are
    /// complete.
    pub(crate) fn agreed_out_of_band(
        base: AssociationSeed,
        own: &InitParams,
        peer: &InitParams,
        remotes: &[SocketAddr],
        local: Option<IpAddr>,
    ) -> Box<Self> {
        let paths = base.paths_to(remotes, local);
        let mut association =
            Box::new(Self::new(base, own, peer, paths, AssociationPhase::Established));
        association.notify_up(false);
        association
    }
}
