use std::net::{Ipv4Addr, SocketAddr};
use std::task::Waker;

use socket2::{Domain, Type};

use super::*;
use crate::test_namespace::{in_its_own, ip};

/// Far longer than anything on loopback takes.
const SOON: Duration = Duration::from_secs(30);

fn open() -> DatagramSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    DatagramSocket::new(socket).unwrap()
}

/// The discard port of this host, where nobody listens.
fn nobody() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 9).into()
}

#[tokio::test]
async fn an_error_report_loses_neither_sent_nor_received_data() {
    let (here, there) = (open(), open());
    let to = there.get().local_addr().unwrap();
    for _ in 0..3 {
        here.get().send_to(b"lost", &nobody().into()).unwrap();
        here.send(|| here.get().send_to(b"hello", &to).map(drop)).unwrap();
        let mut said = [std::mem::MaybeUninit::uninit(); 16];
        let read = std::future::poll_fn(|cx| there.poll_read(cx, || there.get().recv(&mut said)));
        assert_eq!(tokio::time::timeout(SOON, read).await.unwrap().unwrap(), 5);
    }
}

#[tokio::test]
async fn a_reader_is_woken_by_data_after_an_error_report() {
    let here = open();
    here.get().send_to(b"lost", &nobody().into()).unwrap();
    let mut reports = Vec::new();
    let read = here.reports(8, |report| reports.push(report));
    tokio::time::timeout(SOON, read).await.unwrap().unwrap();
    assert_eq!(reports.len(), 1);
    let me = here.get().local_addr().unwrap();
    here.send(|| here.get().send_to(b"hello", &me).map(drop)).unwrap();
    let mut said = [std::mem::MaybeUninit::uninit(); 16];
    let read = std::future::poll_fn(|cx| here.poll_read(cx, || here.get().recv(&mut said)));
    assert_eq!(tokio::time::timeout(SOON, read).await.unwrap().unwrap(), 5);
}

/// Fills the socket with packets that wait for a neighbour who never answers.
fn fill(socket: &DatagramSocket) {
    let nobody = SocketAddr::from(([192, 0, 2, 9], 9)).into();
    let full = loop {
        if let Err(error) = socket.get().send_to(&[0; 1000], &nobody) {
            break error;
        }
    };
    assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_writer_after_an_error_report_wakes_only_when_there_is_room() {
    let test = "datagram_socket::tests::\
                a_writer_after_an_error_report_wakes_only_when_there_is_room";
    in_its_own(test, || {
        ip("link set lo up");
        ip("link add name here type veth peer name there");
        ip("address add 192.0.2.1/24 dev here");
        ip("link set here up");
        ip("link set there up");
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(wait());
    });
    async fn wait() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.set_send_buffer_size(4096).unwrap();
        let here = DatagramSocket::new(socket).unwrap();
        here.get().send_to(b"lost", &nobody().into()).unwrap();
        tokio::time::timeout(SOON, here.reports(8, drop)).await.unwrap().unwrap();
        fill(&here);
        let mut room = std::pin::pin!(here.writable());
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(room.as_mut().poll(&mut cx).is_pending(), "there is no room");
            // Lets the runtime look at its sockets.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The kernel gives the neighbour up.
        tokio::time::timeout(SOON, room).await.unwrap().unwrap();
        here.send(|| here.get().send_to(b"hello", &nobody().into()).map(drop)).unwrap();
    }
}
