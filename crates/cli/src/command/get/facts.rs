//! What is known about a transfer, for `-w`.

use std::time::Duration;

use eyas_http::{Response, version_name};
use http::{HeaderMap, HeaderName, Method};
use serde_json::{Value, json};
use url::Url;

use super::report;
use crate::failure::Failure;

/// What is known about a transfer, however far it came.
#[derive(Clone, Debug, Default)]
pub(super) struct TransferFacts {
    /// The URL of the command line.
    pub(super) url: String,
    /// Its place there, from 0.
    pub(super) number: usize,
    pub(super) method: Method,
    pub(super) referer: Option<String>,
    /// The file that the body was written to.
    pub(super) file: Option<String>,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) total: Duration,
    /// The message and the exit code.
    pub(super) failure: Option<(String, u8)>,
    /// The head of the response, if there was one.
    pub(super) head: Option<HeadFacts>,
}

/// The head of a response, and its connection.
#[derive(Clone, Debug)]
pub(super) struct HeadFacts {
    url: Url,
    status: u16,
    version: &'static str,
    headers: HeaderMap,
    /// The length of all heads, as written by HTTP/1.1.
    size: u64,
    redirects: usize,
    /// Where a redirect leads that was not followed.
    redirect: Option<Url>,
    /// None if it is a socket of the file system.
    remote: Option<std::net::SocketAddr>,
    local: Option<std::net::SocketAddr>,
    connections: u32,
    dns: Duration,
    transport: Duration,
    security: Duration,
    at: Duration,
}

impl HeadFacts {
    /// Describes a response whose head arrived at this time after the start.
    pub(super) fn from_response(response: &Response, at: Duration) -> Self {
        let info = response.connection();
        // Those of a connection that was there before are not of this transfer.
        let is_new = !response.connection_was_reused() || response.redirects() > 0;
        let when = |time: Option<Duration>| time.filter(|_| is_new).unwrap_or_default();
        let timings = info.timings;
        let location = response.headers().get(http::header::LOCATION);
        let location = location.and_then(|value| value.to_str().ok());
        Self {
            url: response.url().clone(),
            status: response.status().as_u16(),
            version: version_name(response.version()),
            headers: response.received_headers().clone(),
            size: report::heads(response).len() as u64,
            redirects: response.redirects(),
            redirect: location
                .filter(|_| response.status().is_redirection())
                .and_then(|location| response.url().join(location).ok()),
            remote: Some(info.remote).filter(|remote| remote.port() != 0),
            local: info.local,
            connections: u32::from(!response.connection_was_reused()),
            dns: when(timings.dns),
            transport: when(timings.transport.or(timings.security)),
            security: when(timings.security),
            at,
        }
    }
}

/// The names of curl's variables, without those that print nothing.
pub(super) const VARIABLES: [&str; 35] = [
    "content_type",
    "errormsg",
    "exitcode",
    "filename_effective",
    "http_code",
    "http_version",
    "local_ip",
    "local_port",
    "method",
    "num_connects",
    "num_headers",
    "num_redirects",
    "redirect_url",
    "referer",
    "remote_ip",
    "remote_port",
    "response_code",
    "scheme",
    "size_download",
    "size_header",
    "size_upload",
    "speed_download",
    "speed_upload",
    "time_appconnect",
    "time_connect",
    "time_namelookup",
    "time_pretransfer",
    "time_starttransfer",
    "time_total",
    "url",
    "url_effective",
    "urlnum",
    "http_connect",
    "ssl_verify_result",
    "proxy_ssl_verify_result",
];

/// The value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum VariableValue {
    Text(Option<String>),
    Number(u64),
    /// A status, in three digits.
    Status(u16),
    Time(Duration),
}

impl TransferFacts {
    /// Returns the value of a variable of [`VARIABLES`].
    pub(super) fn variable(&self, name: &str) -> Option<VariableValue> {
        use VariableValue::{Number, Status, Text, Time};
        let head = self.head.as_ref();
        let text = |text: Option<String>| Some(Text(text));
        let time = |of: fn(&HeadFacts) -> Duration| Some(Time(head.map(of).unwrap_or_default()));
        let per_second = |bytes: u64| (bytes as f64 / self.total.as_secs_f64().max(1e-6)) as u64;
        match name {
            "content_type" => text(head.and_then(|head| head.field("content-type"))),
            "errormsg" => text(self.failure.as_ref().map(|(message, _)| message.clone())),
            "exitcode" => Some(Number(self.failure.as_ref().map_or(0, |(_, code)| (*code).into()))),
            "filename_effective" => text(self.file.clone()),
            "http_code" | "response_code" => Some(Status(head.map_or(0, |head| head.status))),
            "http_connect" => Some(Status(0)),
            "http_version" => text(Some(head.map_or("0", |head| head.version_number()).to_owned())),
            "local_ip" => text(Some(
                head.and_then(|head| head.local).map_or_else(String::new, |at| at.ip().to_string()),
            )),
            "local_port" => {
                Some(Number(head.and_then(|head| head.local).map_or(0, |at| at.port().into())))
            }
            "method" => text(Some(self.method.to_string())),
            "num_connects" => Some(Number(head.map_or(0, |head| head.connections.into()))),
            "num_headers" => Some(Number(head.map_or(0, |head| head.headers.len() as u64))),
            "num_redirects" => Some(Number(head.map_or(0, |head| head.redirects as u64))),
            "redirect_url" => {
                text(head.and_then(|head| head.redirect.as_ref()).map(Url::to_string))
            }
            "referer" => text(self.referer.clone()),
            "remote_ip" => {
                let remote = head.and_then(|head| head.remote);
                text(Some(remote.map_or_else(String::new, |at| at.ip().to_string())))
            }
            "remote_port" => {
                Some(Number(head.and_then(|head| head.remote).map_or(0, |at| at.port().into())))
            }
            "scheme" => {
                text(Some(head.map_or_else(String::new, |head| head.url.scheme().to_owned())))
            }
            "size_header" => Some(Number(head.map_or(0, |head| head.size))),
            "size_download" => Some(Number(self.received)),
            "size_upload" => Some(Number(self.sent)),
            "speed_download" => Some(Number(per_second(self.received))),
            "speed_upload" => Some(Number(per_second(self.sent))),
            "ssl_verify_result" | "proxy_ssl_verify_result" => Some(Number(0)),
            "time_appconnect" => time(|head| head.security),
            "time_connect" => time(|head| head.transport),
            "time_namelookup" => time(|head| head.dns),
            "time_pretransfer" => time(|head| head.security.max(head.transport)),
            "time_starttransfer" => time(|head| head.at),
            "time_total" => Some(Time(self.total)),
            "url" => text(Some(self.url.clone())),
            "url_effective" => {
                text(Some(head.map_or_else(|| self.url.clone(), |head| head.url.to_string())))
            }
            "urlnum" => Some(Number(self.number as u64)),
            _ => None,
        }
    }

    /// Returns the value of a field of the response, as it is with `%header{NAME}`.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        self.head.as_ref()?.field(name)
    }

    /// Returns all fields of the response as an object of lists, as with `%{header_json}`: a field in each line.
    pub(super) fn fields_to_json(&self) -> String {
        let headers = self.head.as_ref().map(|head| &head.headers);
        let names = headers.into_iter().flat_map(HeaderMap::keys);
        let field = |name: &HeaderName| {
            let values = headers.into_iter().flat_map(|headers| headers.get_all(name));
            let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
            format!("{}:{}", json!(name.as_str()), json!(values.collect::<Vec<_>>()))
        };
        format!("{{{}\n}}", names.map(field).collect::<Vec<_>>().join(",\n"))
    }

    /// Records how the transfer failed.
    pub(super) fn fail(&mut self, failure: &Failure) {
        self.failure = Some((failure.message.clone(), failure.kind.exit_code()));
    }

    /// Returns all variables as an object, as with `%{json}`.
    pub(super) fn to_json(&self) -> Value {
        let value = |name: &&str| {
            let value = match self.variable(name)? {
                VariableValue::Text(text) => json!(text),
                VariableValue::Number(number) => json!(number),
                VariableValue::Status(status) => json!(status),
                VariableValue::Time(time) => json!(time.as_micros() as f64 / 1e6),
            };
            Some(((*name).to_owned(), value))
        };
        Value::Object(VARIABLES.iter().filter_map(value).collect())
    }
}

impl HeadFacts {
    fn field(&self, name: &str) -> Option<String> {
        let value = self.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }

    fn version_number(&self) -> &'static str {
        self.version.strip_prefix("HTTP/").unwrap_or(self.version)
    }
}
