//! A race and its reasons: what is to be tried, what won and why, what failed before.
//!
//! `cargo run -p eyas --example race -- www.example.org`

use std::error::Error;
use std::fmt::Write;

use eyas::{Endpoint, Host, Target};

pub(crate) async fn explained(
    endpoint: &Endpoint,
    target: Target,
) -> Result<String, Box<dyn Error>> {
    let mut told = String::new();
    let preconnection = endpoint.preconnection(target);
    for entry in preconnection.plan().await.entries {
        let (candidate, delay) = (entry.candidate, entry.delay);
        writeln!(told, "plan: {} {} after {delay:?}", candidate.transport, candidate.address)?;
    }
    let connection = preconnection.connect().await?;
    let info = connection.info();
    for (candidate, failure) in &info.failed {
        writeln!(told, "failed: {} {}: {failure}", candidate.transport, candidate.address)?;
    }
    writeln!(told, "won: {} {}", info.transport, info.remote)?;
    for reason in &info.reasons {
        writeln!(told, "because: {reason}")?;
    }
    Ok(told)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = std::env::args().nth(1).ok_or("which host?")?;
    let endpoint = Endpoint::builder().build()?;
    print!("{}", explained(&endpoint, Target::https(Host::parse(&host)?, 443)).await?);
    Ok(())
}
