//! Files of cookies in the format that Netscape's browser had, which curl, wget and browsers' extensions read and write:
//! lines of seven fields, separated by tabs.
//!
//! ```text
//! .example.org  TRUE  /  FALSE  1893456000  name  value
//! ```
//!
//! These are the domain, whether its subdomains get the cookie, the path, whether it needs TLS, when it expires in
//! seconds of Unix (0: at the end of the session), its name and its value. `#HttpOnly_` before the domain is the only
//! `#` that starts no comment.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cookie_store::{Cookie, CookieDomain, CookieExpiration, RawCookie};
use http::HeaderValue;
use url::Url;

use super::{CookieJar, CookieStore as _};

const HTTP_ONLY: &str = "#HttpOnly_";

/// The end of the year 9999, in seconds of Unix.
const LATEST: u64 = 253_402_300_799;

const HEADING: &str = "# Netscape HTTP Cookie File\n\n";

impl CookieJar {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the cookies of a file in Netscape's format that have not expired. Other lines are passed over, except those
    /// that begin with `Set-Cookie:`, which are for `url`, if there is one.
    pub fn add_netscape(&self, text: &str, url: Option<&Url>) {
        for line in text.lines() {
            let head = line.get(.."set-cookie:".len()).unwrap_or_default();
            if head.eq_ignore_ascii_case("set-cookie:") {
                let value = HeaderValue::from_str(line[head.len()..].trim());
                if let (Ok(value), Some(url)) = (value, url) {
                    self.set_cookies(&mut std::iter::once(&value), url);
                }
            } else if let Some((cookie, url)) = read(line, SystemTime::now()) {
                self.set_cookies(&mut std::iter::once(&cookie), &url);
            }
        }
    }

    /// Returns the cookies as a file in Netscape's format, those of sessions too.
    pub fn to_netscape(&self) -> String {
        let store = self.lock();
        let lines = store.iter_unexpired().map(|cookie| line(cookie) + "\n");
        std::iter::once(HEADING.to_owned()).chain(lines).collect()
    }
}

/// Returns the `Set-Cookie` value that a line stands for, and a URL that could have sent it; `None` if the line has none,
/// or its cookie has expired.
fn read(line: &str, now: SystemTime) -> Option<(HeaderValue, Url)> {
    let (line, is_http_only) = match line.strip_prefix(HTTP_ONLY) {
        Some(line) => (line, true),
        None if line.starts_with('#') => return None,
        None => (line, false),
    };
    // A cookie without a value may lack the last tab.
    let mut fields = line.splitn(7, '\t');
    let [domain, subdomains, path, secure, expires, name] = [(); 6].map(|()| fields.next());
    let (domain, path, name) = (domain?.trim_start_matches('.'), path?, name?);
    let value = fields.next().unwrap_or_default();
    let is_secure = secure?.eq_ignore_ascii_case("TRUE");
    let mut text = format!("{name}={value}; Path={path}");
    if subdomains?.eq_ignore_ascii_case("TRUE") {
        text.push_str(&format!("; Domain={domain}"));
    }
    match expires?.parse::<u64>().ok()? {
        0 => {}
        seconds => {
            // Later years cannot be written as a date of HTTP.
            let at = UNIX_EPOCH + Duration::from_secs(seconds.min(LATEST));
            if at <= now {
                return None;
            }
            text.push_str(&format!("; Expires={}", httpdate::fmt_http_date(at)));
        }
    }
    text.push_str(if is_secure { "; Secure" } else { "" });
    text.push_str(if is_http_only { "; HttpOnly" } else { "" });
    let scheme = if is_secure { "https" } else { "http" };
    let host = if domain.contains(':') { format!("[{domain}]") } else { domain.to_owned() };
    let url = Url::parse(&format!("{scheme}://{host}/")).ok()?;
    Some((HeaderValue::from_str(&text).ok()?, url))
}

fn line(cookie: &Cookie<'static>) -> String {
    let raw: &RawCookie<'static> = cookie;
    let word = |is: bool| if is { "TRUE" } else { "FALSE" };
    let (domain, subdomains) = match &cookie.domain {
        CookieDomain::Suffix(domain) => (format!(".{domain}"), true),
        CookieDomain::HostOnly(host) => (host.clone(), false),
        CookieDomain::NotPresent | CookieDomain::Empty => (String::new(), false),
    };
    let expires = match &cookie.expires {
        CookieExpiration::AtUtc(at) => at.unix_timestamp().max(1),
        CookieExpiration::SessionEnd => 0,
    };
    let prefix = if raw.http_only() == Some(true) { HTTP_ONLY } else { "" };
    let fields = [
        &format!("{prefix}{domain}"),
        word(subdomains),
        cookie.path.as_ref(),
        word(raw.secure() == Some(true)),
        &expires.to_string(),
        cookie.name(),
        cookie.value(),
    ];
    fields.join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn sent(jar: &CookieJar, to: &str) -> Option<String> {
        jar.cookies(&url(to)).map(|value| value.to_str().expect("text").to_owned())
    }

    const FILE: &str = "# Netscape HTTP Cookie File\n\n\
        .a.example\tTRUE\t/\tFALSE\t0\tall\t1\n\
        a.example\tFALSE\t/dir\tFALSE\t4102444800\tdir\t2\n\
        #HttpOnly_a.example\tFALSE\t/\tTRUE\t4102444800\tsafe\t3\n\
        a.example\tFALSE\t/\tFALSE\t1000\told\t4\n\
        a.example\tFALSE\t/\tFALSE\t0\tbare\n\
        not a cookie\n";

    #[test]
    fn a_file_is_read_and_written_as_it_was() {
        let jar = CookieJar::new();
        jar.add_netscape(FILE, None);
        let all = "dir=2; all=1; safe=3; bare=";
        assert_eq!(sent(&jar, "https://a.example/dir/").as_deref(), Some(all));
        assert_eq!(sent(&jar, "http://a.example/").as_deref(), Some("all=1; bare="));
        assert_eq!(sent(&jar, "http://b.a.example/").as_deref(), Some("all=1"));
        let written = jar.to_netscape();
        for line in FILE.lines().skip(2).take(3) {
            assert!(written.lines().any(|known| known == line), "{line}: {written}");
        }
        assert!(!written.contains("old"), "{written}");
    }

    #[test]
    fn lines_of_a_head_are_for_the_url() {
        let jar = CookieJar::new();
        jar.add_netscape("HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\n", Some(&url("http://a.example/")));
        assert_eq!(sent(&jar, "http://a.example/").as_deref(), Some("a=1"));
    }

    #[test]
    fn a_value_that_breaks_its_line_is_passed_over() {
        for line in [
            "a\tb",
            "\t\t\t\t\t\t",
            "a.example\tFALSE\t/\tFALSE\tsoon\tn\tv",
            "x y\tFALSE\t/\tFALSE\t0\tn\tv",
        ] {
            assert_eq!(read(line, UNIX_EPOCH).map(|(value, _)| value), None, "{line:?}");
        }
    }
}
