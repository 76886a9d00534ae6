//! Cookies (RFC 6265), off by default.

#[cfg(feature = "cookies")]
mod jar;
#[cfg(feature = "cookies")]
mod netscape;

use std::{fmt, sync::Arc};

use http::{
    HeaderMap, HeaderValue,
    header::{COOKIE, SET_COOKIE},
};
use url::Url;

#[cfg(feature = "cookies")]
pub use self::jar::CookieJar;

/// A store of cookies, for [`ClientBuilder::cookie_store`](crate::ClientBuilder::cookie_store). Its
/// methods are called while a request is sent, so they must not block for long.
pub trait CookieStore: Send + Sync {
    /// Stores the `Set-Cookie` fields of a response from this URL.
    fn set_cookies(&self, fields: &mut dyn Iterator<Item = &HeaderValue>, url: &Url);

    /// Returns the `Cookie` field for a request to this URL, if there are cookies for it.
    fn cookies(&self, url: &Url) -> Option<HeaderValue>;
}

/// The cookies of one client.
pub(super) struct Cookies {
    store: Arc<dyn CookieStore>,
    /// Whether the store is the caller's own. A `Cookie` field of the caller is then for the first
    /// request of a chain of redirects, and the store decides about the others.
    is_callers: bool,
}

impl Cookies {
    /// Returns an empty store of our own.
    #[cfg(feature = "cookies")]
    pub(super) fn empty() -> Self {
        Self { store: Arc::<CookieJar>::default(), is_callers: false }
    }

    /// Uses a store of the caller.
    pub(super) fn of_caller(store: Arc<dyn CookieStore>) -> Self {
        Self { store, is_callers: true }
    }

    /// Returns the cookies for a request to the URL, unless the caller has set some itself.
    pub(super) fn field(&self, url: &Url, headers: &HeaderMap) -> Option<HeaderValue> {
        if headers.contains_key(COOKIE) { None } else { self.store.cookies(url) }
    }

    /// Stores the cookies of a response.
    pub(super) fn store(&self, url: &Url, headers: &HeaderMap) {
        if headers.contains_key(SET_COOKIE) {
            self.store.set_cookies(&mut headers.get_all(SET_COOKIE).iter(), url);
        }
    }

    /// Adapts the header fields of a request to a redirect.
    pub(super) fn redirected(&self, headers: &mut HeaderMap) {
        if self.is_callers {
            headers.remove(COOKIE);
        }
    }
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookies")
    }
}
