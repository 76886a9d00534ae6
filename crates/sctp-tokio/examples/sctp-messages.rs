//! Messages over SCTP inside UDP, on separate streams, over two paths at once.
//!
//! `cargo run -p eyas-sctp-tokio --example sctp-messages`
//!
//! Both ends are in this program, and the two networks are two pairs of loopback addresses.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use eyas_sctp_tokio::protocol::config::{AssociationConfig, MultipathConfig};
use eyas_sctp_tokio::protocol::identifier::StreamId;
use eyas_sctp_tokio::protocol::message::SendInfo;
use eyas_sctp_tokio::{
    SctpAssociation, SctpCarrier, SctpConnector, SctpListenParameters, SctpListener, SctpOverIp,
};

const SERVER: [&str; 2] = ["127.0.0.11", "127.0.0.12"];
const CLIENT: [&str; 2] = ["127.0.0.13", "127.0.0.14"];
const PORT: u16 = 5000;

fn addresses(texts: [&str; 2]) -> Result<Vec<IpAddr>, std::net::AddrParseError> {
    texts.iter().map(|text| text.parse()).collect()
}

/// New data on all paths, rather than on the primary one.
fn multipath() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.multipath = Some(MultipathConfig::default());
    config
}

pub(crate) fn listen() -> Result<SctpListener, Box<dyn Error>> {
    let addresses = addresses(SERVER)?;
    let mut parameters = SctpListenParameters::new((addresses[0], PORT).into());
    parameters.addresses = addresses.into_iter().map(|ip| (ip, PORT).into()).collect();
    // A free UDP port; 9899 is the one that peers expect. Without raw IP it needs no privilege.
    parameters.encapsulation_port = Some(0);
    parameters.over_ip = SctpOverIp::No;
    parameters.association = multipath();
    Ok(SctpListener::bind(&parameters)?)
}

pub(crate) async fn connect(udp: u16) -> Result<SctpAssociation, Box<dyn Error>> {
    let connector = SctpConnector::new(udp, multipath()).with_local_addresses(addresses(CLIENT)?);
    // One address is enough: the server announces the others in the handshake.
    let server = SocketAddr::new(SERVER[0].parse()?, PORT);
    Ok(connector.connect(SctpCarrier::Udp, server).await?)
}

/// A lost or late message on one stream does not delay the others.
pub(crate) async fn send(
    association: &SctpAssociation,
    messages: u16,
) -> Result<(), Box<dyn Error>> {
    for number in 0..messages {
        let info = SendInfo { stream: StreamId(number % 4), ..SendInfo::default() };
        association.send(&info, Bytes::from(format!("message {number}"))).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = listen()?;
    let udp = listener.encapsulation_port().ok_or("SCTP is not inside UDP")?;
    let (client, server) = tokio::join!(connect(udp), listener.accept());
    let client = client?;
    send(&client, 8).await?;
    for _ in 0..8 {
        let message = server.receive().await?.ok_or("it ended")?;
        println!("{}", String::from_utf8_lossy(&message.into_bytes()));
    }
    for path in client.paths() {
        println!("path to {}: {:?}", path.remote, path.state);
    }
    client.shutdown().await?;
    Ok(())
}
