//! `eyas get`: fetch a URL over the best transport that works.

mod content;
mod failure;
mod report;
mod request;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas::Resolver;
use eyas::race::report::RaceJson;
use eyas::race::target::Target;
use eyas::race::trace::Trace;
use eyas_http::{Client, HttpPolicy, Proxy, Response, version_name, without_password};
use futures_util::FutureExt;
use http::StatusCode;
use url::Url;

use super::linger::linger;
use super::setting::{self, RaceContext};
use super::{target, until_interrupted};
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, GetFlags, PolicyName, RacePolicy};
use crate::output::{BodySink, Progress, Unfinished, remote_name};
use crate::race_report::{self, RaceReport, name_source};
use crate::shape::{GetShape, HeaderShape, TimingsShape, millis};
use crate::terminal::OutputStyle;

/// The status from which `--fail` fails.
const FIRST_FAILURE: u16 = 400;

/// How long the client, stopped by `--max-time`, may take to return its more informative error.
const CLIENT_ERROR_GRACE: Duration = Duration::from_millis(250);

/// Fetches and reports.
pub(crate) async fn run(flags: &GetFlags, common: &CommonFlags) -> Result<(), Failure> {
    let unfinished = Unfinished::default();
    let run = async {
        let fetch = fetch(flags, common, &unfinished);
        let fetched = match flags.reach.max_time {
            // Not only the peer can be slow, but also the reader of the output.
            Some(limit) => tokio::time::timeout(limit.saturating_add(CLIENT_ERROR_GRACE), fetch)
                .await
                .unwrap_or_else(|_| Err(timeout_failure(limit, flags)))?,
            None => fetch.await?,
        };
        let Fetched { shape, response, context, client } = fetched;
        linger(|| response.trace(), &context.memory).await;
        drop(client);
        finish(&shape, response.trace(), context.endpoint.resolver(), flags, common)
    };
    until_interrupted(run).await.map_err(|failure| unfinished.explain(failure))
}

fn timeout_failure(limit: Duration, flags: &GetFlags) -> Failure {
    let failure =
        Failure::new(Kind::Timeout, format!("not finished within the {limit:?} of --max-time"));
    match &flags.output.output {
        Some(path) => failure.hint(format!("allow more time; is {path:?} being read?")),
        None => failure.hint("allow more time"),
    }
}

/// A response whose body was written, and what remains to be reported.
struct Fetched {
    shape: GetShape,
    response: Response,
    context: RaceContext,
    /// Dropping it ends the rest of the race.
    client: Client,
}

async fn fetch(
    flags: &GetFlags,
    common: &CommonFlags,
    unfinished: &Unfinished,
) -> Result<Fetched, Failure> {
    let started_at = Instant::now();
    let url = target::url(&flags.url)?;
    let output = output_path(flags, &url)?;
    let sink = sink(output.as_ref(), common, unfinished).await?;
    let mut request = request::Request::read(flags, &url).await?;
    let target = target::from_url(&url, flags.versions)?;
    let context = RaceContext::new(&flags.choice, &flags.reach, &flags.trust, &target).await?;
    let client = client((flags, common), &context, &target, started_at)?;
    let sent = request.send(&client).await;
    context.warn(common);
    let mut response = match sent {
        Ok(response) => response,
        Err(error) => return Err(failed(&error, flags, common)),
    };
    let headers_at = started_at.elapsed();
    let race_report = RaceReport::from_trace(response.trace());
    if let (Ok(race_report), true) = (&race_report, flags.output.verbose || flags.output.explain) {
        let target = &race_report.trace.header.setup.target;
        let source = name_source(context.endpoint.resolver(), target);
        report::verbose((race_report, source.as_ref()), &request, &response, flags, common);
    }
    let status = response.status();
    if flags.output.fail && status.as_u16() >= FIRST_FAILURE {
        let failure = Failure::new(Kind::Status, format!("{} answered {status}", response.url()));
        return Err(failure.with_details(report::race_members(race_report.as_ref().ok())));
    }
    let mut shape = GetShape {
        url: without_password(&url),
        final_url: without_password(response.url()),
        status: status.as_u16(),
        version: version_name(response.version()),
        headers: headers(&response),
        connection: report::connection(&response),
        output: output.map(|path| path.display().to_string()),
        timings: timings(&response, headers_at),
        bytes: 0,
        race: RaceJson::default(),
    };
    shape.bytes = body(&mut response, sink, flags, common).await?;
    shape.timings.total_ms = millis(started_at.elapsed());
    Ok(Fetched { shape, response, context, client })
}

fn finish(
    shape: &GetShape,
    trace: Trace,
    resolver: &Resolver,
    flags: &GetFlags,
    common: &CommonFlags,
) -> Result<(), Failure> {
    if let Some(path) = &flags.output.trace {
        race_report::write(path, &trace)?;
    }
    let race_report = RaceReport::from_trace(trace);
    if common.json {
        let race_report = race_report.ok();
        let target = race_report.as_ref().map(|race| &race.trace.header.setup.target);
        let source = target.and_then(|target| name_source(resolver, target));
        let explain = flags.output.explain;
        return report::object(shape, race_report.as_ref(), source.as_ref(), explain);
    }
    if let (Ok(race_report), true) = (&race_report, flags.output.verbose) {
        report::late_switch(race_report, common);
    }
    Ok(())
}

/// Returns where the body is written, if not to standard output.
fn output_path(flags: &GetFlags, url: &Url) -> Result<Option<PathBuf>, Failure> {
    match (&flags.output.output, flags.output.remote_name) {
        (Some(path), _) => Ok(Some(path.clone())),
        (None, true) => remote_name(url).map(Some),
        (None, false) => Ok(None),
    }
}

/// Opens the destination of the body. With `--json` standard output is reserved for the object.
async fn sink(
    output_path: Option<&PathBuf>,
    common: &CommonFlags,
    unfinished: &Unfinished,
) -> Result<BodySink, Failure> {
    match output_path {
        Some(path) if common.json && path.as_os_str() == "-" => {
            Err(Failure::new(Kind::Usage, "--json and the body cannot both go to standard output")
                .hint("name a file with -o FILE"))
        }
        Some(path) => BodySink::file(path, unfinished).await,
        None if common.json => Ok(BodySink::discard()),
        None => BodySink::stdout(),
    }
}

fn client(
    (flags, common): (&GetFlags, &CommonFlags),
    context: &RaceContext,
    target: &Target,
    started_at: Instant,
) -> Result<Client, Failure> {
    let request = &flags.request;
    let race_policy = match flags.policy {
        PolicyName::Naive => RacePolicy::Naive,
        // For HTTP, `serial` means QUIC until it fails, then TCP.
        _ => RacePolicy::Race,
    };
    let mut builder = Client::builder()
        .endpoint(context.endpoint.clone())
        .race(setting::policy(race_policy, &flags.choice, &flags.reach, target)?)
        .policy(match flags.policy {
            PolicyName::Race | PolicyName::Naive => HttpPolicy::Race,
            PolicyName::AltSvc => HttpPolicy::AltSvc,
            PolicyName::Serial => HttpPolicy::Serial,
            PolicyName::RaceAltSvc => HttpPolicy::RaceAltSvc,
        })
        .versions(setting::versions(flags.versions))
        .redirects(if request.location { request.max_redirs } else { 0 })
        .decompress(request.compressed)
        .cookies(request.cookies)
        .proxy(match &request.proxy {
            Some(proxy) => proxy_at(proxy)?,
            None => Proxy::from_env(),
        });
    if let Some(limit) = flags.reach.max_time {
        builder = builder.timeout(limit.saturating_sub(started_at.elapsed()));
    }
    builder.build().map_err(|error| failed(&error, flags, common))
}

/// Returns the user's proxy. An unusable one must not be ignored silently.
fn proxy_at(url: &str) -> Result<Proxy, Failure> {
    let proxy = Proxy::all(url, Proxy::no_proxy_from_env());
    proxy.check().map_err(|error| {
        Failure::new(Kind::Usage, error.detail().to_owned())
            .hint("-x takes http://, https:// or socks5://HOST:PORT")
    })?;
    Ok(proxy)
}

/// Returns the failure of an exchange; its race is recorded, because a failure is most useful to
/// replay.
fn failed(error: &eyas_http::Error, flags: &GetFlags, common: &CommonFlags) -> Failure {
    if let (Some(path), Some(trace)) = (&flags.output.trace, error.trace())
        && let Err(failure) = race_report::write(path, trace)
    {
        return failure;
    }
    failure::from_error(error, flags.output.verbose.then(|| OutputStyle::of_stderr(common.color)))
}

fn headers(response: &Response) -> Vec<HeaderShape> {
    let shape = |(name, value): (&http::HeaderName, &http::HeaderValue)| HeaderShape {
        name: name.to_string(),
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
    };
    response.headers().iter().map(shape).collect()
}

fn timings(response: &Response, headers_at: std::time::Duration) -> TimingsShape {
    let timings = response.connection().timings;
    TimingsShape {
        dns_ms: timings.dns.map(millis),
        transport_ms: timings.transport.map(millis),
        security_ms: timings.security.map(millis),
        headers_ms: millis(headers_at),
        total_ms: 0.0,
    }
}

/// Returns the next chunk of the body, its end or an error, unless it has to be waited for.
async fn ready_chunk(response: &mut Response) -> Option<Result<Option<Bytes>, eyas_http::Error>> {
    if let Some(ready) = response.chunk().now_or_never() {
        return Some(ready);
    }
    // It may have arrived already: the task of the connection has its turn.
    tokio::task::yield_now().await;
    response.chunk().now_or_never()
}

/// Writes the body to its destination; an incomplete file does not appear there.
async fn body(
    response: &mut Response,
    mut sink: BodySink,
    flags: &GetFlags,
    common: &CommonFlags,
) -> Result<u64, Failure> {
    if (flags.output.include || flags.request.head) && !common.json {
        sink.write(report::heads(response).into()).await?;
    }
    let before = sink.written();
    let watched = !flags.output.silent && !common.json && !sink.is_terminal();
    let progress = Progress::new(response.content_length(), watched, common.color);
    loop {
        let piece = match ready_chunk(response).await {
            Some(ready) => ready,
            None => {
                sink.flush().await?;
                response.chunk().await
            }
        };
        let Some(piece) = piece.map_err(|error| failure::from_error(&error, None))? else { break };
        progress.add(piece.len());
        sink.write(piece).await?;
    }
    progress.clear();
    if response.status() == StatusCode::NOT_MODIFIED {
        // The existing file is the same as the server's, so it is kept.
        return Ok(0);
    }
    let count = sink.written() - before;
    sink.finish().await?;
    Ok(count)
}
