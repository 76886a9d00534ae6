//! reqwest: every round has its own client, and so a new connection and a new TLS session.
//!
//! Each line `MODE URL` is answered with milliseconds, or with `error` and the reason. Addresses are arguments, so that
//! the time excludes DNS lookups: `rival-reqwest AUTHORITY.pem [HOST:PORT:ADDRESS,ADDRESS]...`

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use reqwest::{Certificate, Client, Version};
use tokio::io::{AsyncBufReadExt, BufReader};

const LIMIT: Duration = Duration::from_secs(20);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The configuration of all clients.
struct Shared {
    authority: Certificate,
    /// The addresses of each host; reqwest takes the port from the URL.
    addresses: Vec<(String, Vec<SocketAddr>)>,
}

/// Returns a new client.
fn client(mode: &str, shared: &Shared) -> Result<(Client, Version), Failure> {
    let authority = shared.authority.clone();
    let mut builder = Client::builder().tls_certs_only([authority]).no_proxy().timeout(LIMIT);
    for (host, addresses) in &shared.addresses {
        builder = builder.resolve_to_addrs(host, addresses);
    }
    Ok(match mode {
        "h1" => (builder.http1_only().build()?, Version::HTTP_11),
        "h2" => (builder.build()?, Version::HTTP_2),
        "h3" => (builder.http3_prior_knowledge().build()?, Version::HTTP_3),
        _ => return Err(format!("unknown mode {mode}").into()),
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
    let response = request.send().await?;
    let elapsed = started.elapsed();
    if response.version() != version {
        return Err(format!("the response is of version {:?}", response.version()).into());
    }
    response.error_for_status()?.bytes().await?;
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
    let addresses = arguments.map(|argument| parse(&argument)).collect::<Result<_, _>>()?;
    let shared = Shared { authority, addresses };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match round(&line, &shared).await {
            Ok(elapsed) => println!("{:.4}", elapsed.as_secs_f64() * 1000.0),
            Err(error) => println!("error {}", with_causes(error.as_ref())),
        }
    }
    Ok(())
}

/// Parses `HOST:PORT:ADDRESS,ADDRESS`.
fn parse(argument: &str) -> Result<(String, Vec<SocketAddr>), Failure> {
    let mut parts = argument.splitn(3, ':');
    let host = parts.next().unwrap_or_default().to_owned();
    let addresses = parts.nth(1).ok_or("addresses must be HOST:PORT:ADDRESS,ADDRESS")?;
    let addresses = addresses
        .split(',')
        .map(|address| address.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0)))
        .collect::<Result<_, _>>()?;
    Ok((host, addresses))
}

/// Formats an error and its causes in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
