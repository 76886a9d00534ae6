//! What an NR-SACK acknowledges for good (draft-tuexen-tsvwg-sctp-multipath §3; Natarajan et al.,
//! ICNP 2008).

/// When a chunk is acknowledged non-renegably: the sender may forget it from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum NrSackPolicy {
    /// When its message has been delivered to the application.
    AtDelivery,
    /// When it has arrived: this receiver never drops what it has reported.
    #[default]
    AtArrival,
}
