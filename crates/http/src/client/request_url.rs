//! The defaults of a request, and the user information in its URL.

use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, AUTHORIZATION},
};
use url::Url;

use super::credentials;
use crate::protocol::Omitted;

/// Adds the default fields that the caller did not set, and moves the user information from the URL
/// to a field: it is never sent as part of the URL (RFC 9110 §4.2.4).
pub(super) fn complete(
    headers: &mut HeaderMap,
    defaults: &HeaderMap,
    omitted: &Omitted,
    url: &mut Url,
) {
    let is_set = |headers: &HeaderMap, name| headers.contains_key(name) || omitted.0.contains(name);
    for name in defaults.keys().filter(|name| !is_set(headers, name)).collect::<Vec<_>>() {
        for value in defaults.get_all(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    if !is_set(headers, &ACCEPT) {
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    }
    if url.username().is_empty() && url.password().is_none() {
        return;
    }
    if !is_set(headers, &AUTHORIZATION)
        && let Some(value) = basic(url)
    {
        headers.insert(AUTHORIZATION, value);
    }
    remove_user_info(url);
}

/// Removes the user information from a URL.
pub(super) fn remove_user_info(url: &mut Url) {
    // Both fail only for URLs without a host, and this one has a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
}

/// Returns `Basic` credentials (RFC 7617) from the URL's user information.
fn basic(url: &Url) -> Option<HeaderValue> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    credentials::basic(&decode(url.username()), &decode(url.password().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_becomes_an_authorization_header() {
        let mut url = Url::parse("https://us%20er:p%40ss@a.example/").expect("a URL");
        let mut headers = HeaderMap::new();
        complete(&mut headers, &HeaderMap::new(), &Omitted::default(), &mut url);
        assert_eq!(url.as_str(), "https://a.example/");
        // base64("us er:p@ss")
        assert_eq!(headers[AUTHORIZATION], "Basic dXMgZXI6cEBzcw==");
    }

    #[test]
    fn defaults_give_way_to_the_callers_fields() {
        let mut url = Url::parse("https://a.example/").expect("a URL");
        let own = HeaderValue::from_static("own");
        let mut headers = HeaderMap::from_iter([(ACCEPT, own.clone())]);
        let defaults = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("default")),
            (AUTHORIZATION, HeaderValue::from_static("default")),
        ]);
        complete(&mut headers, &defaults, &Omitted::default(), &mut url);
        assert_eq!(headers[ACCEPT], own);
        assert_eq!(headers[AUTHORIZATION], "default");
    }
}
