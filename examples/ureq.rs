//! ureq over a race: `cargo run -p eyas-examples --example ureq -- https://example.org/`

use std::error::Error;

use eyas::Endpoint;
use eyas_http::connector::Connector;
use ureq::Agent;

pub(crate) fn agent(endpoint: Endpoint) -> Result<Agent, Box<dyn Error>> {
    // The race connects directly, so ureq must not use a proxy from the environment.
    let config = Agent::config_builder().proxy(None).build();
    Ok(Connector::new(endpoint).into_ureq(config)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: ureq URL")?;
    let agent = agent(Endpoint::builder().build()?)?;
    println!("{}", agent.get(&url).call()?.body_mut().read_to_string()?);
    Ok(())
}
