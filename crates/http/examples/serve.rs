//! A server on a free port of this machine, until Enter is pressed.
//!
//! `cargo run -p eyas-http --example serve -- certificate.der` writes its certificate there, for
//! clients to trust.

use std::time::Duration;

use eyas_http::serve::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let running = Server::builder().start().await?;
    if let (Some(path), Some(identity)) = (std::env::args_os().nth(1), running.identity()) {
        std::fs::write(path, identity.certificate())?;
    }
    println!("https://localhost:{}/", running.local_addr().port());
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    println!("{:#?}", running.stats());
    running.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
