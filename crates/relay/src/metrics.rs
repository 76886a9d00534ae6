//! What the proxy does, in the text format of Prometheus (version 0.0.4), at an address of its own.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use eyas::sockets::{self, StreamProtocol, Wanted};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::handshake::{Protocol, Refusal};
use crate::report::Ending;
use crate::server::{ProxyError, Shared};
use crate::stats::Stats;

/// For a request and its answer.
const TIME: Duration = Duration::from_secs(5);
/// Bytes of a request.
const MAX_REQUEST: usize = 8 * 1024;
/// Requests answered at once; others wait.
const AT_ONCE: usize = 16;
/// After a failed accept nothing is accepted for this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Tells at this address until the proxy stops. Gives the address, with the port that was chosen.
pub(crate) fn start(address: SocketAddr, shared: &Arc<Shared>) -> Result<SocketAddr, ProxyError> {
    let wanted = Wanted { stream: Some(StreamProtocol::Tcp), udp: false };
    let bound = sockets::bind(&[address], wanted)?;
    let at = bound.first().map_or(address, |one| one.address);
    for listener in bound.into_iter().filter_map(|one| one.tcp) {
        shared.tasks.spawn(accept(listener, Arc::clone(shared)));
    }
    Ok(at)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let accepted = tokio::select! {
            () = shared.drain.cancelled() => return,
            accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            } => accepted,
        };
        let (place, Ok((tcp, _))) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (of_task, drain) = (Arc::clone(&shared), shared.drain.clone());
        shared.tasks.spawn(async move {
            tokio::select! {
                () = drain.cancelled() => {}
                // Who hangs up before the answer is told nothing.
                _ = timeout(TIME, answer(tcp, &of_task)) => {}
            }
            drop(place);
        });
    }
}

async fn answer(mut tcp: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut request = Vec::with_capacity(1024);
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        if request.len() > MAX_REQUEST || tcp.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, text) = match (method, path) {
        (b"GET" | b"HEAD", b"/metrics") => ("200 OK", render(&shared.stats())),
        (_, b"/metrics") => ("405 Method Not Allowed", "only GET\n".to_owned()),
        _ => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    tcp.write_all(head.as_bytes()).await?;
    if method != b"HEAD" {
        tcp.write_all(text.as_bytes()).await?;
    }
    tcp.shutdown().await
}

/// The page, one family of metrics after the other. Writing to a string does not fail.
fn render(stats: &Stats) -> String {
    let mut page = String::new();
    let mut family = |name: &str, kind: &str, help: &str, rows: &[(String, u64)]| {
        let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (label, value) in rows {
            let _ = writeln!(page, "{name}{label} {value}");
        }
    };
    let one = |value: u64| [(String::new(), value)];
    let labelled = |label: &str, names: &[&str], values: &[u64]| -> Vec<(String, u64)> {
        let rows = names.iter().zip(values);
        rows.map(|(name, value)| (format!("{{{label}=\"{name}\"}}"), *value)).collect()
    };
    family("eyas_proxy_connections", "gauge", "Clients connected now.", &one(stats.open as u64));
    let help = "Clients accepted.";
    family("eyas_proxy_connections_accepted_total", "counter", help, &one(stats.accepted));
    let help = "Clients closed at once by a limit.";
    family("eyas_proxy_connections_refused_total", "counter", help, &one(stats.turned_away));
    let help = "Clients that have gone, by what they spoke.";
    let names = Protocol::ALL.map(Protocol::name);
    let rows = labelled("protocol", &names, &stats.protocols);
    family("eyas_proxy_clients_total", "counter", help, &rows);
    let help = "Clients that have gone, by how they ended.";
    let rows = labelled("end", &Ending::NAMES, &stats.endings);
    family("eyas_proxy_ended_total", "counter", help, &rows);
    let help = "Clients that got no connection, by the reason.";
    let rows = labelled("reason", &Refusal::NAMES, &stats.refusals);
    family("eyas_proxy_refused_total", "counter", help, &rows);
    let help = "Races won, by what decided them.";
    let won = [stats.won_by_transport, stats.won_by_first_byte];
    let rows = labelled("by", &["transport", "first-byte"], &won);
    family("eyas_proxy_races_won_total", "counter", help, &rows);
    let help = "Bytes passed on for clients that have gone.";
    let rows = labelled("direction", &["sent", "received"], &[stats.sent, stats.received]);
    family("eyas_proxy_bytes_total", "counter", help, &rows);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_described_and_every_row_has_a_value() {
        let page = render(&Stats { sent: 7, ..Stats::default() });
        assert!(page.contains("eyas_proxy_bytes_total{direction=\"sent\"} 7\n"), "{page}");
        let rows: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(rows.iter().all(|row| row.rsplit(' ').next().unwrap().parse::<u64>().is_ok()));
        assert_eq!(page.matches("# TYPE").count(), page.matches("# HELP").count());
    }
}
