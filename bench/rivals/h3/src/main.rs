//! Requests over HTTP/3 between two processes, by one of three stacks over the same quinn: `eyas` is eyas-h3 with the
//! driver of eyas-http, `h3` is h3 with h3-quinn, `quic` sends the same content without HTTP.
//!
//! `rival-h3 STACK server CERTIFICATE.pem` writes a certificate, and answers the line `port` with its port.
//! `rival-h3 STACK client CERTIFICATE.pem PORT` answers each line of standard input:
//!
//! | line | answer |
//! | --- | --- |
//! | `get N` | N, after as many requests one after another over one connection |
//! | `wire N` | bytes in UDP datagrams, both ways, of as many requests |
//! | `down BYTES`, `up BYTES` | milliseconds of a response or a request of this size |
//! | `hold N` | N, once as many more connections are open and have each answered once |
//! | `end` | none: it ends, as the server does |

mod message;
mod over_eyas;
mod over_h3;
mod over_quic;
mod tls;

// The modules themselves, not copies of them.
#[path = "../../../../crates/http/src/http3"]
mod http3 {
    mod client;
    mod connection;
    mod error;
    mod message;
    mod over_quinn;
    mod receiving;
    mod sending;
    mod server;
    mod side_streams;
    mod transport;

    pub(crate) use self::client::ClientConnection;
    pub(crate) use self::connection::ConnectionOptions;
    pub(crate) use self::error::StreamError;
    pub(crate) use self::receiving::Receiving;
    pub(crate) use self::sending::Sending;
    pub(crate) use self::server::{RequestStream, ServerConnection, response_content};
}

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use quinn::Endpoint;
use tokio::io::{AsyncBufReadExt, BufReader};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a client asks for.
#[derive(Clone, Copy)]
enum Transfer {
    /// The usual few bytes.
    Small,
    /// A response of this size.
    Down(u64),
    /// A request of this size, and the usual response.
    Up(u64),
}

#[derive(Clone, Copy)]
enum Stack {
    Eyas,
    H3,
    Quic,
}

enum Client {
    Eyas(over_eyas::Client),
    H3(over_h3::Client),
    Quic(over_quic::Client),
}

impl Client {
    async fn new(stack: Stack, quic: quinn::Connection) -> Result<Self, Failure> {
        Ok(match stack {
            Stack::Eyas => Self::Eyas(over_eyas::Client::new(quic)),
            Stack::H3 => Self::H3(over_h3::Client::new(quic).await?),
            Stack::Quic => Self::Quic(over_quic::Client::new(quic)),
        })
    }

    /// Makes a request and returns the length of the content of the response.
    async fn exchange(&mut self, transfer: Transfer) -> Result<u64, Failure> {
        match self {
            Self::Eyas(client) => client.exchange(transfer).await,
            Self::H3(client) => client.exchange(transfer).await,
            Self::Quic(client) => client.exchange(transfer).await,
        }
    }

    async fn check(&mut self, transfer: Transfer) -> Result<(), Failure> {
        let expected = match transfer {
            Transfer::Down(bytes) => bytes,
            Transfer::Small | Transfer::Up(_) => message::SMALL.len() as u64,
        };
        let length = self.exchange(transfer).await?;
        (length == expected).then_some(()).ok_or_else(|| format!("{length} bytes came").into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (stack, rest) = words.split_first().ok_or("rival-h3 STACK server|client …")?;
    let stack = match *stack {
        "eyas" => Stack::Eyas,
        "h3" => Stack::H3,
        "quic" => Stack::Quic,
        _ => return Err("STACK is eyas, h3 or quic".into()),
    };
    // In a task, as in most programs: the runtime's root future is woken through the kernel.
    match *rest {
        ["server", certificate] => {
            let endpoint = tls::server(certificate)?;
            let port = endpoint.local_addr()?.port();
            tokio::spawn(serve(stack, endpoint));
            let mut lines = BufReader::new(tokio::io::stdin()).lines();
            while let Some("port") = lines.next_line().await?.as_deref() {
                println!("{port}");
            }
            Ok(())
        }
        ["client", certificate, port] => {
            let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?));
            let endpoint = tls::client(certificate)?;
            tokio::spawn(async move { answer_all(stack, endpoint, server).await }).await?
        }
        _ => Err("rival-h3 STACK server CERTIFICATE | client CERTIFICATE PORT".into()),
    }
}

async fn serve(stack: Stack, endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        // A task that could serve by each stack would be as large as that of the largest.
        match stack {
            Stack::Eyas => tokio::spawn(async move { over_eyas::serve(incoming.await?).await }),
            Stack::H3 => tokio::spawn(async move { over_h3::serve(incoming.await?).await }),
            Stack::Quic => tokio::spawn(async move { over_quic::serve(incoming.await?).await }),
        };
    }
}

async fn answer_all(stack: Stack, endpoint: Endpoint, server: SocketAddr) -> Result<(), Failure> {
    let quic = endpoint.connect(server, "localhost")?.await?;
    let mut client = Client::new(stack, quic.clone()).await?;
    // Settings, tables, windows: what comes once.
    for _ in 0..20 {
        client.check(Transfer::Small).await?;
    }
    let mut held = Vec::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if line == "end" {
            break;
        }
        let (command, number) = line.split_once(' ').ok_or("a line is a command and a number")?;
        let number: u64 = number.parse()?;
        let started = Instant::now();
        let elapsed = || started.elapsed().as_secs_f64() * 1000.0;
        match command {
            "get" => {
                for _ in 0..number {
                    client.check(Transfer::Small).await?;
                }
                println!("{number}");
            }
            "wire" => {
                let carried = || {
                    let stats = quic.stats();
                    stats.udp_tx.bytes + stats.udp_rx.bytes
                };
                let before = carried();
                for _ in 0..number {
                    client.check(Transfer::Small).await?;
                }
                println!("{}", carried() - before);
            }
            "down" => {
                client.check(Transfer::Down(number)).await?;
                println!("{:.4}", elapsed());
            }
            "up" => {
                client.check(Transfer::Up(number)).await?;
                println!("{:.4}", elapsed());
            }
            "hold" => {
                for _ in 0..number {
                    let quic = endpoint.connect(server, "localhost")?.await?;
                    let mut client = Client::new(stack, quic).await?;
                    client.check(Transfer::Small).await?;
                    held.push(client);
                }
                println!("{number}");
            }
            _ => return Err(format!("no such command: {command}").into()),
        }
    }
    Ok(())
}
