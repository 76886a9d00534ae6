//! A DNS server of a few lines.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;

/// What the server says to every question.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Says {
    /// NXDOMAIN.
    NoSuchName,
    /// NOERROR without a record.
    NoData,
    /// SERVFAIL.
    ServerFailure,
    /// Nothing.
    Nothing,
    /// Octets that are no DNS message after the header.
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

pub(crate) async fn serve(says: Says) -> Server {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut buffer = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            if let Some(answer) = answer(&buffer[..len], says) {
                let _ = socket.send_to(&answer, from).await;
            }
        }
    });
    Server { address, task }
}

/// The question's header and question section, turned into an answer (RFC 1035 §4.1).
fn answer(question: &[u8], says: Says) -> Option<Vec<u8>> {
    let rcode = match says {
        Says::NoSuchName => 3,
        Says::NoData => 0,
        Says::ServerFailure => 2,
        Says::Nothing => return None,
        Says::Nonsense => 0,
    };
    let name_end = 12 + question.get(12..)?.iter().position(|octet| *octet == 0)? + 1;
    let mut answer = question.get(..name_end + 4)?.to_vec();
    answer[2] = 0x81;
    answer[3] = 0x80 | rcode;
    // One question, and nothing else.
    answer[4..12].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    if matches!(says, Says::Nonsense) {
        answer[7] = 1;
        answer.extend([0xc0, 0xff, 0xff]);
    }
    Some(answer)
}

/// The answer to a question for A: this address.
#[cfg(feature = "encrypted-dns")]
pub(crate) fn answer_with_address(question: &[u8], address: [u8; 4]) -> Vec<u8> {
    let mut answer = answer(question, Says::NoData).unwrap();
    answer[7] = 1;
    // The question's name, type A, class IN, 60 s, 4 octets.
    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
    answer.extend(address);
    answer
}

/// The answer to a question for HTTPS: one record of these data (RFC 9460 §2.2).
pub(crate) fn answer_with_service(question: &[u8], data: &[u8]) -> Vec<u8> {
    let mut answer = answer(question, Says::NoData).unwrap();
    answer[7] = 1;
    // The question's name, type HTTPS, class IN, 60 s.
    answer.extend([0xc0, 12, 0, 65, 0, 1, 0, 0, 0, 60]);
    answer.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
    answer.extend(data);
    answer
}

/// Says over UDP that the answer does not fit, and over TCP that it is one HTTPS record.
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
            let mut answer = answer(&buffer[..len], Says::NoData).unwrap();
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

/// Answers one question of a stream (RFC 1035 §4.2.2).
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
    // The asking side closes.
    let _ = asking.read_u8().await;
}
