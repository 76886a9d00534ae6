//! Flags of `eyas get`. Those that curl has too mean what they mean to curl, unless docs/guide/curl.md says otherwise.

mod data;
mod output;
mod request;
mod retry;
mod targets;

use clap::{Arg, ArgAction, Args, Command};

use super::choice::{ChoiceFlags, PolicyName, VersionFlags};
use super::reach::{ReachFlags, TrustFlags};

pub(crate) use data::{DataForm, DataPiece};
pub(crate) use output::{BodyFlags, ContinueAt};
pub(crate) use request::{HeaderSource, RequestFlags, SourceFlag};
pub(crate) use retry::RetryFlags;
#[cfg(test)]
pub(crate) use targets::OutputTargets;
pub(crate) use targets::{OutputTarget, Urls};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas get https://example.org/           the page on standard output
  eyas get -v https://example.org/        with the race, on standard error
  eyas get -O https://example.org/a.iso   into a.iso, once complete
  eyas get -C - -O https://example.org/a.iso
                                          the same, and go on where a run
                                          before was stopped
  eyas get -sw '%{http_code}\\n' -o page https://example.org/
                                          the status, for a script
  eyas get -I https://example.org/        only the headers
  eyas get -d name=value https://example.org/form
  eyas get --json -o page https://example.org/
                                          status, timings, race as one object
  eyas get --cacert ca.pem --resolve test.example:8443:127.0.0.1 \\
           https://test.example:8443/

Flags are curl's, and 'eyas man guide curl' compares them all. Two mean
something else: --json prints the results as one object, while curl's sends
JSON: use -d DATA with -H 'Content-Type: application/json' for that. --trace
records the race for 'eyas replay', while curl's logs all bytes.

'eyas URL' is short for 'eyas get URL'.

A run that wins over TCP while HTTP/3 stays silent remembers that; the next one
uses TCP at once.";

/// Flags of `eyas get`.
#[derive(Args, Clone, Debug)]
pub(crate) struct GetFlags {
    #[command(flatten)]
    pub(crate) urls: Urls,
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    #[command(flatten)]
    pub(crate) output: BodyFlags,
    #[command(flatten)]
    pub(crate) retry: RetryFlags,
    #[command(flatten)]
    pub(crate) versions: VersionFlags,
    /// Start HTTP/2 at once with http:// URLs, whose server is known to support it
    #[arg(long, help_heading = "HTTP versions",
          overrides_with_all = ["http1_1", "http2", "http3", "http3_only"])]
    pub(crate) http2_prior_knowledge: bool,
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

/// Adds curl's second form of each flag without a value, which takes the first back: `--no-location`, and `--buffer` for
/// `--no-buffer`. The help leaves them out.
pub(super) fn with_negations(command: Command) -> Command {
    let is_switch = |flag: &&Arg| matches!(flag.get_action(), ArgAction::SetTrue);
    let flags = command.get_arguments().filter(is_switch);
    let flags = flags.filter_map(|flag| Some((flag.get_id().clone(), flag.get_long()?.to_owned())));
    let flags: Vec<_> = flags.collect();
    flags.into_iter().fold(command, |command, (id, long)| {
        let name = match long.strip_prefix("no-") {
            Some(bare) => bare.to_owned(),
            None => format!("no-{long}"),
        };
        let flag = Arg::new(name.clone()).long(name).action(ArgAction::SetTrue);
        command.arg(flag.overrides_with(id).hide(true))
    })
}
