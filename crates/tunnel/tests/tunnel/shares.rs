//! Keys that open whatever they get, and another key that gets what it needs nevertheless.

use eyas::race::candidate::Transport;
use eyas::{KeyFingerprint, ServerIdentity};
use eyas_tunnel::forward::destination;
use eyas_tunnel::{ServerLimits, SessionLimits};
use eyas_tunnel::{ServerTunnel, TunnelError, reach};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{Stage, converse, echo, wait};

impl Stage {
    /// Restarts the server with these limits, and authorizes further keys.
    async fn with_limits(mut self, limits: ServerLimits, others: &[&ServerIdentity]) -> Self {
        self.stop().await;
        self.total_limits = limits;
        for other in others {
            let key = KeyFingerprint::from_certificate(other.certificate()).expect("a key");
            self.others.push_str(&format!("{key} other\n"));
        }
        self.start().await;
        self
    }

    /// Opens a session with this key.
    async fn tunnel_of(&self, key: &ServerIdentity) -> Result<ServerTunnel, TunnelError> {
        let endpoint = self.endpoint(key, &self.server);
        let (target, policy) = self.target(&[Transport::Tcp]);
        let (stream, _) = wait(reach(&endpoint, &target, &policy, None)).await?;
        wait(ServerTunnel::begin(stream, SessionLimits::default())).await
    }
}

fn identity() -> ServerIdentity {
    ServerIdentity::self_signed(["other.test"]).expect("an identity")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_takes_all_sessions_it_gets_leaves_some_for_others() {
    let (bob, eve) = (identity(), identity());
    let limits = ServerLimits { sessions: 6, channels: 100 };
    let stage = Stage::new("").await.with_limits(limits, &[&bob, &eve]).await;
    let ada = stage.client.clone();
    let to = destination(&format!("127.0.0.1:{}", echo().await)).expect("valid");
    let mut held = Vec::new();
    for (key, expected) in [(&ada, 3), (&bob, 2), (&eve, 2)] {
        for number in 0.. {
            match stage.tunnel_of(key).await {
                Ok(tunnel) => {
                    let stream = wait(tunnel.open(to.clone())).await.expect("a channel");
                    converse(stream, 1000).await;
                    held.push(tunnel);
                }
                Err(_) => {
                    assert_eq!(number, expected);
                    break;
                }
            }
        }
    }
}

//= hostile tunnel
//# a key that takes all sessions and channels
//= bound: `sessions`, `channels`
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_takes_all_channels_it_gets_leaves_some_for_others() {
    let (bob, eve) = (identity(), identity());
    let limits = ServerLimits { sessions: 100, channels: 4 };
    let stage = Stage::new("").await.with_limits(limits, &[&bob, &eve]).await;
    let ada = stage.client.clone();
    let to = destination(&format!("127.0.0.1:{}", echo().await)).expect("valid");
    let (one, two) = (stage.tunnel_of(&ada).await, stage.tunnel_of(&ada).await);
    let [one, two] = [one, two].map(|tunnel| tunnel.expect("a session"));
    let mut first = wait(one.open(to.clone())).await.expect("a channel");
    let mut second = wait(two.open(to.clone())).await.expect("a channel");
    let refused = wait(one.open(to.clone())).await.err().expect("no more than half");
    let expected = "this key has 2 of 4, and the last 2 are for other keys";
    assert!(refused.to_string().contains(expected), "{refused}");
    let [of_bob, of_eve] = [stage.tunnel_of(&bob).await, stage.tunnel_of(&eve).await];
    let [of_bob, of_eve] = [of_bob, of_eve].map(|tunnel| tunnel.expect("a session"));
    let _bobs = wait(of_bob.open(to.clone())).await.expect("a channel");
    let _eves = wait(of_eve.open(to.clone())).await.expect("a channel");
    // Now there are none, and nobody has two more than another one.
    assert!(wait(of_bob.open(to.clone())).await.is_err());
    for stream in [&mut first, &mut second] {
        stream.write_all(b"still there").await.expect("writes");
    }
    first.shutdown().await.expect("ends");
    let mut received = String::new();
    wait(first.read_to_string(&mut received)).await.expect("reads");
    assert_eq!(received, "still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_left_the_busiest_key_loses_its_newest_channel() {
    let (bob, eve) = (identity(), identity());
    let limits = ServerLimits { sessions: 100, channels: 5 };
    let stage = Stage::new("").await.with_limits(limits, &[&bob, &eve]).await;
    let ada = stage.client.clone();
    let to = destination(&format!("127.0.0.1:{}", echo().await)).expect("valid");
    let of_ada = stage.tunnel_of(&ada).await.expect("a session");
    let mut adas = Vec::new();
    for _ in 0..3 {
        adas.push(wait(of_ada.open(to.clone())).await.expect("a channel"));
    }
    let of_bob = stage.tunnel_of(&bob).await.expect("a session");
    let _bobs = wait(of_bob.open(to.clone())).await.expect("a channel");
    let of_eve = stage.tunnel_of(&eve).await.expect("a session");
    let _eves = wait(of_eve.open(to.clone())).await.expect("a channel");
    let third = wait(of_eve.open(to.clone())).await.expect("one of ada's");
    converse(third, 1000).await;
    let mut newest = adas.pop().expect("three");
    assert!(wait(newest.read_u8()).await.is_err(), "it is reset");
    let mut oldest = adas.swap_remove(0);
    oldest.write_all(b"x").await.expect("writes");
    oldest.shutdown().await.expect("ends");
    assert_eq!(wait(oldest.read_u8()).await.expect("the echo"), b'x');
}
