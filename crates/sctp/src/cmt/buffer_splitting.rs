//! Buffer splitting: no path may take more than its share of a buffer that all paths need, or a
//! slow one stops them all (Dreibholz, Becke, Rathgeb, Tüxen: On the Use of Concurrent Multipath
//! Transfer over Asymmetric Paths, GLOBECOM 2010).

/// Which bytes of a path count against its share of a buffer. With `n` paths, new data does not go
/// on path `p` with `b_p` such bytes if
/// - at the sender's side, `b_p` and one packet more exceed a share `1/n` of the send buffer;
/// - at the receiver's side, `b_p` exceeds a share `1/n` of the peer's window and what is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BufferSplitting {
    /// No shares.
    #[default]
    None,
    /// Bytes sent on the path and neither cumulatively nor non-renegably acknowledged.
    Queued,
    /// Bytes under way on the path: gap acknowledgements take them out, too.
    Outstanding,
}
