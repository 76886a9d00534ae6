//! Messages that exceed one packet by little, so that every second packet begins with a crumb.

use std::collections::BTreeSet;

use eyas_sctp::config::ProfileName;
use eyas_sctp::message::largest_in_packet;

use crate::plan::Plan;
use crate::situation::SimulationSetup;

/// The SCTP packet of a simulated path: an MTU of 1,500 bytes, less the header of IPv4.
const PACKET: usize = 1480;
/// A rest of a message is a crumb if it is less than this part of a packet.
const CRUMB_PART: usize = 8;

/// Returns a warning for each size of the plan's messages that leaves crumbs.
pub(super) fn warnings(plan: &Plan) -> Vec<String> {
    let setups = plan.grid.points.iter().filter_map(|point| point.situation.simulated());
    let sizes: BTreeSet<(usize, usize)> = setups.filter_map(crumbling).collect();
    let warning = |(message, whole): (usize, usize)| {
        format!(
            "Warning: a packet carries {whole} bytes of a message whole, so that messages of \
             {message} bytes are cut, and {} bytes of each begin another packet; with \
             application.message = {whole}, or with association.interleaving = false where that \
             makes the difference, they are not.",
            message % whole
        )
    };
    sizes.into_iter().map(warning).collect()
}

/// Returns the size of the messages, and the largest that one packet carries whole, if the former
/// leaves crumbs.
fn crumbling(setup: &SimulationSetup) -> Option<(usize, usize)> {
    let association = &setup.association;
    let is_default = association.profile == ProfileName::Default;
    let whole = largest_in_packet(PACKET, association.interleaving.unwrap_or(is_default));
    let message = setup.application.message;
    let rest = message % whole;
    (message > whole && rest > 0 && rest < whole / CRUMB_PART).then_some((message, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_a_little_larger_than_a_packet_leave_crumbs() {
        for (message, association, found) in [
            (1452, "", Some((1452, 1448))),
            (1448, "", None),
            (1452, "interleaving = false", None),
            (1452, "profile = 'pfldnet2010'", None),
            (1453, "interleaving = false", Some((1453, 1452))),
            (2900, "", Some((2900, 1448))),
            (2896, "", None),
            (2000, "", None),
            (100, "", None),
        ] {
            let text = format!(
                "time = {{ warm_up = '1 s', duration = '1 s' }}\n\
                 path.A = {{ rate = '10 Mbit/s', delay = '10 ms' }}\n\
                 application.message = {message}\n[association]\n{association}"
            );
            let setup: SimulationSetup = toml::from_str(&text).expect("a set-up");
            assert_eq!(crumbling(&setup), found, "{message} {association}");
        }
    }
}
