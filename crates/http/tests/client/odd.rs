//! Responses as odd servers write them. curl's outcome is the measure: status and body are the
//! same, or the difference is one of docs/guide/http.md.

use bytes::Bytes;
use eyas_http::{Client, Kind, Versions};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

use crate::site::{Plan, Reply, SOON, builder, builder_for};

const BODY: &str = "hello world\n";
#[cfg(feature = "compression")]
const TWICE: &str = "hello world\nhello world\n";

/// What a client makes of a response: its status and body, or nothing.
type Outcome = Option<(u16, &'static str)>;

const HELLO: Outcome = Some((200, BODY));
const EMPTY: Outcome = Some((200, ""));

/// Why the outcome differs from curl's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unlike {
    /// RFC 9112 forbids it, and what follows could be misread.
    Framing,
    /// Browsers take it.
    Lenient,
    /// The parser does not know it, and no server that sends it is known.
    Unknown,
    /// What is cut off is not the whole.
    Cut,
}

struct Odd {
    name: &'static str,
    response: Vec<u8>,
    curl: Outcome,
    eyas: Outcome,
    unlike: Option<Unlike>,
}

fn odd(name: &'static str, head: impl AsRef<[u8]>, body: impl AsRef<[u8]>, curl: Outcome) -> Odd {
    let response = [head.as_ref(), b"\r\n\r\n", body.as_ref()].concat();
    Odd { name, response, curl, eyas: curl, unlike: None }
}

impl Odd {
    fn unlike(mut self, why: Unlike, eyas: Outcome) -> Self {
        self.eyas = eyas;
        self.unlike = Some(why);
        self
    }
}

/// A response with these lines and a length.
fn with(name: &'static str, lines: &[u8], curl: Outcome) -> Odd {
    let head = [b"HTTP/1.1 200 OK\r\n", lines, b"\r\ncontent-length: 12"].concat();
    odd(name, head, BODY, curl)
}

/// A chunked response whose chunks are written like this.
fn chunked(name: &'static str, chunks: &str, curl: Outcome) -> Odd {
    odd(name, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked", chunks, curl)
}

/// Exactly these octets.
fn whole(response: &[u8], curl: Outcome) -> Odd {
    Odd { response: response.to_vec(), ..odd("", "", "", curl) }
}

const OK: &str = "HTTP/1.1 200 OK";

/// Interim responses, and the line of the final one.
fn interim(count: usize) -> String {
    "HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n".repeat(count) + OK
}

fn status_lines() -> Vec<Odd> {
    let line =
        |name, line: &str, curl| odd(name, format!("{line}\r\ncontent-length: 12"), BODY, curl);
    vec![
        line("no reason", "HTTP/1.1 200", HELLO),
        line("no reason after a space", "HTTP/1.1 200 ", HELLO),
        line("a reason in Latin-1", "HTTP/1.1 200 \u{e9}", HELLO),
        line("an unknown status", "HTTP/1.1 999 Request Denied", Some((999, BODY))),
        line("four digits", "HTTP/1.1 1000 Huge", None),
        line("another protocol", "ICY 200 OK", None),
        line("205 with a body", "HTTP/1.1 205 Reset", Some((205, BODY))),
        line("204 with a length", "HTTP/1.1 204 No Content", Some((204, ""))),
        line("HTTP/1.0", "HTTP/1.0 200 OK", HELLO),
        odd("HTTP/1.0 without a length", "HTTP/1.0 200 OK", BODY, HELLO),
        line("an interim response", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", HELLO),
        line("early hints", "HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK", HELLO),
        line("another version", "HTTP/2.0 200 OK", HELLO).unlike(Unlike::Framing, None),
        line("a blank line first", "\r\nHTTP/1.1 200 OK", None).unlike(Unlike::Lenient, HELLO),
        line("a lower-case version", "http/1.1 200 OK", HELLO).unlike(Unlike::Unknown, None),
        line("two spaces before the status", "HTTP/1.1  200 OK", HELLO)
            .unlike(Unlike::Unknown, None),
        line("a reason without a space", "HTTP/1.1 200OK", HELLO).unlike(Unlike::Unknown, None),
        line("a control character as the reason", "HTTP/1.1 200 \x01", HELLO)
            .unlike(Unlike::Unknown, None),
        line("a NUL in the reason", "HTTP/1.1 200 O\0K", None),
        line("a tab before the status", "HTTP/1.1\t200 OK", None),
        line("two digits", "HTTP/1.1 20 OK", None),
        line("letters", "HTTP/1.1 2xx OK", None),
        line("a sign", "HTTP/1.1 -200 OK", None),
        line("zeros", "HTTP/1.1 000 OK", None),
        line("a status of the last class and more", "HTTP/1.1 600 OK", Some((600, BODY))),
        line("HTTP/1.2", "HTTP/1.2 200 OK", None),
        line("HTTP/1", "HTTP/1 200 OK", None),
        line("a space first", " HTTP/1.1 200 OK", None),
        line("a byte order mark first", "\u{feff}HTTP/1.1 200 OK", None),
        line("a long reason", &format!("HTTP/1.1 200 {}", "r".repeat(9000)), HELLO),
        odd("204 with a body", "HTTP/1.1 204 No Content", BODY, Some((204, ""))),
        odd("no length", "HTTP/1.1 200 OK\r\nconnection: keep-alive", BODY, HELLO),
        line("101 without a request", "HTTP/1.1 101 Switching", Some((101, BODY)))
            .unlike(Unlike::Framing, None),
        line("206 without a request", "HTTP/1.1 206 Partial", Some((206, BODY)))
            .unlike(Unlike::Cut, None),
        odd("304 without a request", "HTTP/1.1 304 Not", "", Some((304, "")))
            .unlike(Unlike::Cut, None),
        line("ten interim responses", &interim(10), HELLO),
        line("500 interim responses", &interim(500), HELLO).unlike(Unlike::Unknown, None),
        line(
            "an interim response with a length",
            &format!("HTTP/1.1 100 C\r\ncontent-length: 5\r\n\r\n{OK}"),
            HELLO,
        ),
        line("an interim response of HTTP/1.0", &format!("HTTP/1.0 100 C\r\n\r\n{OK}"), HELLO),
        line(
            "an interim response that closes",
            &format!("HTTP/1.1 100 C\r\nconnection: close\r\n\r\n{OK}"),
            HELLO,
        ),
        Odd { name: "only an interim response", ..whole(b"HTTP/1.1 100 C\r\n\r\n", None) },
        Odd { name: "nothing", ..whole(b"", None) },
        Odd {
            name: "the head cut off",
            ..whole(b"HTTP/1.1 200 OK\r\ncontent-le", EMPTY).unlike(Unlike::Cut, None)
        },
        Odd {
            name: "bare line feeds",
            response: format!("HTTP/1.1 200 OK\ncontent-length: 12\n\n{BODY}").into(),
            ..odd("", "", "", HELLO)
        },
    ]
}

fn fields() -> Vec<Odd> {
    let many = |count: usize| {
        let lines: Vec<String> = (0..count).map(|number| format!("x-{number}: 1")).collect();
        lines.join("\r\n")
    };
    let long = format!("x: {}", "a".repeat(70_000));
    vec![
        with("a folded line", b"x-a: one\r\n two", HELLO),
        with("a line folded by tabs, twice", b"x-a: one\r\n\ttwo\r\n\t \tthree", HELLO),
        with("a folded line that is blank", b"x-a: one\r\n  ", HELLO),
        with("a folded empty value", b"x-a:\r\n one", HELLO),
        with("a space before the colon", b"x-a : one", HELLO),
        with("a tab before the colon", b"x-a\t: one", HELLO),
        with("a space in a name", b"x a: one", HELLO),
        with("an empty name", b": one", HELLO),
        with("a control character", b"x-a: a\x01b", HELLO),
        with("Latin-1", b"x-a: caf\xe9", HELLO),
        with("an empty value", b"x-a:", HELLO),
        with("a name in UTF-8", "x-\u{e9}: 1".as_bytes(), HELLO),
        with("no colon", b"nonsense", None).unlike(Unlike::Lenient, HELLO),
        with("only a colon", b":", HELLO),
        with("two colons", b"a:b:c", HELLO),
        with("a name of other characters", b"(x)[y]{z}@\"q\": v", HELLO),
        with("a NUL in a value", b"x: a\0b", None),
        with("a NUL in a name", b"x\0y: a", None),
        with("a carriage return in a value", b"x: a\rb", HELLO).unlike(Unlike::Framing, None),
        with("a folded line first", b" x: y", None).unlike(Unlike::Lenient, HELLO),
        with("odd values", b"connection: \x01, , close;x\r\nkeep-alive: -1\r\nalt-svc: h3=\":9999999\"; ma=x, \x01=\r\ndate: yesterday\r\ncontent-type: ;;;charset=\xff", HELLO),
        with("odd cookies", b"set-cookie: =\r\nset-cookie:\r\nset-cookie: ;;;\r\nset-cookie: a=b; domain=.; expires=x; max-age=99999999999999999999\r\nset-cookie: \xff=\x01", HELLO),
        with("101 fields", many(101).as_bytes(), HELLO),
        with("300 fields", many(300).as_bytes(), HELLO),
        with("1900 fields", many(1900).as_bytes(), HELLO),
        with("a long field", long.as_bytes(), HELLO),
    ]
}

const CHUNKS: &str = "c\r\nhello world\n\r\n0\r\n\r\n";

/// The body behind these lines.
fn head(name: &'static str, lines: &str, curl: Outcome) -> Odd {
    odd(name, format!("HTTP/1.1 200 OK\r\n{lines}"), BODY, curl)
}

/// The body in chunks behind these lines.
fn transfer(name: &'static str, lines: &str, curl: Outcome) -> Odd {
    odd(name, format!("HTTP/1.1 200 OK\r\n{lines}"), CHUNKS, curl)
}

fn lengths() -> Vec<Odd> {
    vec![
        head("the same length twice", "content-length: 12\r\ncontent-length: 12", HELLO),
        head("a list of lengths", "content-length: 12, 12", HELLO),
        head("a length with a sign", "content-length: +12", HELLO).unlike(Unlike::Framing, None),
        head("an empty length", "content-length: ", None),
        head("a negative length", "content-length: -1", None),
        head("three lengths in a list", "content-length: 12, 12,12", HELLO),
        head("zeros before the length", "content-length: 000000000000000000000000012", HELLO),
        head("a tab around the length", "content-length:\t12\t", HELLO),
        head("a short length", "content-length: 5", Some((200, "hello"))),
        head("a long length", "content-length: 20", None),
        head("two lengths", "content-length: 12\r\ncontent-length: 13", None),
        head("two lengths in a list", "content-length: 12, 13", HELLO)
            .unlike(Unlike::Framing, None),
        head("a quoted length", "content-length: \"12\"", None),
        head("a length behind a comma", "content-length: ,12", None),
        head("minus zero", "content-length: -0", None),
        head("a hexadecimal length", "content-length: 0xc", EMPTY).unlike(Unlike::Framing, None),
        head("a fraction", "content-length: 12.0", HELLO).unlike(Unlike::Framing, None),
        head("a length with a unit", "content-length: 12 bytes", HELLO)
            .unlike(Unlike::Framing, None),
        head("a length with a comma", "content-length: 12,", HELLO).unlike(Unlike::Framing, None),
        head("a length of 2^64 - 1", "content-length: 18446744073709551615", HELLO)
            .unlike(Unlike::Framing, None),
        head("a length above 2^64", "content-length: 99999999999999999999", HELLO)
            .unlike(Unlike::Framing, None),
        head("a folded length", "content-length:\r\n 12", None).unlike(Unlike::Lenient, HELLO),
        odd(
            "what follows a length",
            "HTTP/1.1 200 OK\r\ncontent-length: 12\r\nconnection: close",
            format!("{BODY}GARBAGE\0"),
            HELLO,
        ),
        odd(
            "another response",
            "HTTP/1.1 200 OK\r\ncontent-length: 12",
            format!("{BODY}{OK}\r\n\r\n"),
            HELLO,
        ),
    ]
}

fn transfer_codings() -> Vec<Odd> {
    vec![
        transfer(
            "chunked with another length",
            "transfer-encoding: chunked\r\ncontent-length: 5",
            HELLO,
        ),
        transfer(
            "chunked with two lengths",
            "transfer-encoding: chunked\r\ncontent-length: 5\r\ncontent-length: 6",
            HELLO,
        ),
        transfer("chunked with no number", "transfer-encoding: chunked\r\ncontent-length: x", None)
            .unlike(Unlike::Lenient, HELLO),
        transfer("Chunked", "Transfer-Encoding: Chunked", HELLO),
        transfer("identity and chunked", "transfer-encoding: identity, chunked", HELLO),
        transfer("a comma and chunked", "transfer-encoding: ,chunked", HELLO),
        transfer("chunked and a comma", "transfer-encoding: chunked,", HELLO)
            .unlike(Unlike::Framing, None),
        transfer("chunked and identity", "transfer-encoding: chunked, identity", HELLO)
            .unlike(Unlike::Framing, None),
        transfer("gzip and chunked", "transfer-encoding: gzip, chunked", None),
        transfer("an unknown coding and chunked", "transfer-encoding: x, chunked", None),
        transfer("a parameter", "transfer-encoding: chunked;q=1", None),
        transfer("a quoted coding", "transfer-encoding: \"chunked\"", None),
        odd("chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked", CHUNKS, HELLO)
            .unlike(Unlike::Framing, None),
        head("identity", "transfer-encoding: identity\r\nconnection: close", HELLO),
        transfer(
            "chunked with a length",
            "content-length: 12\r\ntransfer-encoding: chunked",
            HELLO,
        ),
        transfer(
            "chunked twice",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
            HELLO,
        )
        .unlike(Unlike::Framing, None),
    ]
}

fn chunks() -> Vec<Odd> {
    vec![
        chunked("a quoted extension", &format!("c;a=\"b;\\\"c\"\r\n{BODY}\r\n0\r\n\r\n"), HELLO),
        chunked(
            "a long extension",
            &format!("c;{}\r\n{BODY}\r\n0\r\n\r\n", "a".repeat(5000)),
            HELLO,
        ),
        chunked(
            "a huge extension",
            &format!("c;{}\r\n{BODY}\r\n0\r\n\r\n", "a".repeat(40_000)),
            HELLO,
        )
        .unlike(Unlike::Unknown, None),
        chunked("a line feed after a size", &format!("c\n{BODY}\r\n0\r\n\r\n"), HELLO)
            .unlike(Unlike::Framing, None),
        chunked("a line feed after an extension", &format!("c;a\n{BODY}\r\n0\r\n\r\n"), HELLO)
            .unlike(Unlike::Framing, None),
        chunked("a size with 0x", &format!("0xc\r\n{BODY}\r\n0\r\n\r\n"), None),
        chunked("a size with a sign", &format!("+c\r\n{BODY}\r\n0\r\n\r\n"), None),
        chunked("a size behind a space", &format!(" c\r\n{BODY}\r\n0\r\n\r\n"), None),
        chunked("a size above 2^64", &format!("fffffffffffffffff\r\n{BODY}"), None),
        chunked("no size", &format!("\r\n{BODY}\r\n0\r\n\r\n"), None),
        chunked("no line end after a chunk", &format!("c\r\n{BODY}0\r\n\r\n"), None),
        chunked("two line ends after a chunk", &format!("c\r\n{BODY}\r\n\r\n0\r\n\r\n"), None),
    ]
}

fn more_chunks() -> Vec<Odd> {
    vec![
        chunked("what follows the last chunk", &format!("{CHUNKS}GARBAGE"), HELLO),
        chunked(
            "trailers",
            &format!("c\r\n{BODY}\r\n0\r\nx: y\r\ncontent-length: 9\r\n\r\n"),
            HELLO,
        ),
        chunked(
            "a trailer that is no field",
            &format!("c\r\n{BODY}\r\n0\r\nnonsense\r\n\r\n"),
            None,
        ),
        chunked("a folded trailer", &format!("c\r\n{BODY}\r\n0\r\nx: y\r\n z\r\n\r\n"), HELLO)
            .unlike(Unlike::Unknown, None),
        chunked(
            "a trailer with a space in its name",
            &format!("c\r\n{BODY}\r\n0\r\nx y: z\r\n\r\n"),
            HELLO,
        )
        .unlike(Unlike::Unknown, None),
        chunked("plain chunks", CHUNKS, HELLO),
        chunked("an extension", &format!("c;a=b\r\n{BODY}\r\n0;x\r\nx-t: 1\r\n\r\n"), HELLO),
        chunked("spaces after a size", &format!("c  \r\n{BODY}\r\n0  \r\n\r\n"), HELLO),
        chunked("zeros before a size", &format!("0000000c\r\n{BODY}\r\n00000000\r\n\r\n"), HELLO),
        chunked("a size in upper case", &format!("C\r\n{BODY}\r\n0\r\n\r\n"), HELLO),
        chunked("cut within a chunk", "c\r\nhello", None),
        chunked("no last chunk", &format!("c\r\n{BODY}\r\n"), None),
        chunked("cut after the last chunk", &format!("c\r\n{BODY}\r\n0\r\n"), None),
    ]
}

/// BODY in the format of zlib.
#[cfg(feature = "compression")]
const ZLIB: &[u8] = &[
    0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0x28, 0xcf, 0x2f, 0xca, 0x49, 0xe1, 2, 0, 0x1e,
    0x72, 4, 0x67,
];

#[cfg(feature = "compression")]
fn codings() -> Vec<Odd> {
    const CODINGS: [&str; 5] = ["gzip", "x-gzip", "br", "deflate", "zstd"];
    let coded = |name, coding: &str, body: &[u8], curl| {
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {length}");
        odd(name, head, body, curl)
    };
    // gzip of BODY
    let gzip: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0x28, 0xcf, 0x2f,
        0xca, 0x49, 0xe1, 2, 0, 0x2d, 0x3b, 8, 0xaf, 0x0c, 0, 0, 0,
    ];
    let followed = |by: &[u8]| [gzip, by].concat();
    let mut all = vec![
        coded("gzip", "gzip", gzip, HELLO),
        coded("zeros after gzip", "gzip", &followed(&[0; 64]), None).unlike(Unlike::Lenient, HELLO),
        coded("a line break after gzip", "gzip", &followed(b"\r\n"), None)
            .unlike(Unlike::Lenient, HELLO),
        coded("text after gzip", "gzip", &followed(b"x"), None),
        coded("text as gzip", "gzip", BODY.as_bytes(), None),
        coded("half of gzip", "gzip", &gzip[..20], None),
        coded("GZIP", "GZIP", gzip, HELLO),
        coded("identity and gzip", "identity, gzip", gzip, HELLO),
        coded("gzip and a comma", "gzip,", gzip, HELLO),
        coded("two members", "gzip", &followed(gzip), None)
            .unlike(Unlike::Lenient, Some((200, TWICE))),
        coded("gzip without its check", "gzip", &gzip[..gzip.len() - 8], HELLO)
            .unlike(Unlike::Cut, None),
        coded("gzip with half of its check", "gzip", &gzip[..gzip.len() - 3], HELLO)
            .unlike(Unlike::Cut, None),
        coded("deflate", "deflate", ZLIB, HELLO),
        coded("deflate without zlib", "deflate", &ZLIB[2..ZLIB.len() - 4], HELLO),
        coded("deflate cut off", "deflate", &ZLIB[..ZLIB.len() - 2], HELLO)
            .unlike(Unlike::Cut, None),
        coded("text after deflate", "deflate", &[ZLIB, b"x"].concat(), None),
        coded("zlib as gzip", "gzip", ZLIB, HELLO).unlike(Unlike::Unknown, None),
        coded("no coding", "", BODY.as_bytes(), HELLO),
        coded("identity", "identity", BODY.as_bytes(), HELLO),
        coded("none", "none", BODY.as_bytes(), HELLO),
        coded("a character set", "utf-8", BODY.as_bytes(), None).unlike(Unlike::Lenient, HELLO),
        coded("an unknown coding", "aws-chunked", BODY.as_bytes(), None)
            .unlike(Unlike::Lenient, HELLO),
    ];
    for coding in CODINGS {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\n");
        all.push(odd(coding, format!("{head}transfer-encoding: chunked"), "0\r\n\r\n", EMPTY));
        all.push(odd(coding, format!("{head}content-length: 0"), "", EMPTY));
        all.push(odd(coding, format!("{head}connection: close"), "", EMPTY));
    }
    all.push(odd(
        "two codings of nothing",
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip, br\r\ntransfer-encoding: chunked",
        "0\r\n\r\n",
        EMPTY,
    ));
    all
}

/// Answers every request with these octets, then closes.
async fn start(response: Vec<u8>) -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(&response).await;
            let _ = stream.shutdown().await;
            // The client closes first, so that nothing is lost to a reset.
            while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
        }
    });
    (port, tasks)
}

async fn outcome(client: &Client, url: &str) -> Result<(u16, Bytes), eyas_http::Error> {
    let fetch = async {
        let response = client.get(url).send().await?;
        let status = response.status().as_u16();
        Ok((status, response.bytes().await?))
    };
    tokio::time::timeout(SOON, fetch).await.expect("an end")
}

async fn check(all: Vec<Odd>) {
    let mut wrong = Vec::new();
    for odd in all {
        let (port, _server) = start(odd.response.clone()).await;
        let client = builder_for(&[port], &[]).build().expect("a client");
        let outcome = outcome(&client, &format!("http://127.0.0.1:{port}/")).await;
        let is_right = match (&outcome, odd.eyas) {
            (Ok((status, body)), Some((expected, text))) => {
                *status == expected && body == text.as_bytes()
            }
            (outcome, expected) => outcome.is_err() && expected.is_none(),
        };
        if !is_right || odd.unlike.is_some() == (odd.eyas == odd.curl) {
            wrong.push(format!("{}: {outcome:?}", odd.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn status_lines_are_read_as_curl_reads_them() {
    check(status_lines()).await;
}

#[tokio::test]
async fn fields_are_read_as_curl_reads_them() {
    check(fields()).await;
}

#[tokio::test]
async fn bodies_are_delimited_as_curl_delimits_them() {
    for rows in [lengths(), transfer_codings(), chunks(), more_chunks()] {
        check(rows).await;
    }
}

#[cfg(feature = "compression")]
#[tokio::test]
async fn codings_are_decoded_as_curl_decodes_them() {
    check(codings()).await;
}

#[tokio::test]
async fn an_empty_location_leads_nowhere() {
    for location in ["", " ", "\t "] {
        let response =
            format!("HTTP/1.1 302 F\r\nlocation:{location}\r\ncontent-length: 0\r\n\r\n");
        let (port, _server) = start(response.into()).await;
        let client = builder_for(&[port], &[]).build().expect("a client");
        let outcome = outcome(&client, &format!("http://127.0.0.1:{port}/")).await;
        assert_eq!(outcome.expect("a response"), (302, Bytes::new()), "{location:?}");
    }
}

#[tokio::test]
async fn a_folded_line_becomes_one_value() {
    let response =
        b"HTTP/1.1 200 OK\r\nx-a: one\r\n \t two\r\n\tthree\r\ncontent-length: 0\r\n\r\n";
    let (port, _server) = start(response.to_vec()).await;
    let client = builder_for(&[port], &[]).build().expect("a client");
    let response = client.get(format!("http://127.0.0.1:{port}/")).send().await.expect("a head");
    assert_eq!(response.headers()["x-a"], "one two three");
}

#[tokio::test]
async fn many_fields_are_taken_over_every_version_up_to_their_bytes() {
    let fields = |count: usize, length: usize| {
        (0..count).fold(Reply::text("x"), |reply, number| {
            reply.header(&format!("x-{number}"), "v".repeat(length))
        })
    };
    let site = Plan::default()
        .start(move |seen| match seen.target.ends_with("/many") {
            true => fields(500, 8),
            false => fields(300, 1024),
        })
        .await;
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let response = client.get(site.url("/many")).send().await.expect("a head");
        assert!(response.headers().len() >= 500);
        let large = client.get(site.url("/large")).send().await.map(drop);
        let error = large.expect_err("over 256 KiB");
        assert_eq!(error.kind(), Kind::Protocol, "{error}");
    }
}

/// RFC 5280 wants no CA:TRUE here, but whoever trusts exactly this certificate means it.
#[tokio::test]
async fn a_certificate_of_openssl_req_is_its_own_root_over_every_version() {
    let pem = include_bytes!("openssl-req-x509.pem");
    let identity = eyas::ServerIdentity::from_pem(pem, pem).expect("an identity");
    let site = Plan::default().identity(&identity).start(crate::site::echo_path).await;
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        let response = client.get(site.url("/x")).send().await.expect("trusted");
        assert_eq!(response.text().await.expect("a body"), "/x");
    }
}

#[cfg(feature = "compression")]
#[tokio::test]
async fn an_empty_body_is_empty_whatever_its_coding_over_every_version() {
    let site = Plan::default()
        .start(|seen| {
            let status = seen.target.rsplit('/').next().and_then(|text| text.parse().ok());
            let status = status.unwrap_or(200);
            Reply::status(status).header("content-encoding", "gzip")
        })
        .await;
    for versions in [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3] {
        let client = builder(&[&site]).versions(versions).build().expect("a client");
        for path in ["/", "/204", "/404"] {
            for method in [http::Method::GET, http::Method::HEAD, http::Method::POST] {
                let response = client.request(method.clone(), site.url(path)).send().await;
                let bytes = response.expect("a head").bytes().await.expect("a body");
                assert!(bytes.is_empty(), "{versions:?} {method} {path}");
            }
        }
        let conditional = client.get(site.url("/304")).header("if-none-match", "\"x\"");
        let bytes = conditional.send().await.expect("a head").bytes().await.expect("a body");
        assert!(bytes.is_empty());
    }
}
