//! Maps a URL to its host, port and application protocols.

use eyas::race::{
    candidate::Transport,
    target::{Target, TargetHost, TargetService},
};
use url::Url;

use crate::zoned_url::{host_of, parse_url};
use crate::{Error, Kind, Versions, text_without_password};

/// Returns whether the transport carries a byte stream for HTTP.
pub(crate) const fn is_stream(transport: Transport) -> bool {
    !transport.has_http3()
}

/// Parses an absolute `http` or `https` URL.
pub(crate) fn parse(text: &str) -> Result<Url, Error> {
    let refuse =
        |why: String| Error::new(Kind::Url, format!("{:?}: {why}", text_without_password(text)));
    let url = parse_url(text).map_err(|error| refuse(error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        "http" | "https" => Err(refuse("it has no host".to_owned())),
        scheme => Err(refuse(format!("the scheme {scheme} is not http or https"))),
    }
}

/// Returns the target at this destination, for these versions of HTTP.
pub(crate) fn target(host: TargetHost, port: u16, https: bool, versions: Versions) -> Target {
    if !https {
        return Target::http(host, port);
    }
    let (stream_alpn, quic_alpn) = (versions.stream_alpn(), versions.quic_alpn());
    let service = TargetService::Http { stream_alpn, quic_alpn };
    Target { service, ..Target::https(host, port) }
}

/// Returns the destination of a URL: its host, its port, and whether TLS is required.
pub(crate) fn destination(url: &Url) -> Result<(TargetHost, u16, bool), Error> {
    let refuse = |why: String| Error::new(Kind::Url, why);
    let host = host_of(url).map_err(|error| refuse(error.to_string()))?;
    let https = url.scheme() == "https";
    let port = url.port_or_known_default().unwrap_or(if https { 443 } else { 80 });
    Ok((host, port, https))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_urls_are_rejected() {
        for text in ["", "x", "/x", "ftp://a.example/", "https://", "https://a b/", "http://[::1/"]
        {
            let error = parse(text).expect_err(text);
            assert_eq!(error.kind(), Kind::Url);
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn the_error_about_a_url_does_not_show_its_password() {
        for text in ["https://ada:secret@a b/", "ftp://ada:secret@a.example/"] {
            let reported = parse(text).expect_err(text).to_string();
            assert!(reported.contains("ada:***@a") && !reported.contains("secret"), "{reported}");
        }
    }
}
