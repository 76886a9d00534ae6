//! Cookies (RFC 6265), off by default.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cookie_store::{CookieStore, RawCookie};
use http::{
    HeaderMap, HeaderValue,
    header::{COOKIE, SET_COOKIE},
};
use url::Url;

/// The maximum number of cookies accepted from one response.
const MAX_PER_RESPONSE: usize = 50;

/// The maximum number of cookies stored.
const MAX_COOKIES: usize = 3000;

/// The longest `Set-Cookie` value that is read, in bytes (RFC 6265 §6.1 requires at least 4096).
const MAX_COOKIE_BYTES: usize = 8 * 1024;

/// The cookies of one client.
#[derive(Default)]
pub(super) struct Cookies(Mutex<CookieStore>);

impl Cookies {
    /// Returns the cookie store of a client that uses cookies.
    pub(super) fn if_enabled(enabled: bool) -> Option<Self> {
        enabled.then(Self::default)
    }

    /// Adds the cookies that belong to the URL, unless the caller has set some itself.
    pub(super) fn add(&self, url: &Url, headers: &mut HeaderMap) {
        if headers.contains_key(COOKIE) {
            return;
        }
        let pairs: Vec<String> = self
            .lock()
            .get_request_values(url)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if let Ok(value) = HeaderValue::from_str(&pairs.join("; "))
            && !pairs.is_empty()
        {
            headers.insert(COOKIE, value);
        }
    }

    /// Stores the cookies of a response. Those that cannot be parsed are ignored (RFC 6265 §5.2).
    pub(super) fn store(&self, url: &Url, headers: &HeaderMap) {
        let cookies = headers
            .get_all(SET_COOKIE)
            .iter()
            .filter(|value| value.len() <= MAX_COOKIE_BYTES)
            .filter_map(|value| RawCookie::parse(value.to_str().ok()?.to_owned()).ok())
            .filter(|cookie| !is_for_a_suffix(cookie, url))
            .take(MAX_PER_RESPONSE);
        let mut store = self.lock();
        for cookie in cookies {
            if store.iter_any().count() >= MAX_COOKIES {
                tracing::debug!("cookie store is full");
                return;
            }
            if let Err(error) = store.insert_raw(&cookie, url) {
                tracing::debug!(%error, "cookie rejected");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CookieStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the cookie is for a whole public suffix, as far as this can be recognised
/// without a list: a domain with one label. A cookie for a longer suffix (`co.uk`) is not
/// recognised.
fn is_for_a_suffix(cookie: &RawCookie<'_>, url: &Url) -> bool {
    cookie.domain().is_some_and(|domain| {
        let domain = domain.trim_start_matches('.');
        !domain.contains('.') && url.host_str() != Some(domain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn set(cookies: &[&'static str]) -> HeaderMap {
        cookies.iter().map(|cookie| (SET_COOKIE, HeaderValue::from_static(cookie))).collect()
    }

    fn sent(cookies: &Cookies, to: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        cookies.add(&url(to), &mut headers);
        headers.get(COOKIE).map(|value| value.to_str().expect("text").to_owned())
    }

    #[test]
    fn a_cookie_is_sent_only_where_it_belongs() {
        let cookies = Cookies::default();
        let from = url("https://a.example/dir/page");
        cookies.store(&from, &set(&["a=1; Path=/; Secure", "b=2; Max-Age=0", "c=3; Path=/other"]));
        assert_eq!(sent(&cookies, "https://a.example/").as_deref(), Some("a=1"));
        assert_eq!(sent(&cookies, "http://a.example/"), None);
        assert_eq!(sent(&cookies, "https://b.example/"), None);
    }

    #[test]
    fn a_cookie_for_another_domain_or_a_suffix_is_rejected() {
        let cookies = Cookies::default();
        let from = url("https://a.example/");
        cookies.store(&from, &set(&["x=1; Domain=example", "y=2; Domain=b.example", "z", "=", ""]));
        assert_eq!(sent(&cookies, "https://c.example/"), None);
        assert_eq!(sent(&cookies, "https://b.example/"), None);
    }

    #[test]
    fn cookies_set_by_the_caller_are_unchanged() {
        let cookies = Cookies::default();
        cookies.store(&url("https://a.example/"), &set(&["a=1"]));
        let own = HeaderValue::from_static("own=1");
        let mut headers = HeaderMap::from_iter([(COOKIE, own.clone())]);
        cookies.add(&url("https://a.example/"), &mut headers);
        assert_eq!(headers[COOKIE], own);
    }

    #[test]
    fn the_store_is_bounded() {
        let cookies = Cookies::default();
        for host in 0..100 {
            let headers: HeaderMap = (0..60)
                .map(|n| (SET_COOKIE, HeaderValue::from_str(&format!("c{n}=1")).expect("text")))
                .collect();
            cookies.store(&url(&format!("https://h{host}.example/")), &headers);
        }
        assert_eq!(cookies.lock().iter_any().count(), MAX_COOKIES);
        let first = sent(&cookies, "https://h0.example/").expect("cookies");
        assert_eq!(first.split("; ").count(), MAX_PER_RESPONSE);
    }
}
