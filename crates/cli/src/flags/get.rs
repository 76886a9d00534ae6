//! Flags of `eyas get`.

use std::path::PathBuf;

use clap::Args;

use super::choice::{ChoiceFlags, PolicyName, VersionFlags};
use super::form::{self, FormField};
use super::reach::{ReachFlags, TrustFlags};
use super::values::{self, HeaderLine};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas get https://example.org/           the page on standard output
  eyas get -v https://example.org/        with the race, on standard error
  eyas get -O https://example.org/a.iso   into a.iso, once complete
  eyas get -I https://example.org/        only the headers
  eyas get -d name=value https://example.org/form
  eyas get --json -o page https://example.org/
                                          status, timings, race as one object
  eyas get --cacert ca.pem --resolve test.example:8443:127.0.0.1 \\
           https://test.example:8443/

Two flags differ from curl's flags of the same name. --json prints the results
as one object, while curl's sends JSON: use -d DATA with -H 'Content-Type:
application/json' for that. --trace records the race for 'eyas replay', while
curl's logs all bytes.

'eyas URL' is short for 'eyas get URL'.

A run that wins over TCP while HTTP/3 stays silent remembers that; the next one
uses TCP at once.";

/// Flags of `eyas get`.
#[derive(Args, Clone, Debug)]
pub(crate) struct GetFlags {
    /// The URL to fetch; https:// if no scheme is given
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    #[command(flatten)]
    pub(crate) output: BodyFlags,
    #[command(flatten)]
    pub(crate) versions: VersionFlags,
    /// How HTTP/3 and HTTP over TCP are tried
    #[arg(long, value_name = "POLICY", default_value = "race", help_heading = "Choosing")]
    pub(crate) policy: PolicyName,
    #[command(flatten)]
    pub(crate) choice: ChoiceFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// The request.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestFlags {
    /// Request only the headers (HEAD), and print them
    #[arg(short = 'I', long,
          conflicts_with_all = ["data", "data_binary", "form", "form_string", "upload_file"])]
    pub(crate) head: bool,
    /// Request method
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(crate) method: Option<http::Method>,
    /// Add a header; 'Name;' sends it empty, 'Name:' omits one that eyas would send
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = values::header)]
    pub(crate) header: Vec<HeaderLine>,
    /// Send this data with POST; @FILE reads a file, @- standard input; several are joined with &
    #[arg(short = 'd', long, value_name = "DATA")]
    pub(crate) data: Vec<String>,
    /// Like --data, but send @FILE unchanged, including line breaks
    #[arg(long, value_name = "DATA")]
    pub(crate) data_binary: Vec<String>,
    /// Send a form with POST (multipart/form-data): NAME=TEXT, NAME=@FILE to upload a file, NAME=<FILE for
    /// its text; ;type=TYPE and ;filename=NAME may follow
    #[arg(short = 'F', long, value_name = "NAME=CONTENT", value_parser = form::field,
          conflicts_with_all = ["data", "data_binary"])]
    pub(crate) form: Vec<FormField>,
    /// Like --form, but use the text as it is, even if it starts with @ or <
    #[arg(long, value_name = "NAME=TEXT", value_parser = form::plain_field,
          conflicts_with_all = ["data", "data_binary"])]
    pub(crate) form_string: Vec<FormField>,
    /// Send FILE with PUT, - is standard input; if the URL ends in /, the file name is appended
    #[arg(short = 'T', long, value_name = "FILE",
          conflicts_with_all = ["data", "data_binary", "form", "form_string"])]
    pub(crate) upload_file: Option<PathBuf>,
    /// Follow redirects
    #[arg(short = 'L', long)]
    pub(crate) location: bool,
    /// Maximum number of redirects to follow
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) max_redirs: usize,
    /// User-Agent to send
    #[arg(short = 'A', long, value_name = "NAME")]
    pub(crate) user_agent: Option<String>,
    /// User and password for HTTP Basic authentication
    #[arg(short = 'u', long, value_name = "USER:PASSWORD")]
    pub(crate) user: Option<String>,
    /// Request a compressed response and decompress it
    #[arg(long)]
    pub(crate) compressed: bool,
    /// Proxy for requests over TCP; by default the environment decides (https_proxy, no_proxy)
    #[arg(short = 'x', long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// Keep cookies between the requests of a chain of redirects
    #[arg(long)]
    pub(crate) cookies: bool,
}

/// Where the response goes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct BodyFlags {
    /// Write the body to FILE, which is created once it is complete; - is standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write the body to a file named after the last part of the URL
    #[arg(short = 'O', long, conflicts_with = "output")]
    pub(crate) remote_name: bool,
    /// Print the response headers before the body, with -L also those of each redirect
    #[arg(short = 'i', long)]
    pub(crate) include: bool,
    /// Fail with exit code 22 if the status is 400 or above, and write no body
    #[arg(short = 'f', long)]
    pub(crate) fail: bool,
    /// Show the race, the request, redirects and response headers on standard error
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,
    /// No progress bar and no error messages, only the exit code
    #[arg(short = 's', long)]
    pub(crate) silent: bool,
    /// Print error messages despite --silent
    #[arg(short = 'S', long)]
    pub(crate) show_error: bool,
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
