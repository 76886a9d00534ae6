//! Flags of associations with several paths.

use std::net::IpAddr;

use clap::Args;
use eyas::sctp::protocol::config::CongestionControlKind;

use super::values;

/// Which paths an SCTP association has and how it uses them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "SCTP paths")]
pub(crate) struct PathFlags {
    /// Use these addresses of this host for SCTP and tell the peer of no others, instead of all
    /// that it can reach; repeat it, or separate them by commas
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub(crate) local_address: Vec<IpAddr>,
    /// Send on all paths at once, and not on one with the others in reserve (CMT-SCTP)
    ///
    /// Each side chooses for what it sends. Messages of one stream take whichever path has room.
    /// Each path has a congestion window of its own, so that lines apart are all full; where paths
    /// may share a bottleneck with others, --congestion cmt-rp-v2 or olia takes one fair share
    /// there.
    #[arg(long)]
    pub(crate) multipath: bool,
    /// What decides how much may be under way on a path [default: cubic]
    #[arg(long, value_name = "NAME", hide_short_help = true, value_parser = values::congestion())]
    pub(crate) congestion: Option<CongestionControlKind>,
    /// Bytes that may wait to be sent, and to be read [default: 1048576; with --multipath 4194304]
    #[arg(long, value_name = "BYTES", hide_short_help = true,
          value_parser = clap::value_parser!(u32).range(4096..))]
    pub(crate) buffer: Option<u32>,
}

impl PathFlags {
    /// Whether several paths are asked for.
    pub(crate) fn wants_several(&self) -> bool {
        self.multipath || self.local_address.len() > 1
    }
}
