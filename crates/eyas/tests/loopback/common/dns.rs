//! A DNS server of a few lines.

use std::net::SocketAddr;

use tokio::net::UdpSocket;
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
