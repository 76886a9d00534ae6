//! Our own store of cookies.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cookie_store::RawCookie;
use http::HeaderValue;
use url::Url;

use super::CookieStore;

/// The maximum number of cookies accepted from one response.
const MAX_PER_RESPONSE: usize = 50;

/// The maximum number of cookies stored.
const MAX_COOKIES: usize = 3000;

/// The longest `Set-Cookie` value that is read, in bytes (RFC 6265 §6.1 requires at least 4096).
const MAX_COOKIE_BYTES: usize = 8 * 1024;

/// The longest name and value together, in bytes (RFC 6265bis §5.6).
const MAX_PAIR_BYTES: usize = 4096;

/// A store of cookies (RFC 6265 §5.3) that can be kept in a file, for
/// [`ClientBuilder::cookie_store`](crate::ClientBuilder::cookie_store). Cookies for a whole top-level
/// domain are rejected, and so are those that break the promise of their name (`__Host-`, `__Secure-`).
#[derive(Default)]
pub struct CookieJar(pub(super) Mutex<cookie_store::CookieStore>);

impl CookieStore for CookieJar {
    /// Those that cannot be parsed are ignored (RFC 6265 §5.2).
    fn set_cookies(&self, fields: &mut dyn Iterator<Item = &HeaderValue>, url: &Url) {
        let cookies = fields
            .filter(|value| value.len() <= MAX_COOKIE_BYTES)
            .filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
            .filter_map(|text| RawCookie::parse(text.to_owned()).ok())
            .filter(is_storable)
            .filter(|cookie| !is_for_a_suffix(cookie, url) && keeps_its_prefix(cookie, url))
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

    fn cookies(&self, url: &Url) -> Option<HeaderValue> {
        let store = self.lock();
        let mut cookies = store.matches(url);
        // RFC 6265 §5.4: those with longer paths first, then in the order of their creation.
        cookies.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.as_ref().len()));
        let pairs: Vec<String> = cookies
            .into_iter()
            .map(|cookie| format!("{}={}", cookie.name(), cookie.value()))
            .collect();
        if pairs.is_empty() { None } else { HeaderValue::from_str(&pairs.join("; ")).ok() }
    }
}

impl CookieJar {
    pub(super) fn lock(&self) -> MutexGuard<'_, cookie_store::CookieStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether name and value have at most 4,096 bytes together (RFC 6265bis §5.6), and nothing has a tab, which
/// separates the fields of a file of cookies. curl ignores such cookies, too.
fn is_storable(cookie: &RawCookie<'_>) -> bool {
    let (name, value) = cookie.name_value();
    let all = [Some(name), Some(value), cookie.path(), cookie.domain()];
    name.len() + value.len() <= MAX_PAIR_BYTES
        && !all.into_iter().flatten().any(|text| text.contains('\t'))
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

/// Returns whether the cookie has what the prefix of its name promises (RFC 6265bis §5.7).
fn keeps_its_prefix(cookie: &RawCookie<'_>, url: &Url) -> bool {
    let has = |prefix: &str| {
        cookie.name().get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let is_secure = url.scheme() == "https" && cookie.secure() == Some(true);
    let is_of_host = cookie.path() == Some("/") && cookie.domain().is_none();
    match (has("__Secure-"), has("__Host-")) {
        (true, _) => is_secure,
        (_, true) => is_secure && is_of_host,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use http::{
        HeaderMap,
        header::{COOKIE, SET_COOKIE},
    };

    use super::super::Cookies;
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn set(cookies: &[&'static str]) -> HeaderMap {
        cookies.iter().map(|cookie| (SET_COOKIE, HeaderValue::from_static(cookie))).collect()
    }

    fn sent(cookies: &Cookies, to: &str) -> Option<String> {
        let field = cookies.field(&url(to), &HeaderMap::new());
        field.map(|value| value.to_str().expect("text").to_owned())
    }

    #[test]
    fn a_cookie_is_sent_only_where_it_belongs() {
        let cookies = Cookies::empty();
        let from = url("https://a.example/dir/page");
        cookies.store(&from, &set(&["a=1; Path=/; Secure", "b=2; Max-Age=0", "c=3; Path=/other"]));
        assert_eq!(sent(&cookies, "https://a.example/").as_deref(), Some("a=1"));
        assert_eq!(sent(&cookies, "http://a.example/"), None);
        assert_eq!(sent(&cookies, "https://b.example/"), None);
    }

    #[test]
    fn a_cookie_for_another_domain_or_a_suffix_is_rejected() {
        let cookies = Cookies::empty();
        let from = url("https://a.example/");
        cookies.store(&from, &set(&["x=1; Domain=example", "y=2; Domain=b.example", "z", "=", ""]));
        assert_eq!(sent(&cookies, "https://c.example/"), None);
        assert_eq!(sent(&cookies, "https://b.example/"), None);
    }

    #[test]
    fn cookies_are_sent_in_the_order_of_the_standard() {
        let cookies = Cookies::empty();
        let from = url("https://a.example/dir/page");
        for name in ["z", "b", "y", "a", "x", "c"] {
            let field = HeaderValue::from_str(&format!("{name}=1; Path=/")).expect("text");
            cookies.store(&from, &HeaderMap::from_iter([(SET_COOKIE, field)]));
        }
        cookies.store(&from, &set(&["deep=1; Path=/dir/page", "dir=1; Path=/dir", "y=2; Path=/"]));
        let all = "deep=1; dir=1; z=1; b=1; y=2; a=1; x=1; c=1";
        assert_eq!(sent(&cookies, "https://a.example/dir/page").as_deref(), Some(all));
    }

    #[test]
    fn a_prefix_is_a_promise() {
        for (cookie, over_https) in [
            ("__Host-a=1; Path=/; Secure", true),
            ("__Host-a=1; Path=/", false),
            ("__Host-a=1; Path=/dir; Secure", false),
            ("__Host-a=1; Secure", false),
            ("__Host-a=1; Path=/; Secure; Domain=a.example", false),
            ("__host-a=1; Path=/", false),
            ("__Secure-a=1; Path=/; Secure", true),
            ("__Secure-a=1; Path=/; Secure; Domain=a.example", true),
            ("__Secure-a=1; Path=/", false),
            ("__Secure=1; Path=/", true),
        ] {
            for (scheme, is_sent) in [("https", over_https), ("http", false)] {
                let cookies = Cookies::empty();
                let from = url(&format!("{scheme}://a.example/dir"));
                cookies.store(&from, &set(&[cookie]));
                let is_sent = is_sent || cookie.starts_with("__Secure=");
                let sent = sent(&cookies, "https://a.example/dir");
                assert_eq!(sent.is_some(), is_sent, "{cookie} over {scheme}");
            }
        }
    }

    #[test]
    fn cookies_set_by_the_caller_are_unchanged() {
        let cookies = Cookies::empty();
        cookies.store(&url("https://a.example/"), &set(&["a=1"]));
        let mut headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static("own=1"))]);
        assert_eq!(cookies.field(&url("https://a.example/"), &headers), None);
        cookies.redirected(&mut headers);
        assert!(headers.contains_key(COOKIE));
    }

    #[test]
    fn the_callers_own_store_decides_after_a_redirect() {
        struct Fixed;
        impl CookieStore for Fixed {
            fn set_cookies(&self, _: &mut dyn Iterator<Item = &HeaderValue>, _: &Url) {}

            fn cookies(&self, _: &Url) -> Option<HeaderValue> {
                Some(HeaderValue::from_static("fixed=1"))
            }
        }
        let cookies = Cookies::of_caller(std::sync::Arc::new(Fixed));
        let mut headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static("own=1"))]);
        let to = url("https://a.example/");
        assert_eq!(cookies.field(&to, &headers), None);
        cookies.redirected(&mut headers);
        assert_eq!(cookies.field(&to, &headers).expect("the store's"), "fixed=1");
    }

    #[test]
    fn what_no_file_can_hold_is_ignored() {
        let jar = CookieJar::default();
        let to = url("https://a.example/");
        let long = |length: usize| format!("n={}", "x".repeat(length));
        for (field, is_kept) in [
            ("a=b\tc", false),
            ("a\tb=c", false),
            ("a=b; Path=/\tTRUE", false),
            ("a=\u{e9}", true),
            (long(4095).as_str(), true),
            (long(4096).as_str(), false),
        ] {
            let field = HeaderValue::from_str(field).expect("a value");
            jar.lock().clear();
            jar.set_cookies(&mut std::iter::once(&field), &to);
            let sent = jar.cookies(&to);
            assert_eq!(sent.is_some(), is_kept, "{field:?}");
            assert_eq!(jar.to_netscape().lines().count(), 2 + usize::from(is_kept), "{field:?}");
        }
    }

    #[test]
    fn the_store_is_bounded() {
        let jar = CookieJar::default();
        for host in 0..100 {
            let fields: Vec<HeaderValue> =
                (0..60).map(|n| HeaderValue::from_str(&format!("c{n}=1")).expect("text")).collect();
            jar.set_cookies(&mut fields.iter(), &url(&format!("https://h{host}.example/")));
        }
        assert_eq!(jar.lock().iter_any().count(), MAX_COOKIES);
        let first = jar.cookies(&url("https://h0.example/")).expect("cookies");
        assert_eq!(first.to_str().expect("text").split("; ").count(), MAX_PER_RESPONSE);
    }
}
