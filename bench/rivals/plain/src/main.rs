//! Plain hyper over TCP and TLS, and plain quinn with h3: no race, no pool, no memory, one address. It is the baseline
//! for the overhead of eyas. The package `../noq` builds the same source with noq as quinn.
//!
//! | line on standard input | answer |
//! | --- | --- |
//! | `MODE URL` | milliseconds to the head of the response over a new connection |
//! | `many MODE N URL` | milliseconds for N such rounds, one after another; `*` in the URL is the number |
//! | `hold MODE N URL` | opens N connections, sends a request on each and keeps them; `*` as above |
//! | `drop` | closes them |
//!
//! Every name resolves to 127.0.0.1.

/// That of eyas, so that connections of both cost the same cryptography.
#[path = "../../../../crates/eyas/src/security/key_exchange.rs"]
#[expect(dead_code, reason = "eyas also wants to know which exchange it was")]
mod key_exchange;
mod stream;
mod udp;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Uri};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncBufReadExt, BufReader};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The common state of all connections.
struct Shared {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    quic: quinn::Endpoint,
}

/// An idle connection.
enum Held {
    Http1(stream::Http1),
    Http2(stream::Http2),
    Http3(udp::Http3),
}

fn tls_config(roots: &RootCertStore, alpn: &[u8]) -> Result<ClientConfig, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(key_exchange::crypto_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

impl Shared {
    fn new(authority: &str) -> Result<Self, Failure> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authority)? {
            roots.add(certificate?)?;
        }
        let http3 = quinn::crypto::rustls::QuicClientConfig::try_from(tls_config(&roots, b"h3")?)?;
        #[allow(unused_mut, reason = "needed with quinn, but not with noq")]
        let mut quic = quinn::Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
        quic.set_default_client_config(quinn::ClientConfig::new(Arc::new(http3)));
        Ok(Self {
            http1: Arc::new(tls_config(&roots, b"http/1.1")?),
            http2: Arc::new(tls_config(&roots, b"h2")?),
            quic,
        })
    }

    /// Sends a request over a new connection; returns the time to the head of the response, and the connection.
    async fn fetch(&self, mode: &str, url: &str) -> Result<(Duration, Held), Failure> {
        let uri: Uri = url.parse()?;
        let host = uri.host().ok_or("no host")?.to_owned();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, uri.port_u16().unwrap_or(443)));
        let started = Instant::now();
        Ok(match mode {
            "h1" => {
                let mut connection = stream::http1(&self.http1, address, host).await?;
                let path = uri.path();
                let authority = uri.authority().ok_or("no authority")?.as_str();
                let request = Request::get(path).header("host", authority);
                let response = connection.send_request(request.body(stream::EMPTY)?).await?;
                let elapsed = started.elapsed();
                stream::read(response).await?;
                (elapsed, Held::Http1(connection))
            }
            "h2" => {
                let mut connection = stream::http2(&self.http2, address, host).await?;
                let request = Request::get(uri).body(stream::EMPTY)?;
                let response = connection.send_request(request).await?;
                let elapsed = started.elapsed();
                stream::read(response).await?;
                (elapsed, Held::Http2(connection))
            }
            "h3" => {
                let mut connection = udp::http3(&self.quic, address, &host).await?;
                let mut response = connection.send(Request::get(uri).body(())?).await?;
                let elapsed = started.elapsed();
                udp::read(&mut response).await?;
                (elapsed, Held::Http3(connection))
            }
            _ => return Err(format!("unknown mode {mode}").into()),
        })
    }

    async fn answer(&self, line: &str, held: &mut Vec<Held>) -> Result<String, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["many", mode, count, url] => {
                let started = Instant::now();
                for number in 0..count.parse::<usize>()? {
                    self.fetch(mode, &numbered(url, number)).await?;
                }
                Ok(format!("{:.4}", started.elapsed().as_secs_f64() * 1000.0))
            }
            ["hold", mode, count, url] => {
                for number in 0..count.parse::<usize>()? {
                    held.push(self.fetch(mode, &numbered(url, number)).await?.1);
                }
                Ok(held.len().to_string())
            }
            ["drop"] => {
                for connection in held.drain(..) {
                    connection.close();
                }
                Ok("0".to_owned())
            }
            [mode, url] => {
                let (elapsed, _) = self.fetch(mode, url).await?;
                Ok(format!("{:.4}", elapsed.as_secs_f64() * 1000.0))
            }
            _ => Err("invalid line".into()),
        }
    }
}

fn numbered(url: &str, number: usize) -> String {
    url.replace('*', &number.to_string())
}

impl Held {
    /// Closes the connection, gracefully if the protocol supports it.
    fn close(self) {
        match self {
            Self::Http1(connection) => drop(connection),
            Self::Http2(connection) => drop(connection),
            Self::Http3(connection) => connection.close(),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // In a task, as in most programs: the runtime's root future is woken through the kernel.
    tokio::spawn(serve()).await?
}

async fn serve() -> Result<(), Failure> {
    let authority = std::env::args().nth(1).ok_or("usage: rival-plain AUTHORITY.pem")?;
    let shared = Shared::new(&authority)?;
    let mut held = Vec::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match shared.answer(&line, &mut held).await {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("error {error}"),
        }
    }
    Ok(())
}
