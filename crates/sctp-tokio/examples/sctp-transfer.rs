//! The program that `cargo eyas-bench sctp` measures over UDP: one end of an association on
//! loopback.
//!
//! | arguments | action |
//! | --- | --- |
//! | `receive ADDRESS SIZE BYTES` | waits at that UDP port (prints `ready`) and receives messages |
//! | `send ADDRESS SIZE BYTES` | sends them, until all are acknowledged |
//! | `echo ADDRESS COUNT`, `ping ADDRESS COUNT` | messages of 64 bytes in both directions, one at a time |
//! | `associations COUNT` | sets up that many through one UDP socket at each end, both ends in this process; then each carries a message |
//!
//! The answer is one line of JSON.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_sctp_tokio::protocol::config::AssociationConfig;
use eyas_sctp_tokio::protocol::message::SendInfo;
use eyas_sctp_tokio::{
    SctpAssociation, SctpCarrier, SctpConnector, SctpListenParameters, SctpListener, SctpOverIp,
};
use rustix::time::{ClockId, clock_gettime};

/// The receive window and the send buffer, in bytes.
const WINDOW: usize = 4 << 20;
/// The SCTP port.
const PORT: u16 = 5000;
/// The size of an echoed message.
const ECHO_SIZE: usize = 64;
/// How long to wait for outstanding acknowledgements before exiting.
const LINGER: Duration = Duration::from_millis(500);

/// Wall clock and CPU time at the beginning of the measurement.
struct Start(Instant, Duration);

impl Start {
    fn now() -> Self {
        Self(Instant::now(), cpu())
    }

    fn print(&self, messages: u64, bytes: u64) {
        let (cpu, wall) = (cpu().saturating_sub(self.1), self.0.elapsed());
        let (cpu, wall) = (cpu.as_secs_f64(), wall.as_secs_f64());
        println!(
            "{{\"messages\": {messages}, \"bytes\": {bytes}, \"cpu\": {cpu:.6}, \
             \"wall\": {wall:.6}, \"memory\": 0}}"
        );
    }
}

/// CPU time of this process so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn config() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.send_buffer = WINDOW;
    config.receive_buffer = WINDOW;
    // Packets of 1,472 bytes, like the compared programs, although loopback allows larger ones.
    config.path_mtu_discovery = false;
    config
}

/// The association that a peer opens.
async fn accept(address: SocketAddr) -> Result<(SctpListener, SctpAssociation), Box<dyn Error>> {
    let mut parameters = SctpListenParameters::new(SocketAddr::new(address.ip(), PORT));
    parameters.encapsulation_port = Some(address.port());
    parameters.over_ip = SctpOverIp::No;
    parameters.association = config();
    let listener = SctpListener::bind(&parameters)?;
    println!("ready");
    let association = listener.accept().await;
    Ok((listener, association))
}

async fn receive(address: SocketAddr, size: usize, count: u64) -> Result<(), Box<dyn Error>> {
    let (_listener, association) = accept(address).await?;
    let mut start = Start::now();
    let (mut received, mut length) = (0, 0);
    while received < count {
        let part = association.receive().await?.ok_or("the peer has closed")?;
        length += part.len();
        if part.ends {
            if received == 0 {
                start = Start::now();
            }
            if std::mem::take(&mut length) != size {
                return Err("a message of another length".into());
            }
            received += 1;
        }
    }
    start.print(count, count * size as u64);
    tokio::time::sleep(LINGER).await;
    Ok(())
}

async fn connect(address: SocketAddr) -> Result<SctpAssociation, Box<dyn Error>> {
    let connector = SctpConnector::new(address.port(), config());
    let server = SocketAddr::new(address.ip(), PORT);
    Ok(connector.connect(SctpCarrier::Udp, server).await?)
}

async fn echo(address: SocketAddr, count: u64) -> Result<(), Box<dyn Error>> {
    let (_listener, association) = accept(address).await?;
    let start = Start::now();
    for _ in 0..count {
        let message = association.receive().await?.ok_or("the peer has closed")?;
        association.send(&SendInfo::default(), message.data.into_bytes()).await?;
    }
    start.print(count, count * ECHO_SIZE as u64);
    tokio::time::sleep(LINGER).await;
    Ok(())
}

async fn ping(address: SocketAddr, count: u64) -> Result<(), Box<dyn Error>> {
    let association = connect(address).await?;
    let message = Bytes::from(vec![0x5a; ECHO_SIZE]);
    let start = Start::now();
    for _ in 0..count {
        association.send(&SendInfo::default(), message.clone()).await?;
        association.receive().await?.ok_or("the peer has closed")?;
    }
    start.print(count, count * ECHO_SIZE as u64);
    Ok(())
}

async fn send(address: SocketAddr, size: usize, count: u64) -> Result<(), Box<dyn Error>> {
    let association = connect(address).await?;
    let message = Bytes::from(vec![0x5a; size]);
    let start = Start::now();
    for _ in 0..count {
        association.send(&SendInfo::default(), message.clone()).await?;
    }
    while association.status().is_some_and(|status| status.queued > 0) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    start.print(count, count * size as u64);
    Ok(())
}

/// Resident memory of this process, in bytes.
fn resident() -> Result<f64, Box<dyn Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = pages.split_whitespace().nth(1).ok_or("statm is short")?.parse()?;
    Ok(pages * rustix::param::page_size() as f64)
}

/// The number of concurrent handshakes.
const MAX_CONCURRENT: u64 = 32;

async fn associations(count: u64) -> Result<(), Box<dyn Error>> {
    let mut parameters = SctpListenParameters::new(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    parameters.encapsulation_port = Some(0);
    parameters.over_ip = SctpOverIp::No;
    let listener = SctpListener::bind(&parameters)?;
    let udp = listener.encapsulation_port().ok_or("the listener has no UDP port")?;
    let connector = SctpConnector::new(udp, AssociationConfig::default());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let connect = async || connector.connect(SctpCarrier::Udp, address).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The sockets, their buffers and the tables of the allocator are not counted.
    ours.push(connect().await?);
    theirs.push(listener.accept().await);
    let (before, start) = (resident()?, Start::now());
    while (ours.len() as u64) <= count {
        let now = MAX_CONCURRENT.min(count + 1 - ours.len() as u64);
        let opened = futures_util::future::join_all((0..now).map(|_| connect()));
        let accepted = async {
            for _ in 0..now {
                theirs.push(listener.accept().await);
            }
        };
        let (opened, ()) = tokio::join!(opened, accepted);
        for association in opened {
            ours.push(association?);
        }
    }
    let (wall, cpu) = (start.0.elapsed(), cpu().saturating_sub(start.1));
    for association in &ours {
        association.send(&SendInfo::default(), Bytes::from_static(&[0x5a; 64])).await?;
    }
    for association in &theirs {
        association.receive().await?.ok_or("the peer has closed")?;
    }
    let memory = (resident()? - before) / count as f64;
    println!(
        "{{\"messages\": {count}, \"bytes\": 0, \"cpu\": {:.6}, \"wall\": {:.6}, \
         \"memory\": {memory:.1}}}",
        cpu.as_secs_f64(),
        wall.as_secs_f64(),
    );
    // Ending them one by one would not measure anything.
    std::process::exit(0);
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["associations", count] => return associations(count.parse()?).await,
        ["echo", address, count] => return echo(address.parse()?, count.parse()?).await,
        ["ping", address, count] => return ping(address.parse()?, count.parse()?).await,
        _ => {}
    }
    let [what, address, size, bytes] = words.as_slice() else {
        return Err("receive or send ADDRESS SIZE BYTES; echo or ping ADDRESS COUNT; \
                    associations COUNT"
            .into());
    };
    let (size, bytes): (usize, u64) = (size.parse()?, bytes.parse()?);
    let count = bytes.div_ceil(size as u64);
    match *what {
        "receive" => receive(address.parse()?, size, count).await,
        "send" => send(address.parse()?, size, count).await,
        other => Err(format!("{other} is neither receive nor send").into()),
    }
}
