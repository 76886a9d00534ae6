//! The transfer of one URL: its request, its response, and what happens to both.

use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use eyas::race::report::RaceJson;
use eyas_http::{Error, Response, version_name, without_password};
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use url::Url;

use super::content::STDIN as STDOUT;
use super::continuation::{self, RestOfBody};
use super::facts::{HeadFacts, TransferFacts};
use super::names::{self, BodyPlace, FileName};
use super::receiving::BodyReception;
use super::request::{PreparedRequest, RefererFlag};
use super::{GetRun, failure, report};
use crate::failure::{Failure, FailureKind};
use crate::flags::ContinueAt;
use crate::output::{BodySink, ExistingPart};
use crate::race_report::{self, ReplayedRace, name_source};
use crate::shape::{GetShape, HeaderShape, TimingsShape, millis};
use crate::terminal::OutputStyle;

/// The status from which `--fail` fails.
const FIRST_FAILURE: u16 = 400;

/// The transfer of one URL.
pub(super) struct UrlTransfer<'a> {
    pub(super) run: &'a GetRun<'a>,
    pub(super) url: &'a Url,
    pub(super) began: Instant,
    /// Returns how long to wait for another try, if a response like this is to be tried again.
    pub(super) retry: &'a mut (dyn FnMut(StatusCode, &HeaderMap) -> Option<Duration> + 'a),
}

/// How a transfer ended that did not fail.
pub(super) enum TransferEnd {
    /// With its whole body.
    Whole(Box<FetchedResponse>),
    /// It is to be tried again after this time, because of this status.
    Busy(StatusCode, Duration),
}

/// A response whose body was written, and what remains to be reported.
pub(super) struct FetchedResponse {
    pub(super) shape: GetShape,
    pub(super) response: Response,
}

/// Where a body goes, and what is there of it already.
struct OpenedSink {
    sink: BodySink,
    file: Option<PathBuf>,
    beginning: ExistingPart,
    offset: u64,
}

impl UrlTransfer<'_> {
    pub(super) async fn run(
        self,
        index: usize,
        facts: &mut TransferFacts,
    ) -> Result<TransferEnd, Failure> {
        facts.url = without_password(self.url);
        let flags = &self.run.flags;
        let place = BodyPlace::new(&flags.output, index, self.url)?;
        // Before anything is sent, so that a place that cannot be written is not noticed too late.
        let opened = match &place {
            BodyPlace::Stated(_) => None,
            _ => Some(self.open(place.stated(&HeaderMap::new(), self.url)?).await?),
        };
        let offset = opened.as_ref().map_or(0, |opened| opened.offset);
        let (mut request, mut response) = self.send(offset, facts).await?;
        if let Some(delay) = (self.retry)(response.status(), response.headers()) {
            return Ok(TransferEnd::Busy(response.status(), delay));
        }
        let mut opened = match opened {
            Some(opened) => opened,
            None => self.open(place.stated(response.headers(), self.url)?).await?,
        };
        let identity = |response: &Response| {
            let head = (response.status(), response.headers());
            let is_decoded = flags.request.compressed;
            let length = response.content_length().filter(|_| !is_decoded);
            continuation::identity(response.url().as_str(), head, length)
        };
        let mut rest = {
            let head = (response.status(), response.headers());
            continuation::rest(opened.beginning, opened.offset, head, identity(&response))
        };
        if rest == RestOfBody::AskForWhole {
            (request, response) = self.send(0, facts).await?;
            rest = if response.status().is_success() {
                RestOfBody::Whole
            } else {
                RestOfBody::Refused
            };
        }
        self.report(&request, &response);
        self.check(&response, rest)?;
        if rest == RestOfBody::Whole {
            opened.sink.start_over()?;
        }
        if let Some(identity) = identity(&response) {
            opened.sink.identify(identity, flags.output.continue_at == Some(ContinueAt::End));
        }
        self.receive(opened, rest, response, facts).await
    }

    /// Opens the place of the body. With `--json` standard output is reserved for the object.
    async fn open(&self, file: Option<FileName>) -> Result<OpenedSink, Failure> {
        let (output, unfinished) = (&self.run.flags.output, self.run.unfinished);
        let json = self.run.common.json;
        let offset = match output.continue_at {
            Some(ContinueAt::Offset(offset)) => offset,
            _ => 0,
        };
        let Some(FileName { path, is_of_server }) = file else {
            let sink = if json { BodySink::discard() } else { BodySink::stdout()? };
            return Ok(OpenedSink { sink, file: None, beginning: ExistingPart::Nothing, offset });
        };
        let path = path.as_path();
        if json && path == STDOUT {
            let what = "--json and the body cannot both go to standard output";
            return Err(Failure::new(FailureKind::Usage, what).hint("name a file with -o FILE"));
        }
        names::create_directory(output, path)?;
        let (sink, beginning) = match output.continue_at {
            _ if is_of_server => {
                (BodySink::new_file(path, unfinished).await?, ExistingPart::Nothing)
            }
            None => (BodySink::file(path, unfinished).await?, ExistingPart::Nothing),
            Some(ContinueAt::End) => BodySink::go_on(path, unfinished).await?,
            Some(ContinueAt::Offset(0)) => {
                (BodySink::file(path, unfinished).await?, ExistingPart::Nothing)
            }
            Some(ContinueAt::Offset(_)) => {
                (BodySink::append(path, unfinished).await?, ExistingPart::Nothing)
            }
        };
        let offset = offset.max(beginning.length());
        Ok(OpenedSink { sink, file: Some(path.to_owned()), beginning, offset })
    }

    /// Sends the request, for the body from this offset on.
    async fn send(
        &self,
        offset: u64,
        facts: &mut TransferFacts,
    ) -> Result<(PreparedRequest, Response), Failure> {
        let (run, flags) = (self.run, self.run.flags);
        let mut request = PreparedRequest::read(flags, self.url, &run.inputs).await?;
        request.set_offset(offset);
        facts.method = request.method.clone();
        let referer = RefererFlag::parse(&flags.request);
        facts.referer = referer.first.map(str::to_owned);
        facts.sent = request.content_length();
        let limit = flags.reach.max_time();
        let limit = limit.map(|limit| limit.saturating_sub(self.began.elapsed()));
        let sent = request.send(run.client()?, limit).await;
        facts.total = self.began.elapsed();
        let response = sent.map_err(|error| self.failed(&error))?;
        if referer.is_automatic
            && let Some(hop) = response.redirected().last()
        {
            facts.referer = Some(hop.from.to_string());
        }
        facts.head = Some(HeadFacts::from_response(&response, self.began.elapsed()));
        if let Some(file) = &run.heads {
            let mut file = file;
            let heads = report::heads(&response);
            let heads = if file.is_terminal() { report::shown_head(&heads) } else { heads };
            file.write_all(heads.as_bytes())
                .map_err(|cause| Failure::write("the file of -D", &cause))?;
        }
        Ok((request, response))
    }

    /// Shows the race, the request and the head of the response to those who want to see them.
    fn report(&self, request: &PreparedRequest, response: &Response) {
        let (run, output) = (self.run, &self.run.flags.output);
        if !(output.verbose || output.explain) {
            return;
        }
        if let Ok(race) = ReplayedRace::from_trace(response.trace()) {
            let target = &race.trace.header.setup.target;
            let source = name_source(run.context.endpoint.resolver(), target);
            report::verbose((&race, source.as_ref()), request, response, run.flags, run.common);
        }
    }

    /// Returns whether the body of a response is wanted.
    fn check(&self, response: &Response, rest: RestOfBody) -> Result<(), Failure> {
        let (status, url) = (response.status(), response.url());
        // As in curl, a file that is there already is no failure of --fail.
        if self.run.flags.output.fail
            && status.as_u16() >= FIRST_FAILURE
            && rest != RestOfBody::Nothing
        {
            return Err(status_failure(response));
        }
        let request = &self.run.flags.request;
        if request.location && request.max_redirs == 0 && leads_elsewhere(response) {
            let what = format!("{url} answered {status}, and --max-redirs 0 allows no redirect");
            return Err(Failure::new(FailureKind::Redirect, what)
                .hint("allow more redirects, or leave -L out to get this response"));
        }
        match rest {
            RestOfBody::Refused => {
                let what = format!("{url} answered {status} instead of the rest of its body");
                Err(Failure::new(FailureKind::Range, what)
                    .hint("without -C the whole is fetched again"))
            }
            _ => Ok(()),
        }
    }

    async fn receive(
        self,
        opened: OpenedSink,
        rest: RestOfBody,
        mut response: Response,
        facts: &mut TransferFacts,
    ) -> Result<TransferEnd, Failure> {
        let (run, headers_at) = (self.run, self.began.elapsed());
        facts.file = opened
            .file
            .as_ref()
            .filter(|_| !run.common.json)
            .map(|path| path.display().to_string());
        let mut shape = GetShape {
            url: without_password(self.url),
            final_url: without_password(response.url()),
            status: response.status().as_u16(),
            version: version_name(response.version()),
            headers: headers(&response),
            connection: report::connection(&response),
            output: opened.file.map(|path| path.display().to_string()),
            timings: timings(&response, headers_at),
            bytes: 0,
            race: RaceJson::default(),
        };
        let receiving = BodyReception {
            flags: run.flags,
            common: run.common,
            keeps_file: rest == RestOfBody::Nothing,
            offset: if rest == RestOfBody::Follows { opened.beginning.length() } else { 0 },
        };
        let received = receiving.body(&mut response, opened.sink, &mut facts.received).await;
        facts.total = self.began.elapsed();
        shape.bytes = received?;
        shape.timings.total_ms = millis(self.began.elapsed());
        let output = &run.flags.output;
        if output.fail_with_body && response.status().as_u16() >= FIRST_FAILURE {
            return Err(status_failure(&response));
        }
        Ok(TransferEnd::Whole(Box::new(FetchedResponse { shape, response })))
    }

    /// Returns the failure of an exchange; its race is recorded, because a failure is most useful to
    /// replay.
    fn failed(&self, error: &Error) -> Failure {
        let output = &self.run.flags.output;
        if let (Some(path), Some(trace)) = (&output.trace, error.trace())
            && let Err(failure) = race_report::write(path, trace)
        {
            return failure;
        }
        let style = output.verbose.then(|| OutputStyle::of_stderr(self.run.common.color));
        failure::from_error(error, style)
    }
}

/// Returns whether a response is a redirect that -L would follow.
fn leads_elsewhere(response: &Response) -> bool {
    let location = response.headers().get(LOCATION).map(|value| value.as_bytes().trim_ascii());
    matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308)
        && location.is_some_and(|location| !location.is_empty())
}

fn status_failure(response: &Response) -> Failure {
    let (status, url) = (response.status(), response.url());
    let race_report = ReplayedRace::from_trace(response.trace()).ok();
    Failure::new(FailureKind::Status, format!("{url} answered {status}"))
        .with_details(report::race_members(race_report.as_ref()))
}

/// Opens the file of `-D`; standard output is not buffered.
pub(super) fn open_heads(path: &Path) -> Result<Option<std::fs::File>, Failure> {
    let opened = match path == STDOUT {
        true => crate::output::unbuffered_stdout(),
        false => std::fs::File::create(path),
    };
    opened.map(Some).map_err(|cause| Failure::write(&path.display().to_string(), &cause))
}

fn headers(response: &Response) -> Vec<HeaderShape> {
    let shape = |(name, value): (&http::HeaderName, &http::HeaderValue)| HeaderShape {
        name: name.to_string(),
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
    };
    response.headers().iter().map(shape).collect()
}

fn timings(response: &Response, headers_at: Duration) -> TimingsShape {
    let timings = response.connection().timings;
    TimingsShape {
        dns_ms: timings.dns.map(millis),
        transport_ms: timings.transport.map(millis),
        security_ms: timings.security.map(millis),
        headers_ms: millis(headers_at),
        total_ms: 0.0,
    }
}
