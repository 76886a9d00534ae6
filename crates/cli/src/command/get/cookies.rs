//! The cookies of `-b` and `-c`.

use std::fs;
use std::path::Path;

use eyas_http::{CookieJar, CookieStore};
use http::HeaderValue;
use url::{Origin, Url};

use super::content::STDIN as STDOUT;
use crate::failure::Failure;
use crate::flags::RequestFlags;
use crate::output;

/// The cookies of a run.
pub(super) struct RunCookies {
    jar: CookieJar,
    /// Whether cookies of responses are kept: if the user has named a file, or asked for it.
    keeps: bool,
    /// The cookies of the command line.
    own: Option<String>,
    /// The origins of the command line, which are the ones that get them.
    origins: Vec<Origin>,
}

impl RunCookies {
    /// Reads the flags, and the files that they name; `None` if there are to be no cookies. A file
    /// that cannot be read is no cookies, as in curl: it may be there after the first run.
    pub(super) fn read(flags: &RequestFlags, urls: &[Url]) -> Option<Self> {
        let is_text = |given: &&String| given.contains('=');
        let own: Vec<&str> = flags.cookie.iter().filter(is_text).map(String::as_str).collect();
        let keeps = flags.cookies || flags.cookie_jar.is_some() || own.len() < flags.cookie.len();
        if !keeps && own.is_empty() {
            return None;
        }
        let jar = CookieJar::new();
        for file in flags.cookie.iter().filter(|given| !is_text(given)) {
            if let Ok(text) = fs::read(file) {
                jar.add_netscape(&String::from_utf8_lossy(&text), urls.first());
            }
        }
        let own = (!own.is_empty()).then(|| own.join("; "));
        Some(Self { jar, keeps, own, origins: urls.iter().map(Url::origin).collect() })
    }

    /// Writes the cookies to the file of `-c`.
    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        let text = self.jar.to_netscape();
        if path == STDOUT {
            return output::text(&text);
        }
        output::private_file(path, &text)
    }
}

impl CookieStore for RunCookies {
    fn set_cookies(&self, fields: &mut dyn Iterator<Item = &HeaderValue>, url: &Url) {
        if self.keeps {
            self.jar.set_cookies(fields, url);
        }
    }

    fn cookies(&self, url: &Url) -> Option<HeaderValue> {
        let kept = self.jar.cookies(url);
        let Some(own) = self.own.as_ref().filter(|_| self.origins.contains(&url.origin())) else {
            return kept;
        };
        let kept = kept.as_ref().and_then(|kept| std::str::from_utf8(kept.as_bytes()).ok());
        let all = [kept, Some(own)].into_iter().flatten().collect::<Vec<_>>().join("; ");
        HeaderValue::from_str(&all).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn read(cookie: &[&str]) -> Option<RunCookies> {
        let cookie = cookie.iter().map(|text| (*text).to_owned()).collect();
        let flags = RequestFlags { cookie, ..RequestFlags::default() };
        RunCookies::read(&flags, &[url("https://a.test/")])
    }

    #[test]
    fn cookies_of_the_command_line_stay_with_its_hosts() {
        assert!(read(&[]).is_none());
        let cookies = read(&["a=1", "b=2"]).expect("cookies");
        assert_eq!(cookies.cookies(&url("https://a.test/x")).expect("sent"), "a=1; b=2");
        assert_eq!(cookies.cookies(&url("https://b.test/")), None);
        let field = HeaderValue::from_static("c=3; Path=/");
        cookies.set_cookies(&mut std::iter::once(&field), &url("https://a.test/"));
        assert_eq!(cookies.cookies(&url("https://a.test/")).expect("sent"), "a=1; b=2");
        let cookies = read(&["a=1", ""]).expect("cookies");
        cookies.set_cookies(&mut std::iter::once(&field), &url("https://a.test/"));
        assert_eq!(cookies.cookies(&url("https://a.test/")).expect("sent"), "c=3; a=1");
    }
}
