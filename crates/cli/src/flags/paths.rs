//! Flags of associations with several paths.

use std::net::IpAddr;

use clap::Args;
use eyas_sctp_tokio::protocol::config::CongestionControlKind;

use super::multipath::MIN_BUFFER;
use super::{MultipathOptions, values};

/// The paths of an SCTP association and their use.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "SCTP paths")]
pub(crate) struct PathFlags {
    /// Use only these local addresses for SCTP and announce no others to the peer; repeat it, or
    /// separate them by commas [default: all that the peer can reach]
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub(crate) local_address: Vec<IpAddr>,
    /// Send on all paths at once, instead of one with the others as backup (CMT-SCTP)
    ///
    /// Each side decides for the data that it sends. Messages of one stream use any path with free
    /// capacity. Each path has its own congestion window, so that separate lines are all filled; if
    /// paths may share a bottleneck with others, --congestion cmt-rp-v2 or olia takes one fair
    /// share there. Options are named as in plans of the lab, such as
    /// --multipath=mapping=modulo,sack-path=last-arrival; 'eyas man guide tunnel' lists
    /// them.
    #[arg(long, value_name = "NAME=VALUE,...", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    pub(crate) multipath: Option<MultipathOptions>,
    /// Congestion control [default: cubic]
    #[arg(long, value_name = "NAME", hide_short_help = true, value_parser = values::congestion())]
    pub(crate) congestion: Option<CongestionControlKind>,
    /// Size of the send and receive buffers in bytes [default: 1048576; with --multipath 4194304]
    #[arg(long, value_name = "BYTES", hide_short_help = true,
          value_parser = clap::value_parser!(u32).range(i64::from(MIN_BUFFER)..))]
    pub(crate) buffer: Option<u32>,
}

impl PathFlags {
    /// Returns whether several paths are requested.
    pub(crate) fn wants_several(&self) -> bool {
        self.multipath.is_some() || self.local_address.len() > 1
    }
}
