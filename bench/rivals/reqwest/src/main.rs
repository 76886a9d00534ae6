//! reqwest: a new client, and so a fresh connection and a fresh TLS session, in every round.
//!
//! Each line `MODE URL` is answered with milliseconds, or with `error` and the reason. Addresses
//! are told, so that the time holds no look-up:
//! `rival-reqwest AUTHORITY.pem [HOST:PORT:ADDRESS,ADDRESS]...`

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use reqwest::{Certificate, Client, Version};
use tokio::io::{AsyncBufReadExt, BufReader};

const LIMIT: Duration = Duration::from_secs(20);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What every client is made with.
struct Shared {
    authority: Certificate,
    /// Addresses by host; reqwest takes the port from the URL.
    told: Vec<(String, Vec<SocketAddr>)>,
}

/// A client that has spoken to nobody yet.
fn client(mode: &str, shared: &Shared) -> Result<(Client, Version), Failure> {
    let authority = shared.authority.clone();
    let mut builder = Client::builder().tls_certs_only([authority]).no_proxy().timeout(LIMIT);
    for (host, addresses) in &shared.told {
        builder = builder.resolve_to_addrs(host, addresses);
    }
    Ok(match mode {
        "h1" => (builder.http1_only().build()?, Version::HTTP_11),
        "h2" => (builder.build()?, Version::HTTP_2),
        "h3" => (builder.http3_prior_knowledge().build()?, Version::HTTP_3),
        _ => return Err(format!("reqwest does not know {mode}").into()),
    })
}

async fn round(line: &str, shared: &Shared) -> Result<Duration, Failure> {
    let (mode, url) = line.split_once(' ').ok_or("a line is MODE URL")?;
    let (client, version) = client(mode, shared)?;
    let mut request = client.get(url);
    if version == Version::HTTP_3 {
        request = request.version(version);
    }
    let started = Instant::now();
    let answer = request.send().await?;
    let elapsed = started.elapsed();
    if answer.version() != version {
        return Err(format!("the answer came over {:?}", answer.version()).into());
    }
    answer.error_for_status()?.bytes().await?;
    Ok(elapsed)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // In a task, as in most programs: the runtime's root future is woken through the kernel.
    tokio::spawn(serve()).await?
}

async fn serve() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1).collect::<Vec<_>>().into_iter();
    let path = arguments.next().ok_or("the first argument is AUTHORITY.pem")?;
    let authority = Certificate::from_pem(&std::fs::read(path)?)?;
    let told = arguments.map(|argument| told(&argument)).collect::<Result<_, _>>()?;
    let shared = Shared { authority, told };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match round(&line, &shared).await {
            Ok(elapsed) => println!("{:.4}", elapsed.as_secs_f64() * 1000.0),
            Err(error) => println!("error {}", said(error.as_ref())),
        }
    }
    Ok(())
}

/// Reads `HOST:PORT:ADDRESS,ADDRESS`.
fn told(argument: &str) -> Result<(String, Vec<SocketAddr>), Failure> {
    let mut parts = argument.splitn(3, ':');
    let host = parts.next().unwrap_or_default().to_owned();
    let addresses = parts.nth(1).ok_or("told addresses are HOST:PORT:ADDRESS,ADDRESS")?;
    let addresses = addresses
        .split(',')
        .map(|address| address.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0)))
        .collect::<Result<_, _>>()?;
    Ok((host, addresses))
}

/// The error with its causes, in one line.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
