//! A stub for builds without the feature `cookies`.

use http::HeaderMap;
use url::Url;

/// An uninhabited type: no client has cookies.
pub(super) enum Cookies {}

impl Cookies {
    pub(super) const fn if_enabled(_: bool) -> Option<Self> {
        None
    }

    pub(super) const fn add(&self, _: &Url, _: &mut HeaderMap) {
        match *self {}
    }

    pub(super) const fn store(&self, _: &Url, _: &HeaderMap) {
        match *self {}
    }
}
