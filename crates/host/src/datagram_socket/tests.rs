use std::net::{Ipv4Addr, SocketAddr};
use std::task::Waker;

use socket2::{Domain, Type};

use super::*;
use crate::test_namespace::{in_its_own, ip};

/// Much longer than anything takes on loopback.
const TIMEOUT: Duration = Duration::from_secs(30);

fn open() -> DatagramSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    DatagramSocket::new(socket).unwrap()
}

/// The discard port of this host, where nothing is listening.
fn unused_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 9).into()
}

#[tokio::test]
async fn an_error_report_loses_neither_sent_nor_received_data() {
    let (sender, receiver) = (open(), open());
    let to = receiver.get().local_addr().unwrap();
    for _ in 0..3 {
        sender.get().send_to(b"lost", &unused_port().into()).unwrap();
        sender.send(|| sender.get().send_to(b"hello", &to).map(drop)).unwrap();
        let mut buffer = [std::mem::MaybeUninit::uninit(); 16];
        let read =
            std::future::poll_fn(|cx| receiver.poll_read(cx, || receiver.get().recv(&mut buffer)));
        assert_eq!(tokio::time::timeout(TIMEOUT, read).await.unwrap().unwrap(), 5);
    }
}

#[tokio::test]
async fn a_reader_is_woken_by_data_after_an_error_report() {
    let sender = open();
    sender.get().send_to(b"lost", &unused_port().into()).unwrap();
    let mut reports = Vec::new();
    let read = sender.reports(8, |report| reports.push(report));
    tokio::time::timeout(TIMEOUT, read).await.unwrap().unwrap();
    assert_eq!(reports.len(), 1);
    let own_address = sender.get().local_addr().unwrap();
    sender.send(|| sender.get().send_to(b"hello", &own_address).map(drop)).unwrap();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 16];
    let read = std::future::poll_fn(|cx| sender.poll_read(cx, || sender.get().recv(&mut buffer)));
    assert_eq!(tokio::time::timeout(TIMEOUT, read).await.unwrap().unwrap(), 5);
}

/// Fills the socket with packets that wait for a neighbour that never responds.
fn fill(socket: &DatagramSocket) {
    let unreachable = SocketAddr::from(([192, 0, 2, 9], 9)).into();
    let full = loop {
        if let Err(error) = socket.get().send_to(&[0; 1000], &unreachable) {
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
        let sender = DatagramSocket::new(socket).unwrap();
        sender.get().send_to(b"lost", &unused_port().into()).unwrap();
        tokio::time::timeout(TIMEOUT, sender.reports(8, drop)).await.unwrap().unwrap();
        fill(&sender);
        let mut writable = std::pin::pin!(sender.writable());
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(writable.as_mut().poll(&mut cx).is_pending(), "there is no room");
            // Let the runtime poll its sockets.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The kernel gives up on the neighbour.
        tokio::time::timeout(TIMEOUT, writable).await.unwrap().unwrap();
        sender.send(|| sender.get().send_to(b"hello", &unused_port().into()).map(drop)).unwrap();
    }
}
