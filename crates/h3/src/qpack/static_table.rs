//! The static table, and what finds its entries.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#appendix-A>

/// The entries, by index.
const ENTRIES: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

static TABLE: [(&str, &str); 99] = ENTRIES;

/// No entry.
const NONE: u8 = u8::MAX;

/// The first entry with a name, by the [`slot`] of the name.
static SLOTS: [u8; 256] = slots();

/// The next entry with the same name, by index.
static NEXT: [u8; 99] = next();

/// Returns the name and value of an entry.
pub(super) fn entry(index: u64) -> Option<(&'static [u8], &'static [u8])> {
    let (name, value) = TABLE.get(usize::try_from(index).ok()?)?;
    Some((name.as_bytes(), value.as_bytes()))
}

/// Returns the index of the first entry with this name.
pub(super) fn find_name(name: &[u8]) -> Option<u8> {
    if name.is_empty() {
        return None;
    }
    let index = SLOTS[slot(name)];
    let (found, _) = TABLE.get(usize::from(index))?;
    (found.as_bytes() == name).then_some(index)
}

/// Returns the index of the entry with this value whose name is that of the entry `first`, which
/// [`find_name`] returned.
pub(super) fn find_value(first: u8, value: &[u8]) -> Option<u8> {
    let mut index = first;
    while let Some((_, found)) = TABLE.get(usize::from(index)) {
        if found.as_bytes() == value {
            return Some(index);
        }
        index = NEXT[usize::from(index)];
    }
    None
}

/// Returns a number that differs between all names of the table, which are not empty.
const fn slot(name: &[u8]) -> usize {
    let length = name.len();
    (length * 3 + name[length - 1] as usize * 61 + name[length * 3 / 4] as usize) & 0xff
}

const fn slots() -> [u8; 256] {
    let mut slots = [NONE; 256];
    let mut index = ENTRIES.len();
    while index > 0 {
        index -= 1;
        let name = ENTRIES[index].0.as_bytes();
        let slot = slot(name);
        let other = slots[slot];
        assert!(
            other == NONE || is_equal(ENTRIES[other as usize].0.as_bytes(), name),
            "two names have one slot"
        );
        slots[slot] = index as u8;
    }
    slots
}

const fn next() -> [u8; 99] {
    let mut next = [NONE; 99];
    let mut index = 0;
    while index < ENTRIES.len() {
        let mut other = index + 1;
        while other < ENTRIES.len() {
            if is_equal(ENTRIES[index].0.as_bytes(), ENTRIES[other].0.as_bytes()) {
                next[index] = other as u8;
                break;
            }
            other += 1;
        }
        index += 1;
    }
    next
}

const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc9204 §3.1, Appendix A
    //# 99 entries
    #[test]
    fn the_entries_are_those_of_rfc_9204_appendix_a() {
        // FNV-1a over each name, 0, value and line feed, computed from the list of the RFC.
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        let mut count = 0;
        while let Some((name, value)) = entry(count) {
            for octet in name.iter().chain(b"\0").chain(value).chain(b"\n") {
                sum = (sum ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3);
            }
            count += 1;
        }
        assert_eq!((count, sum), (99, 0xab61_362f_a119_c56f));
        assert_eq!(entry(0), Some((&b":authority"[..], &b""[..])));
        assert_eq!(entry(98), Some((&b"x-frame-options"[..], &b"sameorigin"[..])));
        assert_eq!(entry(u64::MAX), None);
    }

    #[test]
    fn each_entry_is_found() {
        for index in 0..99 {
            let (name, value) = entry(index).expect("an entry");
            let first = find_name(name).expect("the name");
            assert_eq!(entry(first.into()).map(|(found, _)| found), Some(name));
            assert_eq!(find_value(first, value).map(u64::from), Some(index));
        }
    }

    #[test]
    fn nothing_else_is_found() {
        for name in ["", ":", "x", "accepts", "x-frame-optionz", ":Path", "x-powered-by"] {
            assert_eq!(find_name(name.as_bytes()), None, "{name}");
        }
        let status = find_name(b":status").expect("the name");
        assert_eq!(find_value(status, b"201"), None);
        assert_eq!(find_value(status, b"500"), Some(71));
    }
}
