//! Sends two requests: one to the host, for its clock and its alternatives, and one without TLS, for a captive portal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas::race::candidate::Security;
use eyas::race::target::{Target, TargetService};
use eyas::{EchChoice, EchPolicy, Endpoint};
use eyas_http::{Client, Proxy, Response};
use http::HeaderMap;
use http::header::{ALT_SVC, DATE, LOCATION};
use url::Url;

use super::super::findings::{PortalAnswer, PortalFinding};
use crate::failure::{Failure, FailureKind};

/// The ports of HTTPS and of HTTP: a host that has the one usually has the other.
const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;

/// What a response of the host tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HostAnswer {
    pub(super) announces_http3: bool,
    pub(super) clock_ahead: Option<i64>,
}

/// Sends a HEAD request; `None` if the target does not speak HTTP, or does not answer.
pub(super) async fn ask_host(
    endpoint: &Endpoint,
    target: &Target,
    limit: Duration,
) -> Option<HostAnswer> {
    if !matches!(target.service, TargetService::Http { .. }) {
        return None;
    }
    let scheme = if target.security == Security::None { "http" } else { "https" };
    let client = client(endpoint, limit)?;
    let response = client.head(format!("{scheme}://{target}/")).send().await.ok()?;
    Some(HostAnswer {
        announces_http3: announces_http3(response.headers()),
        clock_ahead: clock_ahead(&response, SystemTime::now()),
    })
}

fn client(endpoint: &Endpoint, limit: Duration) -> Option<Client> {
    let builder = Client::builder().endpoint(endpoint.clone()).redirects(0).proxy(Proxy::none());
    builder.connect_timeout(limit).timeout(limit).build().ok()
}

/// Returns whether an alternative service speaks HTTP/3 (RFC 7838 §3).
fn announces_http3(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ALT_SVC).iter().filter_map(|value| value.to_str().ok());
    let mut alternatives = values.flat_map(|value| value.split(','));
    alternatives.any(|alternative| alternative.trim_start().starts_with("h3="))
}

/// Returns how far the clock of the response is ahead, in seconds.
fn clock_ahead(response: &Response, now: SystemTime) -> Option<i64> {
    let date = response.headers().get(DATE)?.to_str().ok()?;
    let date = httpdate::parse_http_date(date).ok()?;
    let seconds = |time: SystemTime| {
        i64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()).ok()
    };
    Some(seconds(date)? - seconds(now)?)
}

/// A request without TLS.
pub(super) struct PortalProbe {
    url: Url,
    is_named: bool,
}

impl PortalProbe {
    /// Returns the request to the URL that the user has named, or to the target if it is at the usual port of HTTP or
    /// HTTPS, and its name need not be encrypted. Nobody else is asked.
    pub(super) fn new(
        portal_url: Option<&str>,
        target: Option<&Target>,
        ech: Option<&EchChoice>,
    ) -> Result<Option<Self>, Failure> {
        if let Some(text) = portal_url {
            let refused = || {
                Failure::new(FailureKind::Usage, format!("--portal-url {text}: not an http:// URL"))
                    .hint("a portal can answer only what is sent without TLS")
            };
            let url = Url::parse(text).ok().filter(|url| url.scheme() == "http");
            return Ok(Some(Self { url: url.ok_or_else(refused)?, is_named: true }));
        }
        let is_usual = |target: &&Target| {
            matches!(target.service, TargetService::Http { .. })
                && ech != Some(&EchPolicy::Required.into())
                && [HTTPS_PORT, HTTP_PORT].contains(&target.port)
                && !target.host.is_localhost()
        };
        let url = target
            .filter(is_usual)
            .and_then(|target| Url::parse(&format!("http://{}/", target.host)).ok());
        Ok(url.map(|url| Self { url, is_named: false }))
    }

    /// Sends the request.
    pub(super) async fn run(self, endpoint: &Endpoint, limit: Duration) -> PortalFinding {
        let host = self.url.host_str().unwrap_or_default().to_owned();
        let answer = match client(endpoint, limit) {
            Some(client) => client.get(self.url.as_str()).send().await.ok(),
            None => None,
        };
        let answer = match answer {
            None => PortalAnswer::Nothing,
            Some(response) => PortalAnswer::Response {
                status: response.status().as_u16(),
                redirects_to: redirected_host(&self.url, &response),
            },
        };
        PortalFinding { host, is_named: self.is_named, answer }
    }
}

/// Returns the host of the URL that a response redirects to.
fn redirected_host(url: &Url, response: &Response) -> Option<String> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let location = url.join(location).ok()?;
    location.host_str().filter(|_| response.status().is_redirection()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use eyas::race::target::TargetHost;

    use super::*;

    #[test]
    fn a_name_that_must_be_encrypted_is_not_sent_without_tls() {
        let host = TargetHost::parse("a.example").expect("a name");
        let target = Target::https(host, HTTPS_PORT);
        let url = |portal_url, ech: Option<EchPolicy>| {
            let probe = PortalProbe::new(portal_url, Some(&target), ech.map(Into::into).as_ref());
            probe.ok().flatten().map(|probe| probe.url.to_string())
        };
        for ech in [None, Some(EchPolicy::Auto), Some(EchPolicy::Off)] {
            assert_eq!(url(None, ech).as_deref(), Some("http://a.example/"), "{ech:?}");
        }
        assert_eq!(url(None, Some(EchPolicy::Required)), None);
        let named = url(Some("http://portal.example/"), Some(EchPolicy::Required));
        assert_eq!(named.as_deref(), Some("http://portal.example/"), "as the user wants");
    }
}
