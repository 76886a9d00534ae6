//! A name server: one address, and HTTPS records (RFC 9460) for certain names.
//!
//! Names under `records.` have HTTPS records, others have none; all of them resolve to the same
//! address.

use std::net::{IpAddr, SocketAddr};

use tokio::net::UdpSocket;

use super::server_kind::ServerKind;

/// The port of the name server, on the server's host.
pub(super) const PORT: u16 = 53;
/// The first label of names that have HTTPS records.
pub(super) const WITH_RECORDS: &str = "records";

/// Record types (RFC 1035 §3.2.2, RFC 9460 §14.1).
const A: u16 = 1;
const HTTPS: u16 = 65;
/// The length of a header (RFC 1035 §4.1.1).
const HEADER: usize = 12;

/// Answers queries until it is dropped; does not end by itself as long as the host has a free DNS
/// port.
pub(super) async fn serve(ip: IpAddr) {
    let Ok(socket) = UdpSocket::bind(SocketAddr::new(ip, PORT)).await else {
        return std::future::pending().await;
    };
    let mut buffer = [0; 512];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        if let Some(answer) = answer(&buffer[..length], ip) {
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

/// Returns the answer to a query with one question; `None` for anything else.
fn answer(query: &[u8], ip: IpAddr) -> Option<Vec<u8>> {
    let (labels, end) = labels(query)?;
    let question = query.get(HEADER..end.checked_add(4)?)?;
    let kind = u16::from_be_bytes([*query.get(end)?, *query.get(end + 1)?]);
    let record = match (kind, ip) {
        (A, IpAddr::V4(ip)) => Some(ip.octets().to_vec()),
        (HTTPS, _) => https(&labels),
        _ => None,
    };
    let mut answer = query.get(..2)?.to_vec();
    // An authoritative response; the recursion bit is copied; no error.
    answer.extend([0x84 | query.get(2)? & 1, 0]);
    answer.extend([0, 1, 0, u8::from(record.is_some()), 0, 0, 0, 0]);
    answer.extend(question);
    if let Some(record) = record {
        // The name of the question, the type, class IN, a time to live of one minute.
        answer.extend([0xc0, HEADER as u8]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 60]);
        answer.extend(u16::try_from(record.len()).ok()?.to_be_bytes());
        answer.extend(record);
    }
    Some(answer)
}

/// Returns the labels of the question's name, and the offset of its type.
fn labels(query: &[u8]) -> Option<(Vec<String>, usize)> {
    let mut labels = Vec::new();
    let mut at = HEADER;
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels, at));
        }
        let label = query.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
}

/// Returns the record of `_PORT._https.records.…`: the protocols of the server at that port.
fn https(labels: &[String]) -> Option<Vec<u8>> {
    let port: u16 = labels.first()?.strip_prefix('_')?.parse().ok()?;
    let kind = ServerKind::ALL.into_iter().find(|kind| kind.port() == port)?;
    if labels.get(2)? != WITH_RECORDS {
        return None;
    }
    let alpn: &[u8] = if kind.supports_http3() { b"\x02h3\x02h2" } else { b"\x02h2" };
    // Priority 1, the name without the port's labels, the parameters alpn and port. The target name
    // "." (the owner itself) would be another name to look up.
    let mut record = vec![0, 1];
    for label in &labels[2..] {
        record.push(u8::try_from(label.len()).ok()?);
        record.extend(label.as_bytes());
    }
    record.push(0);
    record.extend([0, 1, 0, alpn.len() as u8]);
    record.extend(alpn);
    record.extend([0, 3, 0, 2]);
    record.extend(port.to_be_bytes());
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut query = vec![7, 8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.push(label.len() as u8);
            query.extend(label.as_bytes());
        }
        query.push(0);
        query.extend(kind.to_be_bytes());
        query.extend([0, 1]);
        query
    }

    #[test]
    fn addresses_for_all_and_records_for_some() {
        let ip: IpAddr = "192.0.2.7".parse().unwrap();
        let address = answer(&query("server.test", A), ip).unwrap();
        assert!(address.ends_with(&[0, 4, 192, 0, 2, 7]) && address[..2] == [7, 8]);
        let none = answer(&query("_4431._https.server.test", HTTPS), ip).unwrap();
        assert_eq!(none[7], 0);
        let with = answer(&query("_4431._https.records.server.test", HTTPS), ip).unwrap();
        assert!(with[7] == 1 && with.ends_with(b"\0\x01\0\x06\x02h3\x02h2\0\x03\0\x02\x11\x4f"));
        let old = answer(&query("_4433._https.records.server.test", HTTPS), ip).unwrap();
        assert!(!old.windows(2).any(|two| two == b"h3"));
    }

    #[test]
    fn an_invalid_query_gets_no_answer() {
        let ip: IpAddr = "192.0.2.7".parse().unwrap();
        let whole = query("server.test", A);
        for end in 0..whole.len() {
            assert_eq!(answer(&whole[..end], ip), None, "{end}");
        }
    }
}
