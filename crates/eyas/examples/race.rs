//! A race and its reasons: what is planned, what won and why, and what failed before.
//!
//! `cargo run -p eyas --example race -- www.example.org`

use std::error::Error;
use std::fmt::Write;

use eyas::{Endpoint, Target, TargetHost};

pub(crate) async fn explain(endpoint: &Endpoint, target: Target) -> Result<String, Box<dyn Error>> {
    let mut reported = String::new();
    let preconnection = endpoint.preconnection(target);
    for entry in preconnection.plan().await.entries {
        let (candidate, delay) = (entry.candidate, entry.delay);
        writeln!(reported, "plan: {} {} after {delay:?}", candidate.transport, candidate.address)?;
    }
    let connection = preconnection.connect().await?;
    let info = connection.info();
    for (candidate, failure) in &info.failed {
        writeln!(reported, "failed: {} {}: {failure}", candidate.transport, candidate.address)?;
    }
    writeln!(reported, "won: {} {}", info.transport, info.remote)?;
    for reason in &info.reasons {
        writeln!(reported, "because: {reason}")?;
    }
    Ok(reported)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = std::env::args().nth(1).ok_or("which host?")?;
    let endpoint = Endpoint::builder().build()?;
    print!("{}", explain(&endpoint, Target::https(TargetHost::parse(&host)?, 443)).await?);
    Ok(())
}
