//! Requests with oddities, and their forms in the versions of HTTP.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::select;

type Pair = (Vec<u8>, Vec<u8>);

/// A request as HTTP/2 and HTTP/3 send it.
#[derive(Clone, Debug)]
pub(crate) struct OddRequest {
    /// In the order in which they are sent.
    pub(crate) pseudo: Vec<Pair>,
    /// Whether they come after the other fields.
    pub(crate) is_pseudo_last: bool,
    pub(crate) fields: Vec<Pair>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<Vec<Pair>>,
}

/// How a request differs from an ordinary one.
#[derive(Clone)]
pub(crate) enum Oddity {
    Method(&'static [u8]),
    /// CONNECT without what it must not have.
    Connect,
    Scheme(&'static [u8]),
    Path(Vec<u8>),
    Authority(&'static [u8]),
    /// A pseudo-field is missing, is there twice, or is none of a request.
    Without(&'static [u8]),
    Again(&'static [u8], &'static [u8]),
    PseudoLast,
    /// Before the other fields.
    Host(&'static [u8]),
    Field(&'static [u8], Vec<u8>),
    Length(&'static [u8]),
    Body(usize),
    Trailer(&'static [u8], &'static [u8]),
}

const METHODS: &[&[u8]] = &[
    b"POST",
    b"PUT",
    b"OPTIONS",
    b"HEAD",
    b"DELETE",
    b"get",
    b"M-SEARCH",
    b"GE T",
    b"",
    b"G\0T",
    b"(GET)",
    b"G\xc3\x89T",
    b"TRACE",
    b"CONNECT",
    b"PRI",
];

const SCHEMES: &[&[u8]] = &[b"http", b"https", b"HTTP", b"ftp", b"", b"ht tp", b"1http", b"http:"];

const PATHS: &[&[u8]] = &[
    b"",
    b"*",
    b"?q",
    b"p",
    b"/#f",
    b"/p?q#f",
    b"#f",
    b"/?#",
    b"/%",
    b"/%zz",
    b"/%2",
    b"/%2f..%2F",
    b"/../a//b/.",
    b"/a b",
    b" /",
    b"/ ",
    b"/a\tb",
    b"/a\rb",
    b"/a\nb",
    b"/a\0b",
    b"/a\x7fb",
    b"/\xc3\xa9",
    b"/\xff",
    b"/\"<>\\^`{|}",
    b"//a.example/",
    b"http://a.example/p",
    b"http://b.example/p",
    b"/p HTTP/1.1",
    b"/?a=b&c=%00",
    b"a.example:80",
];

const AUTHORITIES: &[&[u8]] = &[
    b"a.example",
    b"A.Example",
    b"a.example:80",
    b"a.example:",
    b"a.example:x",
    b"a.example:70000",
    b"a.example:+1",
    b"b.example",
    b"a.example.",
    b"",
    b"u@a.example",
    b"u:p@a.example",
    b"@a.example",
    b"a b",
    b"a\tb",
    b"a/b",
    b"a?b",
    b"a#b",
    b"a,b",
    b"a\\b",
    b"a\"b",
    b"[::1]",
    b"[::1]:8",
    b"[::1",
    b"::1",
    b"[v1.x]",
    b"%61.example",
    b"a%",
    b"a\0b",
    b"a\rb",
    b"a\nb",
    b"a\xff",
    b"\xc3\xa9.example",
    b"*",
    b"a.example:80:80",
    b"a..b",
    b"1.2.3.4",
    b"a_b",
];

const NAMES: &[&[u8]] = &[
    b"x-odd",
    b"X-Odd",
    b"x_odd",
    b"x.odd",
    b"x odd",
    b"x-odd ",
    b" x-odd",
    b"",
    b"x\0odd",
    b"x\rodd",
    b"x\nodd",
    b"x:odd",
    b":odd",
    b":status",
    b"x\x7f",
    b"x\xc3\xa9",
    b"x(odd)",
    b"te",
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
    b"upgrade",
    b"Transfer-Encoding",
    b"cookie",
    b"via",
    b"forwarded",
];

const VALUES: &[&[u8]] = &[
    b"v",
    b"",
    b" v",
    b"v ",
    b"\tv",
    b"v\t",
    b"a b",
    b"a\tb",
    b"a\0b",
    b"a\rb",
    b"a\nb",
    b"a\r\nx-smuggled: 1",
    b"\r",
    b"\n",
    b"a\x7fb",
    b"a\x01b",
    b"\xff",
    b"\xc3\xa9",
    b"trailers",
    b"trailers, gzip",
    b"chunked",
    b"close",
    b"x-odd",
    b"a,b",
    b"identity",
    b"websocket",
];

const LENGTHS: &[&[u8]] = &[
    b"0",
    b"1",
    b"3",
    b"4",
    b"03",
    b"+3",
    b"-3",
    b"3,3",
    b"3, 3",
    b"0x3",
    b"",
    b"a",
    b"3 ",
    b" 3",
    b"3.0",
    b"18446744073709551615",
    b"18446744073709551619",
    b"00000000000000000000003",
];

const PSEUDO: &[&[u8]] = &[b":method", b":scheme", b":authority", b":path"];

const OTHER_PSEUDO: &[&[u8]] = &[b":status", b":odd", b":", b":protocol", b":PATH"];

const TRAILER_NAMES: &[&[u8]] = &[
    b"x-sum",
    b":path",
    b":status",
    b"content-length",
    b"transfer-encoding",
    b"host",
    b"X-Sum",
    b"x sum",
    b"te",
];

/// Returns no oddity, or a few that may have to do with each other.
pub(crate) fn oddities() -> impl Strategy<Value = Vec<Oddity>> {
    prop::collection::vec(oddity(), 0..4)
}

fn oddity() -> impl Strategy<Value = Oddity> {
    let path = prop_oneof![
        3 => select(PATHS).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(select(&b"a/?#%2:@*.;=& \t\0\r\xc3\xa9\xff\\\"<"[..]), 0..6)
            .prop_map(|rest| [&b"/"[..], &rest].concat()),
    ];
    let value = prop_oneof![
        3 => select(VALUES).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop_oneof![
        2 => select(METHODS).prop_map(Oddity::Method),
        1 => Just(Oddity::Connect),
        1 => select(SCHEMES).prop_map(Oddity::Scheme),
        4 => path.prop_map(Oddity::Path),
        3 => select(AUTHORITIES).prop_map(Oddity::Authority),
        1 => select(PSEUDO).prop_map(Oddity::Without),
        1 => (select(PSEUDO), select(AUTHORITIES)).prop_map(|(name, value)| Oddity::Again(name, value)),
        1 => select(OTHER_PSEUDO)
            .prop_map(|name| Oddity::Again(name, b"odd")),
        1 => Just(Oddity::PseudoLast),
        3 => select(AUTHORITIES).prop_map(Oddity::Host),
        4 => (select(NAMES), value).prop_map(|(name, value)| Oddity::Field(name, value)),
        3 => select(LENGTHS).prop_map(Oddity::Length),
        2 => (0..5_usize).prop_map(Oddity::Body),
        1 => (select(TRAILER_NAMES), select(VALUES)).prop_map(|(name, value)| Oddity::Trailer(name, value)),
    ]
}

/// Returns each oddity that is not drawn byte by byte.
pub(crate) fn each_oddity() -> impl Iterator<Item = Oddity> {
    let pairs = |names: &'static [&'static [u8]], values: &'static [&'static [u8]]| {
        names.iter().flat_map(move |name| values.iter().map(move |value| (*name, *value)))
    };
    let fields = NAMES.iter().map(|name| (*name, &b"v"[..]));
    let fields = fields.chain(pairs(&[b"x-odd", b"te", b"transfer-encoding"], VALUES));
    let trailers = TRAILER_NAMES.iter().map(|name| (*name, &b"v"[..]));
    let trailers = trailers.chain(pairs(&[b"x-sum"], VALUES));
    let again = pairs(PSEUDO, AUTHORITIES).chain(pairs(OTHER_PSEUDO, &[b"odd"]));
    [Oddity::Connect, Oddity::PseudoLast]
        .into_iter()
        .chain(METHODS.iter().map(|method| Oddity::Method(method)))
        .chain(SCHEMES.iter().map(|scheme| Oddity::Scheme(scheme)))
        .chain(PATHS.iter().map(|path| Oddity::Path(path.to_vec())))
        .chain(AUTHORITIES.iter().map(|authority| Oddity::Authority(authority)))
        .chain(AUTHORITIES.iter().map(|host| Oddity::Host(host)))
        .chain(PSEUDO.iter().map(|name| Oddity::Without(name)))
        .chain(again.map(|(name, value)| Oddity::Again(name, value)))
        .chain(fields.map(|(name, value)| Oddity::Field(name, value.to_vec())))
        .chain(LENGTHS.iter().map(|length| Oddity::Length(length)))
        .chain(trailers.map(|(name, value)| Oddity::Trailer(name, value)))
}

impl fmt::Debug for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method(method) => write!(f, "Method(b\"{}\")", method.escape_ascii()),
            Self::Connect => f.write_str("Connect"),
            Self::Scheme(scheme) => write!(f, "Scheme(b\"{}\")", scheme.escape_ascii()),
            Self::Path(path) => write!(f, "Path(b\"{}\".to_vec())", path.escape_ascii()),
            Self::Authority(value) => write!(f, "Authority(b\"{}\")", value.escape_ascii()),
            Self::Without(name) => write!(f, "Without(b\"{}\")", name.escape_ascii()),
            Self::Again(name, value) => {
                write!(f, "Again(b\"{}\", b\"{}\")", name.escape_ascii(), value.escape_ascii())
            }
            Self::PseudoLast => f.write_str("PseudoLast"),
            Self::Host(host) => write!(f, "Host(b\"{}\")", host.escape_ascii()),
            Self::Field(name, value) => {
                let (name, value) = (name.escape_ascii(), value.escape_ascii());
                write!(f, "Field(b\"{name}\", b\"{value}\".to_vec())")
            }
            Self::Length(length) => write!(f, "Length(b\"{}\")", length.escape_ascii()),
            Self::Body(length) => write!(f, "Body({length})"),
            Self::Trailer(name, value) => {
                write!(f, "Trailer(b\"{}\", b\"{}\")", name.escape_ascii(), value.escape_ascii())
            }
        }
    }
}

fn pair(name: &[u8], value: &[u8]) -> Pair {
    (name.to_vec(), value.to_vec())
}

impl OddRequest {
    /// Returns an ordinary request with these oddities.
    pub(crate) fn with(oddities: &[Oddity]) -> Self {
        let mut request = Self {
            pseudo: vec![
                pair(b":method", b"GET"),
                pair(b":scheme", b"https"),
                pair(b":authority", b"a.example"),
                pair(b":path", b"/p"),
            ],
            is_pseudo_last: false,
            fields: Vec::new(),
            body: Vec::new(),
            trailers: None,
        };
        for oddity in oddities {
            request.add(oddity);
        }
        request
    }

    fn add(&mut self, oddity: &Oddity) {
        match oddity {
            Oddity::Method(method) => self.set(b":method", method),
            Oddity::Connect => {
                self.set(b":method", b"CONNECT");
                self.pseudo.retain(|(name, _)| name != b":scheme" && name != b":path");
            }
            Oddity::Scheme(scheme) => self.set(b":scheme", scheme),
            Oddity::Path(path) => self.set(b":path", path),
            Oddity::Authority(authority) => self.set(b":authority", authority),
            Oddity::Without(pseudo) => self.pseudo.retain(|(name, _)| name != pseudo),
            Oddity::Again(name, value) => self.pseudo.push(pair(name, value)),
            Oddity::PseudoLast => self.is_pseudo_last = true,
            Oddity::Host(host) => self.fields.insert(0, pair(b"host", host)),
            Oddity::Field(name, value) => self.fields.push(pair(name, value)),
            Oddity::Length(length) => self.fields.push(pair(b"content-length", length)),
            Oddity::Body(length) => self.body = vec![b'.'; *length],
            Oddity::Trailer(name, value) => {
                self.trailers.get_or_insert_default().push(pair(name, value));
            }
        }
    }

    fn set(&mut self, name: &[u8], value: &[u8]) {
        match self.pseudo.iter_mut().find(|(other, _)| other == name) {
            Some((_, old)) => *old = value.to_vec(),
            None => self.pseudo.push(pair(name, value)),
        }
    }

    /// Returns the fields of the head in the order of HTTP/2 and HTTP/3.
    pub(crate) fn head(&self) -> Vec<Pair> {
        let (first, second) = match self.is_pseudo_last && !self.fields.is_empty() {
            true => (&self.fields, &self.pseudo),
            false => (&self.pseudo, &self.fields),
        };
        first.iter().chain(second).cloned().collect()
    }

    fn pseudo(&self, name: &[u8]) -> Option<&[u8]> {
        self.pseudo.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
    }

    /// Returns the value of each field with this name.
    fn values<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |(other, _)| other == name).map(|(_, value)| &**value)
    }

    /// Returns whether the server sees over HTTP/2 what is odd: the h2 crate drops fragments, whatever is in them, and
    /// pseudo-fields in trailers.
    pub(crate) fn is_visible_over_http2(&self) -> bool {
        let is_fragment_harmless = |path: &[u8]| {
            let mut parts = path.splitn(2, |byte| *byte == b'#');
            let fragment = parts.next().zip(parts.next());
            fragment.is_none_or(|(before, fragment)| {
                !before.is_empty() && fragment.iter().all(u8::is_ascii_graphic)
            })
        };
        let is_pseudo = |(name, _): &Pair| name.starts_with(b":");
        self.pseudo(b":path").is_none_or(is_fragment_harmless)
            && !self.trailers.iter().flatten().any(is_pseudo)
    }

    /// Returns the request in HTTP/1.1, if its bytes could say the same there.
    pub(crate) fn http1(&self) -> Option<Vec<u8>> {
        let mut line = self.http1_line()?;
        let is_body_framed = self.is_framed_by_length()?;
        for (name, value) in &self.fields {
            field_in_http1(name, value)?;
            line.extend([name, &b": "[..], value, b"\r\n"].concat());
        }
        let is_chunked = !is_body_framed && (!self.body.is_empty() || self.trailers.is_some());
        if is_chunked {
            line.extend(b"transfer-encoding: chunked\r\n");
        }
        line.extend(b"connection: close\r\n\r\n");
        if !is_chunked {
            line.extend(&self.body);
            return Some(line);
        }
        if !self.body.is_empty() {
            line.extend(format!("{:x}\r\n", self.body.len()).into_bytes());
            line.extend([&self.body, &b"\r\n"[..]].concat());
        }
        line.extend(b"0\r\n");
        for (name, value) in self.trailers.iter().flatten() {
            field_in_http1(name, value)?;
            // There they are fields like any other, or their framing.
            if name != b"x-sum" {
                return None;
            }
            line.extend([name, &b": "[..], value, b"\r\n"].concat());
        }
        line.extend(b"\r\n");
        Some(line)
    }

    /// Returns the request line, and `Host` for an `:authority` without it.
    fn http1_line(&self) -> Option<Vec<u8>> {
        let names: Vec<&[u8]> = self.pseudo.iter().map(|(name, _)| &**name).collect();
        let is_once = |name: &&[u8]| names.iter().filter(|other| *other == name).count() == 1;
        if !names.iter().all(|name| PSEUDO.contains(name) && is_once(name)) || self.is_pseudo_last {
            return None;
        }
        let method = self.pseudo(b":method")?;
        let authority = self.pseudo(b":authority");
        let has_line_end = |text: &[u8]| text.contains(&b'\n');
        if has_line_end(method) || authority.is_some_and(has_line_end) {
            return None;
        }
        let has_host = self.values(b"host").next().is_some();
        let target = if method == b"CONNECT" {
            if names.len() != 2 || has_host {
                return None;
            }
            authority?.to_vec()
        } else {
            let (scheme, path) = (self.pseudo(b":scheme")?, self.pseudo(b":path")?);
            let is_path = path.starts_with(b"/") || (path == b"*" && !has_host);
            // In absolute form another path is a valid target, or another authority.
            let is_absolute = has_host && authority.is_some();
            if has_line_end(path) || !is_path || !(scheme == b"http" || scheme == b"https") {
                return None;
            }
            match authority {
                Some(authority) if is_absolute => {
                    // Other characters would move the end of the authority.
                    if authority.iter().any(|byte| b"/?#\\ ".contains(byte)) {
                        return None;
                    }
                    [scheme, b"://", authority, path].concat()
                }
                _ => path.to_vec(),
            }
        };
        let mut line = [method, b" ", &target, b" HTTP/1.1\r\n"].concat();
        if let Some(authority) = authority.filter(|_| !has_host) {
            field_in_http1(b"host", authority)?;
            line.extend([&b"host: "[..], authority, b"\r\n"].concat());
        }
        Some(line)
    }

    /// Returns whether a `Content-Length` frames the body, if HTTP/1.1 can have the body and the length.
    fn is_framed_by_length(&self) -> Option<bool> {
        let lengths: Vec<&[u8]> = self.values(b"content-length").collect();
        let [length] = lengths[..] else { return Some(!lengths.is_empty()) };
        let is_number = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(length).ok().and_then(|text| text.parse::<u64>().ok());
        match number.filter(|_| is_number) {
            // What is longer or shorter would be another request, or none.
            Some(number) if number != self.body.len() as u64 => None,
            Some(_) if self.trailers.is_some() => None,
            _ => Some(true),
        }
    }
}

/// Returns `None` for what is another field in HTTP/1.1, or is only malformed in the later versions.
fn field_in_http1(name: &[u8], value: &[u8]) -> Option<()> {
    const OTHER_MEANING: [&[u8]; 6] = [
        b"te",
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
    ];
    let lower = name.to_ascii_lowercase();
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_trimmed = is_space(value.first()) || is_space(value.last());
    let is_other = OTHER_MEANING.contains(&&*lower) || lower != name;
    let is_split = name.contains(&b':') || [name, value].concat().contains(&b'\n');
    // At the end CR belongs to the end of the line.
    let is_line_end = value.last() == Some(&b'\r');
    (!is_trimmed && !is_other && !is_split && !is_line_end).then_some(())
}
