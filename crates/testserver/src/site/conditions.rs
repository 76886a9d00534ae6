//! Conditional requests for a file (RFC 9110 §13).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue, header};

/// What distinguishes the content of a file from what it was before.
#[derive(Clone, Debug)]
pub(super) struct FileValidators {
    /// In whole seconds, as in HTTP dates.
    modified: Option<SystemTime>,
    /// A strong entity tag, with its quotes (§8.8.3).
    tag: Option<String>,
}

/// What the conditions of a request decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionVerdict {
    /// The request is answered as it would be without them.
    Proceed,
    /// 304: the client has this content.
    NotModified,
    /// 412: the client wants other content than this.
    Failed,
}

impl FileValidators {
    /// Returns the validators of a file. The tag has nothing that differs between copies of the file
    /// on several servers, such as its number.
    pub(super) fn from_metadata(modified: Option<SystemTime>, length: u64) -> Self {
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let tag = since.map(|since| format!("\"{:x}-{length:x}\"", since.as_nanos()));
        let whole = |since: Duration| UNIX_EPOCH + Duration::from_secs(since.as_secs());
        Self { modified: since.map(whole), tag }
    }

    /// Adds them to the fields of a response.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        let date = self.modified.map(httpdate::fmt_http_date);
        let fields = [(header::LAST_MODIFIED, date), (header::ETAG, self.tag.clone())];
        for (name, value) in fields {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                headers.insert(name, value);
            }
        }
    }

    /// Evaluates the conditions of a GET or HEAD, in the order of §13.2.2.
    pub(super) fn judge(&self, headers: &HeaderMap) -> ConditionVerdict {
        let failed =
            match (tags(headers, header::IF_MATCH), date(headers, header::IF_UNMODIFIED_SINCE)) {
                (Some(tags), _) => !self.is_listed(&tags, TagComparison::Strong),
                (None, Some(since)) => self.modified.is_some_and(|modified| modified > since),
                (None, None) => false,
            };
        if failed {
            return ConditionVerdict::Failed;
        }
        let has_it = match (
            tags(headers, header::IF_NONE_MATCH),
            date(headers, header::IF_MODIFIED_SINCE),
        ) {
            (Some(tags), _) => self.is_listed(&tags, TagComparison::Weak),
            (None, Some(since)) => self.modified.is_some_and(|modified| modified <= since),
            (None, None) => false,
        };
        if has_it { ConditionVerdict::NotModified } else { ConditionVerdict::Proceed }
    }

    /// Returns whether a part may be sent: with `If-Range`, only to a client that has other parts of
    /// the same content (§13.1.5).
    pub(super) fn allow_part(&self, headers: &HeaderMap) -> bool {
        let Some(field) = headers.get(header::IF_RANGE) else { return true };
        let Ok(field) = field.to_str() else { return false };
        match field.trim() {
            tag if tag.starts_with(['"', 'W']) => self.tag.as_deref() == Some(tag),
            _ => self.modified.is_some() && date(headers, header::IF_RANGE) == self.modified,
        }
    }

    /// Returns whether this content is in a list of tags. `*` is any content.
    fn is_listed(&self, list: &str, comparison: TagComparison) -> bool {
        let own = self.tag.as_deref();
        let mut rest = list.trim();
        if rest == "*" {
            return true;
        }
        // A comma may also be inside of a tag, between its quotes.
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let (is_weak, tag) = match rest.strip_prefix("W/") {
                Some(tag) => (true, tag),
                None => (false, rest),
            };
            let Some(end) = tag.strip_prefix('"').and_then(|inner| inner.find('"')) else {
                return false;
            };
            let (tag, after) = tag.split_at(end + 2);
            if own == Some(tag) && !(is_weak && comparison == TagComparison::Strong) {
                return true;
            }
            rest = after;
        }
    }
}

/// How tags are compared (§8.8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TagComparison {
    Strong,
    Weak,
}

/// Returns the list of tags in a field, over all its lines.
fn tags(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    if !headers.contains_key(&name) {
        return None;
    }
    let lines = headers.get_all(&name).iter().filter_map(|line| line.to_str().ok());
    Some(lines.collect::<Vec<_>>().join(","))
}

fn date(headers: &HeaderMap, name: header::HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Thu, 01 Jan 1970 00:01:00 GMT";
    const BEFORE: &str = "Thu, 01 Jan 1970 00:00:59 GMT";

    fn validators() -> FileValidators {
        FileValidators::from_metadata(Some(UNIX_EPOCH + Duration::from_nanos(60_000_000_010)), 255)
    }

    fn request(fields: &[(&'static str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &str)| {
            let name = header::HeaderName::from_static(name);
            (name, HeaderValue::from_str(value).expect("a value"))
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(field) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn the_fields_of_a_response() {
        let mut headers = HeaderMap::new();
        validators().add_to(&mut headers);
        assert_eq!(headers[header::ETAG], "\"df847580a-ff\"");
        assert_eq!(headers[header::LAST_MODIFIED], DATE);
        let mut headers = HeaderMap::new();
        FileValidators::from_metadata(None, 255).add_to(&mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn conditions_are_evaluated_in_their_order() {
        use ConditionVerdict::{Failed, NotModified, Proceed};
        let tag = "\"df847580a-ff\"";
        let weak = format!("W/{tag}");
        let list = format!("\"a,b\" , W/\"c\",{tag}");
        for (fields, expected) in [
            (&[][..], Proceed),
            (&[("if-none-match", tag)], NotModified),
            (&[("if-none-match", &weak)], NotModified),
            (&[("if-none-match", &list)], NotModified),
            (&[("if-none-match", "*")], NotModified),
            (&[("if-none-match", "\"other\"")], Proceed),
            (&[("if-none-match", "df847580a-ff")], Proceed),
            (&[("if-none-match", "\"unended")], Proceed),
            (&[("if-none-match", "\"other\""), ("if-none-match", tag)], NotModified),
            (&[("if-modified-since", DATE)], NotModified),
            (&[("if-modified-since", BEFORE)], Proceed),
            // The tag decides alone (§13.1.3).
            (&[("if-none-match", "\"other\""), ("if-modified-since", DATE)], Proceed),
            (&[("if-match", tag)], Proceed),
            (&[("if-match", "*")], Proceed),
            (&[("if-match", &weak)], Failed),
            (&[("if-match", "\"other\"")], Failed),
            (&[("if-match", tag), ("if-unmodified-since", BEFORE)], Proceed),
            (&[("if-unmodified-since", BEFORE)], Failed),
            (&[("if-unmodified-since", DATE)], Proceed),
            (&[("if-unmodified-since", DATE), ("if-none-match", tag)], NotModified),
            (&[("if-match", "\"other\""), ("if-none-match", tag)], Failed),
        ] {
            assert_eq!(validators().judge(&request(fields)), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_part_is_for_a_client_that_has_the_other_parts() {
        for (field, expected) in [
            ("\"df847580a-ff\"", true),
            ("W/\"df847580a-ff\"", false),
            ("\"other\"", false),
            (DATE, true),
            (BEFORE, false),
            ("nonsense", false),
        ] {
            let request = request(&[("if-range", field)]);
            assert_eq!(validators().allow_part(&request), expected, "{field}");
        }
        assert!(validators().allow_part(&HeaderMap::new()));
    }
}
