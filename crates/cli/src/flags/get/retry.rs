//! When a transfer is tried again.

use std::time::Duration;

use clap::Args;

use crate::flags::values;

/// When a transfer is tried again.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Retrying")]
pub(crate) struct RetryFlags {
    /// Try again up to N times if the time ran out, the name was not found, or the status is 408, 429,
    /// 500, 502, 503 or 504
    ///
    /// After one second, then twice as long each time up to ten minutes, or as long as Retry-After says.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) retry: u32,
    /// Wait this long before each retry, unless Retry-After says otherwise; 0 doubles from one second
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) retry_delay: Option<Duration>,
    /// Start no retry after this time
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) retry_max_time: Option<Duration>,
    /// With --retry, try again if connections are refused, too
    #[arg(long)]
    pub(crate) retry_connrefused: bool,
    /// With --retry, try again after any error
    #[arg(long)]
    pub(crate) retry_all_errors: bool,
}
