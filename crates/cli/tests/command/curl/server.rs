//! A server without TLS whose responses show what was sent to it. Names of fields are in lower case, as eyas prints them.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

/// The body of `/bytes`.
pub(super) const BYTES: &str = "0123456789abcdefghijklmnopqrstuvwxyz";

/// A text of 121 bytes, compressed.
const GZIP: &[u8] = &[
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 200, 160, 59, 201, 5, 0, 48, 195,
    78, 153, 121, 0, 0, 0,
];

/// How much of it `/stalls` sends without a range.
pub(super) const BEGUN: usize = 10;

const LAST_MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// The requests so far to each path of `/busy/`.
type Visits = Arc<Mutex<HashMap<String, usize>>>;

/// Starts it; it serves until the test ends.
pub(super) fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let visits = Visits::default();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let visits = Arc::clone(&visits);
            thread::spawn(move || {
                let reader = stream.try_clone().expect("a descriptor");
                serve(BufReader::new(reader), stream, &visits)
            });
        }
    });
    address
}

/// Serves the same at a socket of the file system.
pub(super) fn start_at(path: &std::path::Path) {
    let listener = std::os::unix::net::UnixListener::bind(path).expect("a socket");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let reader = stream.try_clone().expect("a descriptor");
            thread::spawn(move || serve(BufReader::new(reader), stream, &Visits::default()));
        }
    });
}

struct Request {
    method: String,
    target: String,
    /// In the order of their names.
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reads a request; `None` at the end of the connection.
    fn read(from: &mut impl BufRead, to: &mut impl Write) -> Option<Self> {
        let line = |from: &mut dyn BufRead| {
            let mut line = String::new();
            (from.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
        };
        let first = line(from)?;
        let mut words = first.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut fields = Vec::new();
        loop {
            let line = line(from)?;
            let Some((name, value)) = line.split_once(':') else { break };
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        fields.sort();
        let mut request = Self { method, target, fields, body: Vec::new() };
        if request.field("expect").is_some() {
            to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        if request.field("transfer-encoding").is_some() {
            loop {
                let length = usize::from_str_radix(&line(from)?, 16).ok()?;
                let mut chunk = vec![0; length + 2];
                from.read_exact(&mut chunk).ok()?;
                request.body.extend(&chunk[..length]);
                if length == 0 {
                    break;
                }
            }
        } else if let Some(length) = request.field("content-length") {
            request.body = vec![0; length.parse().ok()?];
            from.read_exact(&mut request.body).ok()?;
        }
        Some(request)
    }

    /// Describes everything that a user can determine.
    fn echo(&self) -> String {
        let is_own = |name: &str, value: &str| {
            let is_default =
                name == "user-agent" && ["curl/", "eyas/"].iter().any(|own| value.starts_with(own));
            is_default || ["host", "accept-encoding", "expect", "proxy-connection"].contains(&name)
        };
        let mut text = format!("{} {}\n", self.method, self.target);
        let boundary = self.field("content-type").and_then(|value| value.split_once("boundary="));
        for (name, value) in self.fields.iter().filter(|(name, value)| !is_own(name, value)) {
            // The lengths of boundaries differ.
            if name == "cookie" {
                // RFC 6265 §5.4 recommends an order, and curl has its own.
                let mut cookies: Vec<&str> = value.split(';').map(str::trim).collect();
                cookies.sort_unstable();
                text.push_str(&format!("cookie: {}\n", cookies.join("; ")));
            } else if boundary.is_none() || name != "content-length" {
                text.push_str(&format!("{name}: {value}\n"));
            }
        }
        text.push_str(&String::from_utf8_lossy(&self.body));
        match boundary {
            Some((_, boundary)) => text.replace(boundary, "BOUNDARY"),
            None => text,
        }
    }
}

fn serve(mut from: impl BufRead, mut to: impl Write, visits: &Visits) {
    let mut count = 0;
    while let Some(request) = Request::read(&mut from, &mut to) {
        count += 1;
        let answer = answer(&request, count, visits);
        if request.target == "/hangup" {
            return;
        }
        let Some((head, body)) = answer else {
            // Never an answer; the client gives up.
            let _ = from.read(&mut [0]);
            return;
        };
        let body = if request.method == "HEAD" { &[] } else { body.as_slice() };
        let answer = [format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), body].concat();
        if to.write_all(&answer).is_err() {
            return;
        }
        match request.target.as_str() {
            "/short" => return,
            // Nothing more is sent until the client gives up.
            "/stalls" | "/stalls/weak" if request.field("range").is_none() => {
                let _ = from.read(&mut [0]);
                return;
            }
            _ => {}
        }
    }
}

/// Returns the head, from the status on, and the body.
fn answer(request: &Request, count: usize, visits: &Visits) -> Option<(String, Vec<u8>)> {
    let path = request.target.split('?').next().unwrap_or_default();
    let plain = |status: &str, fields: &str, body: &str| {
        let length = body.len();
        let fields = format!("content-type: text/plain\r\n{fields}content-length: {length}");
        Some((format!("{status}\r\n{fields}"), body.as_bytes().to_vec()))
    };
    if request.method == "CONNECT" {
        return plain("403 Forbidden", "", "no\n");
    }
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts[..] {
        ["text"] => {
            let fields = format!("etag: \"x\"\r\nlast-modified: {LAST_MODIFIED}\r\n");
            plain("200 OK", &fields, "hello\n")
        }
        ["bytes"] => Some(ranged(request.field("range"))),
        ["stalls", ..] => {
            let (mut head, body) = ranged(request.field("range"));
            if path == "/stalls/weak" {
                head = head.replace("etag: ", "etag: W/");
            }
            let most = request.field("range").map_or(BEGUN, |_| body.len());
            Some((head, body[..most].to_vec()))
        }
        ["norange"] => plain("200 OK", "", BYTES),
        ["connection"] => plain("200 OK", "", &format!("request {count}\n")),
        ["named"] => plain(
            "200 OK",
            "content-disposition: attachment; filename=\"given.txt\"\r\n",
            "named\n",
        ),
        ["status", status] => plain(&format!("{status} Status"), "", &format!("status {status}\n")),
        ["redirect", "0"] => plain("200 OK", "", "the end\n"),
        ["redirect", count] => {
            let next = count.parse::<u32>().unwrap_or(1) - 1;
            plain("302 Found", &format!("location: /redirect/{next}\r\n"), "moved\n")
        }
        ["cookies"] => {
            let fields = "set-cookie: a=1; path=/\r\nset-cookie: b=2; path=/; expires=Fri, 01 Jan 2100 00:00:00 GMT; httponly\r\nset-cookie: c=3; path=/other\r\n";
            plain("302 Found", &format!("location: /echo\r\n{fields}"), "cookies\n")
        }
        ["busy", name] => {
            let mut visits = visits.lock().expect("not poisoned");
            let visit = visits.entry(name.to_owned()).or_default();
            *visit += 1;
            match *visit {
                1 => plain("503 Service Unavailable", "retry-after: 1\r\n", "busy\n"),
                _ => plain("200 OK", "", "ready\n"),
            }
        }
        ["silent"] => None,
        ["short"] => Some(("200 OK\r\ncontent-length: 1000".to_owned(), b"too short".to_vec())),
        // The client is given a file that is there already.
        ["taken"] => {
            plain("200 OK", "content-disposition: attachment; filename=\"data\"\r\n", "taken\n")
        }
        ["reason"] => plain("200 Very well", "", "fine\n"),
        ["reason", "redirect"] => plain("302 Over there", "location: /reason\r\n", "moved\n"),
        ["list"] => plain("200 OK", "x-quoted: a \"b\" \\\r\nx-two: 1\r\nx-two: 2\r\n", "list\n"),
        ["gzip"] => coded(GZIP),
        ["gzip", "broken"] => coded(&GZIP[..GZIP.len() - 12]),
        ["gzip", "none"] => coded(b"this is no gzip at all"),
        ["unmodified"] => Some(("304 Not Modified".to_owned(), Vec::new())),
        _ => plain("200 OK", "", &request.echo()),
    }
}

/// Answers with this, as gzip.
fn coded(body: &[u8]) -> Option<(String, Vec<u8>)> {
    let length = body.len();
    let head =
        format!("200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\nx-after: 1");
    Some((head, body.to_vec()))
}

/// Answers with one range, or with everything.
fn ranged(range: Option<&str>) -> (String, Vec<u8>) {
    let length = BYTES.len();
    let wanted = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let (from, to) = match wanted.map(|(from, to)| (from.parse::<usize>(), to.parse::<usize>())) {
        Some((Ok(from), Ok(to))) => (from, (to + 1).min(length)),
        Some((Ok(from), Err(_))) => (from, length),
        Some((Err(_), Ok(last))) => (length - last, length),
        _ => {
            let head = format!(
                "200 OK\r\naccept-ranges: bytes\r\netag: \"b\"\r\ncontent-length: {length}"
            );
            return (head, BYTES.into());
        }
    };
    if from >= length {
        let head = format!(
            "416 Range Not Satisfiable\r\ncontent-range: bytes */{length}\r\ncontent-length: 3"
        );
        return (head, b"no\n".to_vec());
    }
    let body = &BYTES[from..to];
    let head = format!(
        "206 Partial Content\r\netag: \"b\"\r\ncontent-range: bytes {from}-{}/{length}\r\ncontent-length: {}",
        to - 1,
        body.len()
    );
    (head, body.into())
}
