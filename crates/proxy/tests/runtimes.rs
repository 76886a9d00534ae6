//! A proxy whose clients are served by several runtimes.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use eyas::Endpoint;
use eyas_proxy::Proxy;
use tokio::runtime::Builder;

/// Long enough for anything here; what takes longer has hung.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Clients of a proxy, the first of whose runtimes has no time for them.
#[test]
fn a_runtime_that_is_free_serves_the_next_client() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a server");
    let port = server.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut client in server.incoming().flatten() {
            client.write_all(b"!").expect("writes");
        }
    });
    let busy = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let free = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("another");
    let running = {
        let _inside = busy.enter();
        let endpoint = Endpoint::builder().build().expect("an endpoint");
        Proxy::builder(endpoint).also_on([free.handle().clone()]).start().expect("a proxy")
    };
    for _ in 0..3 {
        let mut client = TcpStream::connect(running.local_addr()).expect("the proxy listens");
        client.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        client.write_all(&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1]).expect("writes");
        client.write_all(&port.to_be_bytes()).expect("writes");
        let mut answer = [0; 13];
        client.read_exact(&mut answer).expect("replies, and the server's byte");
        assert_eq!((answer[3], answer[12]), (0, b'!'));
    }
    assert_eq!(busy.block_on(running.shutdown()), 0);
}
