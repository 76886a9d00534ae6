//! `eyas get`: fetch URLs over the best transport that works.
//!
//! | module | purpose |
//! | --- | --- |
//! | `client`, `cookies` | what all URLs of a run share |
//! | `request`, `content` | what is sent |
//! | `transfer` | one URL: request, response, body |
//! | `receiving` | the body on its way to its destination |
//! | `continuation` | `-C` |
//! | `names` | the files that bodies go to |
//! | `retry`, `pace` | `--retry`, `--limit-rate` |
//! | `facts`, `write_out` | `-w` |
//! | `report`, `failure` | what is printed about a transfer |

mod client;
mod content;
mod continuation;
mod cookies;
mod facts;
mod failure;
mod names;
mod pace;
mod receiving;
mod report;
mod request;
mod retry;
mod transfer;
mod write_out;

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use eyas_http::Client;
use url::Url;

use self::content::RequestInputs;
use self::cookies::RunCookies;
use self::facts::TransferFacts;
use self::retry::{RetriesLeft, RetryCause};
use self::transfer::{FetchedResponse, TransferEnd, UrlTransfer};
use self::write_out::TerminalStreams;
use super::linger::linger;
use super::setting::RaceContext;
use super::{target, until_interrupted};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, GetFlags};
use crate::output::{self, UnfinishedBytes};

/// How long the client, stopped by `--max-time`, may take to return its more informative error.
const CLIENT_ERROR_GRACE: Duration = Duration::from_millis(250);

/// Fetches and reports.
pub(crate) async fn run(flags: &GetFlags, common: &CommonFlags) -> Result<(), Failure> {
    let unfinished = UnfinishedBytes::default();
    let run = async {
        let mut run = within(flags, GetRun::start(flags, common, &unfinished)).await?;
        let ended = run.transfers().await;
        run.save_cookies();
        ended
    };
    until_interrupted(run).await.map_err(|failure| unfinished.explain(failure))
}

/// Lets something take as long as `--max-time` allows: not only the peer can be slow, but also the
/// reader of the output.
async fn within<T>(
    flags: &GetFlags,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Some(limit) = flags.reach.max_time() else { return work.await };
    tokio::time::timeout(limit.saturating_add(CLIENT_ERROR_GRACE), work).await.unwrap_or_else(
        |_| {
            let message = format!("not finished within the {limit:?} of --max-time");
            let failure = Failure::new(FailureKind::Timeout, message);
            Err(match flags.output.targets.0.is_empty() {
                true => failure.hint("allow more time"),
                false => failure.hint("allow more time; is the output being read?"),
            })
        },
    )
}

/// A run: its URLs, and what they share.
struct GetRun<'a> {
    flags: &'a GetFlags,
    common: &'a CommonFlags,
    unfinished: &'a UnfinishedBytes,
    urls: Vec<Url>,
    inputs: RequestInputs,
    /// The format of `-w`.
    format: Option<String>,
    context: RaceContext,
    cookies: Option<Arc<RunCookies>>,
    /// Where `-D` writes.
    heads: Option<std::fs::File>,
    /// `None` once the last URL has been fetched.
    client: Option<Client>,
}

impl<'a> GetRun<'a> {
    async fn start(
        flags: &'a GetFlags,
        common: &'a CommonFlags,
        unfinished: &'a UnfinishedBytes,
    ) -> Result<Self, Failure> {
        if common.json && flags.output.write_out.is_some() {
            return Err(Failure::new(
                FailureKind::Usage,
                "--json and -w cannot both go to standard output",
            )
            .hint("the object of --json has everything that -w prints"));
        }
        let urls =
            flags.urls.0.iter().map(|url| target::url(url)).collect::<Result<Vec<_>, _>>()?;
        let targets = urls.iter().map(|url| target::from_url(url, flags.versions));
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        // One is required.
        let Some(first) = targets.first() else {
            return Err(Failure::new(FailureKind::Usage, "no URL"));
        };
        let inputs = RequestInputs::read(&flags.request).await?;
        let format = match &flags.output.write_out {
            Some(given) => Some(content::format(given).await?),
            None => None,
        };
        let cookies = RunCookies::read(&flags.request, &urls).map(Arc::new);
        let heads = flags.output.dump_header.as_deref().map(transfer::open_heads).transpose()?;
        let context = client::context(flags, &targets).await?;
        let client = client::client((flags, common), &context, first, cookies.as_ref())?;
        let (heads, client) = (heads.flatten(), Some(client));
        Ok(Self {
            flags,
            common,
            unfinished,
            urls,
            inputs,
            format,
            context,
            cookies,
            heads,
            client,
        })
    }

    /// Fetches all URLs, one after the other. As in curl, the outcome is that of the last one.
    async fn transfers(&mut self) -> Result<(), Failure> {
        for index in 0..self.urls.len() {
            let is_last = index + 1 == self.urls.len();
            let ended = self.transfer(index, is_last).await;
            match ended {
                Err(failure) if is_last || self.flags.output.fail_early => return Err(failure),
                Err(failure) => {
                    output::report(&failure, self.common, self.flags.output.hides_errors());
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Fetches one URL, as often as it takes.
    async fn transfer(&mut self, index: usize, is_last: bool) -> Result<(), Failure> {
        let mut retries = RetriesLeft::new(&self.flags.retry);
        let began = Instant::now();
        loop {
            let mut facts = TransferFacts { number: index, ..TransferFacts::default() };
            let tried = {
                let transfer = UrlTransfer {
                    run: self,
                    url: &self.urls[index],
                    began: Instant::now(),
                    retry: &mut |status, headers| {
                        let after = retry::retry_after(headers, SystemTime::now());
                        retries.next(RetryCause::Status(status, after), began.elapsed())
                    },
                };
                within(self.flags, transfer.run(index, &mut facts)).await
            };
            // Only now: this waits until what was learnt is on the disk.
            self.context.warn(self.common);
            let later = match &tried {
                Ok(TransferEnd::Busy(status, delay)) => {
                    Some((format!("it answered {status}"), *delay))
                }
                Ok(TransferEnd::Whole(_)) => None,
                Err(failure) => retries
                    .next(RetryCause::Failure(failure.kind), began.elapsed())
                    .map(|delay| (failure.message.clone(), delay)),
            };
            if let Some((why, delay)) = later {
                self.announce_retry(&why, delay, retries.left());
                tokio::time::sleep(delay).await;
                continue;
            }
            if let Err(failure) = &tried {
                facts.fail(failure);
            }
            self.write_out(&facts)?;
            return match tried {
                Ok(TransferEnd::Whole(fetched)) => self.finish(*fetched, is_last).await,
                Ok(TransferEnd::Busy(..)) => Ok(()),
                Err(failure) => Err(failure),
            };
        }
    }

    /// Reports on a transfer, once what its race can still teach is learnt.
    async fn finish(&mut self, fetched: FetchedResponse, is_last: bool) -> Result<(), Failure> {
        let FetchedResponse { shape, response } = fetched;
        if !response.connection_was_reused() || response.redirects() > 0 {
            linger(|| response.trace(), &self.context.memory).await;
        }
        if is_last {
            // This ends the rest of the race.
            self.client = None;
        }
        let resolver = self.context.endpoint.resolver();
        report::finish(&shape, response.trace(), resolver, self.flags, self.common)
    }

    fn client(&self) -> Result<&Client, Failure> {
        self.client.as_ref().ok_or_else(|| Failure::new(FailureKind::Connect, "the run is over"))
    }

    fn announce_retry(&self, why: &str, delay: Duration, left: u32) {
        if !self.flags.output.silent {
            let seconds = delay.as_secs_f64();
            self.warn(&format!("{why}; trying again in {seconds:.0} s, {left} more times"));
        }
    }

    fn warn(&self, text: &str) {
        output::notice(self.common.color, text);
    }

    /// Prints what `-w` wants.
    fn write_out(&self, facts: &TransferFacts) -> Result<(), Failure> {
        let Some(format) = &self.format else { return Ok(()) };
        let terminals = TerminalStreams {
            out: std::io::stdout().is_terminal(),
            err: std::io::stderr().is_terminal(),
        };
        let written = write_out::fill(format, facts, terminals);
        for name in &written.unknown {
            self.warn(&format!("-w has no variable {name}: 'eyas man guide curl' lists them"));
        }
        if !written.err.is_empty() {
            // A failure of that cannot be reported.
            let _ = std::io::stderr().lock().write_all(written.err.as_bytes());
        }
        if written.out.is_empty() { Ok(()) } else { output::text(&written.out) }
    }

    /// Writes the file of `-c`. As in curl, the outcome of the run does not depend on it.
    fn save_cookies(&self) {
        if let (Some(cookies), Some(path)) = (&self.cookies, &self.flags.request.cookie_jar)
            && let Err(failure) = cookies.save(path)
        {
            self.warn(&format!("no cookies were saved: {failure}"));
        }
    }
}
