//! Where the response goes, and what else is printed.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::targets::OutputTargets;
use crate::flags::error::ValueError;
use crate::flags::values;

/// Where the response goes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct BodyFlags {
    #[command(flatten)]
    pub(crate) targets: OutputTargets,
    /// Write the body of each URL to a file named after it, unless -o names another
    #[arg(long, hide_short_help = true)]
    pub(crate) remote_name_all: bool,
    /// With -O, take the file name from the response's Content-Disposition, if it has one; a file or
    /// link of that name is kept, and the transfer fails
    #[arg(short = 'J', long, conflicts_with = "continue_at")]
    pub(crate) remote_header_name: bool,
    /// Directory of the files of -o and -O
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Create the directories of the files of -o and -O
    #[arg(long)]
    pub(crate) create_dirs: bool,
    /// Give a written file the time of the response's Last-Modified
    #[arg(short = 'R', long)]
    pub(crate) remote_time: bool,
    /// Continue a download at this offset; - goes on where the file, or a run before, ended
    ///
    /// What a run with -C - has received is kept if it fails, and what a killed run has received
    /// is found: in a hidden file beside the one that was asked for, until that is complete. It is
    /// continued only if the server's file is still the same.
    #[arg(short = 'C', long, value_name = "OFFSET", conflicts_with_all = ["range", "upload_file"])]
    pub(crate) continue_at: Option<ContinueAt>,
    /// Print the response headers before the body, with -L also those of each redirect
    #[arg(short = 'i', long)]
    pub(crate) include: bool,
    /// Write the headers of all responses to FILE; - is standard output
    #[arg(short = 'D', long, value_name = "FILE")]
    pub(crate) dump_header: Option<PathBuf>,
    /// Print this after each body: %{http_code}, %{time_total} and others of curl's, \\n; @FILE reads it
    ///
    /// 'eyas man guide curl' lists the variables.
    #[arg(short = 'w', long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub(crate) write_out: Option<String>,
    /// Fail with exit code 22 if the status is 400 or above, and write no body
    #[arg(short = 'f', long, overrides_with = "fail_with_body")]
    pub(crate) fail: bool,
    /// Like --fail, but write the body
    #[arg(long, overrides_with = "fail")]
    pub(crate) fail_with_body: bool,
    /// Stop at the first URL that fails, and exit with its code instead of the last one's
    #[arg(long)]
    pub(crate) fail_early: bool,
    /// Receive at most this many bytes per second, such as 500, 20k or 1M (1024 each); 0 is no limit
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub(crate) limit_rate: Option<u64>,
    /// Show the race, the request, redirects and response headers on standard error
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,
    /// No progress bar and no error messages, only the exit code
    #[arg(short = 's', long)]
    pub(crate) silent: bool,
    /// Print error messages despite --silent
    #[arg(short = 'S', long)]
    pub(crate) show_error: bool,
    /// No progress bar
    #[arg(long, hide_short_help = true)]
    pub(crate) no_progress_meter: bool,
    /// Show a progress bar on a terminal, as eyas does anyway
    #[arg(short = '#', long, hide_short_help = true)]
    pub(crate) progress_bar: bool,
    /// Write what arrives at once, as eyas does anyway
    #[arg(short = 'N', long, hide_short_help = true)]
    pub(crate) no_buffer: bool,
    /// Take brackets and braces in URLs as they are, as eyas does anyway
    #[arg(short = 'g', long, hide_short_help = true)]
    pub(crate) globoff: bool,
    /// Explain on standard error why each candidate is ranked where it is
    #[arg(long)]
    pub(crate) explain: bool,
    /// Record the race in FILE, for 'eyas replay'
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

impl BodyFlags {
    /// Returns whether only the exit code tells of an error.
    pub(crate) const fn hides_errors(&self) -> bool {
        self.silent && !self.show_error
    }
}

/// Where a download goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContinueAt {
    /// Where what is there ends.
    End,
    /// At this offset.
    Offset(u64),
}

impl FromStr for ContinueAt {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "-" => Ok(Self::End),
            text => {
                let offset = text.parse().map(Self::Offset);
                offset.map_err(|_| ValueError::Form("an offset in bytes, or -"))
            }
        }
    }
}
