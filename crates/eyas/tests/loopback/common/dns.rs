//! A minimal DNS server.

use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::sync::{Arc, Mutex};
#[cfg(target_os = "linux")]
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;

/// The response of the server to every query.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Response {
    /// NXDOMAIN.
    NoSuchName,
    /// NOERROR without a record.
    NoData,
    /// SERVFAIL.
    ServerFailure,
    /// No response.
    Nothing,
    /// Bytes after the header that are not a DNS message.
    Nonsense,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn serve(response: Response) -> Server {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut buffer = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            if let Some(answer) = answer(&buffer[..len], response) {
                let _ = socket.send_to(&answer, from).await;
            }
        }
    });
    Server { address, task }
}

/// Turns the header and question section of a query into a response (RFC 1035 §4.1).
fn answer(question: &[u8], response: Response) -> Option<Vec<u8>> {
    let rcode = match response {
        Response::NoSuchName => 3,
        Response::NoData => 0,
        Response::ServerFailure => 2,
        Response::Nothing => return None,
        Response::Nonsense => 0,
    };
    let name_end = 12 + question.get(12..)?.iter().position(|octet| *octet == 0)? + 1;
    let mut answer = question.get(..name_end + 4)?.to_vec();
    answer[2] = 0x81;
    answer[3] = 0x80 | rcode;
    // One question and no other sections.
    answer[4..12].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    if matches!(response, Response::Nonsense) {
        answer[7] = 1;
        answer.extend([0xc0, 0xff, 0xff]);
    }
    Some(answer)
}

/// The response to a query for A: this address.
#[cfg(feature = "encrypted-dns")]
pub(crate) fn answer_with_address(question: &[u8], address: [u8; 4]) -> Vec<u8> {
    let mut answer = answer(question, Response::NoData).unwrap();
    answer[7] = 1;
    // The question's name, type A, class IN, 60 s, 4 octets.
    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
    answer.extend(address);
    answer
}

/// The response to a query for HTTPS: one record with this data (RFC 9460 §2.2).
pub(crate) fn answer_with_service(question: &[u8], data: &[u8]) -> Vec<u8> {
    let mut answer = answer(question, Response::NoData).unwrap();
    answer[7] = 1;
    // The question's name, type HTTPS, class IN, 60 s.
    answer.extend([0xc0, 12, 0, 65, 0, 1, 0, 0, 0, 60]);
    answer.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
    answer.extend(data);
    answer
}

/// Truncates the response over UDP, and returns one HTTPS record over TCP.
pub(crate) async fn serve_over_tcp(data: &'static [u8]) -> Server {
    let (tcp, udp) = loop {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()).await {
            break (tcp, udp);
        }
    };
    let address = tcp.local_addr().unwrap();
    let truncates = async move {
        let mut buffer = [0; 1500];
        while let Ok((len, from)) = udp.recv_from(&mut buffer).await {
            let mut answer = answer(&buffer[..len], Response::NoData).unwrap();
            answer[2] |= 0x02;
            let _ = udp.send_to(&answer, from).await;
        }
    };
    let answers = async move {
        let (mut asking, _) = tcp.accept().await.unwrap();
        answer_stream(&mut asking, |question| answer_with_service(question, data)).await;
    };
    let task = tokio::spawn(async move {
        tokio::join!(truncates, answers);
    });
    Server { address, task }
}

/// Answers one query of a stream (RFC 1035 §4.2.2).
pub(crate) async fn answer_stream<S: AsyncRead + AsyncWrite + Unpin>(
    asking: &mut S,
    answer: impl FnOnce(&[u8]) -> Vec<u8>,
) {
    let len = asking.read_u16().await.unwrap();
    let mut question = vec![0; len.into()];
    asking.read_exact(&mut question).await.unwrap();
    let answer = answer(&question);
    asking.write_u16(answer.len().try_into().unwrap()).await.unwrap();
    asking.write_all(&answer).await.unwrap();
    asking.flush().await.unwrap();
    // The client closes.
    let _ = asking.read_u8().await;
}

/// A name server whose only name has one IPv4 address, with a time to live of a second.
#[cfg(target_os = "linux")]
pub(crate) struct ChangingName {
    pub(crate) address: SocketAddr,
    /// The address of the name, and how long each answer takes.
    now: Arc<Mutex<([u8; 4], Duration)>>,
    task: JoinHandle<()>,
}

#[cfg(target_os = "linux")]
impl ChangingName {
    pub(crate) async fn serve(first: [u8; 4]) -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let address = socket.local_addr().unwrap();
        let now = Arc::new(Mutex::new((first, Duration::ZERO)));
        let current = Arc::clone(&now);
        let task = tokio::spawn(async move {
            let mut buffer = [0; 1500];
            while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
                let (address, delay) = *current.lock().unwrap();
                let answer = answer_if_a(&buffer[..len], address);
                let socket = Arc::clone(&socket);
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    let _ = socket.send_to(&answer, from).await;
                });
            }
        });
        Self { address, now, task }
    }

    /// Gives the name another address. From now on answers take this long.
    pub(crate) fn change(&self, address: [u8; 4], delay: Duration) {
        *self.now.lock().unwrap() = (address, delay);
    }
}

#[cfg(target_os = "linux")]
impl Drop for ChangingName {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The response to a query for A: this address. There are no other records.
#[cfg(target_os = "linux")]
fn answer_if_a(question: &[u8], address: [u8; 4]) -> Vec<u8> {
    let mut answer = answer(question, Response::NoData).unwrap();
    if answer[answer.len() - 4..answer.len() - 2] == [0, 1] {
        answer[7] = 1;
        // The question's name, type A, class IN, 1 s, 4 octets.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        answer.extend(address);
    }
    answer
}
