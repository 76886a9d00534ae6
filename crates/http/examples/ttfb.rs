//! Measures the time to the head of a response, each over a fresh connection: the client of eyas
//! that `cargo eyas-bench http` compares with others.
//!
//! `ttfb [--key-exchange GROUP] AUTHORITY.pem [HOST:PORT:ADDRESS,ADDRESS]...` trusts only that authority, does not query
//! DNS for those hosts, and reads lines from standard input, which `bench/src/rival.rs`
//! describes; each is answered with a line, with `error` and the reason if it failed.
//!
//! With `--key-exchange X25519` nothing else is offered, with `X25519MLKEM768` the same as by default; a connection with
//! another is a failure.

use std::error::Error;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use eyas::rustls::NamedGroup;
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters, race::memory};
use eyas_http::{Client, PoolLimits, Proxy, Versions};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use tokio::io::{AsyncBufReadExt, BufReader};

type Failure = Box<dyn Error + Send + Sync>;

/// The maximum number of connections that `hold` keeps open.
const MAX_HELD: usize = 4096;

/// The configuration shared by all clients.
struct Shared {
    roots: Vec<CertificateDer<'static>>,
    resolver: Resolver,
    /// Has no memory.
    without_memory: Endpoint,
    /// Remembers the outcomes of earlier connections.
    with_memory: Endpoint,
    /// What connections must have.
    key_exchange: Option<NamedGroup>,
}

impl Shared {
    fn new(
        key_exchange: Option<NamedGroup>,
        authority: &str,
        overrides: impl Iterator<Item = String>,
    ) -> Result<Self, Failure> {
        let roots = CertificateDer::pem_file_iter(authority)?.collect::<Result<Vec<_>, _>>()?;
        let mut resolver = Resolver::system();
        for argument in overrides {
            let (host, port, addresses) = addresses(&argument)?;
            resolver = resolver.overriding(host, port, addresses);
        }
        let without_memory = endpoint(&roots, &resolver, key_exchange, MemoryStore::none())?;
        let memory = MemoryStore::in_memory(memory::MemoryConfig::default());
        let with_memory = endpoint(&roots, &resolver, key_exchange, memory)?;
        Ok(Self { roots, resolver, without_memory, with_memory, key_exchange })
    }

    /// Sends one request, returns the time to the head, and reads the rest.
    async fn get(&self, client: &Client, url: &str) -> Result<Duration, Failure> {
        let request = client.get(url);
        let started = Instant::now();
        let response = request.send().await?;
        let elapsed = started.elapsed();
        if response.status() != http::StatusCode::OK {
            return Err(format!("the status is {}", response.status()).into());
        }
        let negotiated = response.connection().key_exchange;
        if self.key_exchange.is_some_and(|wanted| negotiated != wanted.as_str()) {
            return Err(format!("the key exchange is {negotiated:?}").into());
        }
        response.bytes().await?;
        Ok(elapsed)
    }

    /// Returns a client without connections.
    fn client(&self, mode: &str) -> Result<Client, Failure> {
        let endpoint = if mode == "later" { &self.with_memory } else { &self.without_memory };
        client(endpoint, mode, PoolLimits::default())
    }

    /// Returns a client that resolves `*` in the host of a URL, for each number below `count`, to
    /// loopback.
    fn client_of_many(
        &self,
        mode: &str,
        url: &str,
        count: usize,
        limits: PoolLimits,
    ) -> Result<Client, Failure> {
        let url = url::Url::parse(&numbered(url, 0))?;
        let port = url.port_or_known_default().ok_or("the URL has no port")?;
        let (_, domain) = url.host_str().and_then(|host| host.split_once('.')).ok_or("no host")?;
        let mut resolver = self.resolver.clone();
        for number in 0..count {
            let address = IpAddr::from([127, 0, 0, 1]);
            resolver = resolver.overriding(&format!("c{number}.{domain}"), port, vec![address]);
        }
        let memory = MemoryStore::none();
        client(&endpoint(&self.roots, &resolver, self.key_exchange, memory)?, mode, limits)
    }

    /// Executes a line.
    async fn answer(&self, line: &str, held: &mut Vec<Client>) -> Result<String, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["many", mode, count, url] => {
                let count = count.parse()?;
                // A pool for one connection closes it when the next host needs one.
                let limits = PoolLimits { total: 1, ..PoolLimits::default() };
                let client = self.client_of_many(mode, url, count, limits)?;
                let started = Instant::now();
                for number in 0..count {
                    self.get(&client, &numbered(url, number)).await?;
                }
                Ok(milliseconds(started.elapsed()))
            }
            ["hold", mode, count, url] => {
                let count = count.parse()?;
                let limits = PoolLimits { total: MAX_HELD, ..PoolLimits::default() };
                let client = self.client_of_many(mode, url, count, limits)?;
                for number in 0..count {
                    self.get(&client, &numbered(url, number)).await?;
                }
                held.push(client);
                Ok(count.to_string())
            }
            ["drop"] => {
                held.clear();
                Ok("0".to_owned())
            }
            [mode, url] => self.get(&self.client(mode)?, url).await.map(milliseconds),
            _ => Err("unknown command".into()),
        }
    }
}

fn endpoint(
    roots: &[CertificateDer<'static>],
    resolver: &Resolver,
    key_exchange: Option<NamedGroup>,
    memory: MemoryStore,
) -> Result<Endpoint, Failure> {
    let groups = key_exchange.filter(|group| *group == NamedGroup::X25519);
    let security = SecurityParameters::platform()
        .with_roots(roots.iter().cloned())
        .without_resumption()
        .with_key_exchange_groups(groups);
    let builder = Endpoint::builder().security(security).resolver(resolver.clone());
    Ok(builder.memory(memory).build()?)
}

fn client(endpoint: &Endpoint, mode: &str, limits: PoolLimits) -> Result<Client, Failure> {
    let versions = match mode {
        "h1" => Versions::HTTP_1,
        "h2" => Versions::HTTP_2,
        "h3" => Versions::HTTP_3,
        "race" | "later" => Versions::ALL,
        _ => return Err(format!("there is no mode {mode}").into()),
    };
    let builder = Client::builder().endpoint(endpoint.clone()).versions(versions);
    Ok(builder.proxy(Proxy::none()).pool(limits).build()?)
}

/// Parses `HOST:PORT:ADDRESS,ADDRESS`.
fn addresses(argument: &str) -> Result<(&str, u16, Vec<IpAddr>), Failure> {
    let mut parts = argument.splitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(host), Some(port), Some(addresses)) => {
            let addresses = addresses.split(',').map(str::parse).collect::<Result<_, _>>()?;
            Ok((host, port.parse()?, addresses))
        }
        _ => Err(format!("{argument:?} is not HOST:PORT:ADDRESS,ADDRESS").into()),
    }
}

fn numbered(url: &str, number: usize) -> String {
    url.replace('*', &number.to_string())
}

fn milliseconds(time: Duration) -> String {
    format!("{:.4}", time.as_secs_f64() * 1000.0)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // In a task, as in most programs: the runtime's root future is woken through the kernel.
    tokio::spawn(serve()).await?
}

async fn serve() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1).collect::<Vec<_>>().into_iter();
    let mut first = arguments.next();
    let mut key_exchange = None;
    if first.as_deref() == Some("--key-exchange") {
        let name = arguments.next().ok_or("--key-exchange needs a GROUP")?;
        let known = [NamedGroup::X25519, NamedGroup::X25519MLKEM768];
        key_exchange = known.into_iter().find(|group| group.as_str() == Some(name.as_str()));
        key_exchange.ok_or_else(|| format!("{name} is neither X25519 nor X25519MLKEM768"))?;
        first = arguments.next();
    }
    let authority = first.ok_or("AUTHORITY.pem is missing")?;
    let shared = Shared::new(key_exchange, &authority, arguments)?;
    let mut held = Vec::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match shared.answer(&line, &mut held).await {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("error {}", with_causes(error.as_ref())),
        }
    }
    Ok(())
}

/// Formats an error with its causes in one line.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
