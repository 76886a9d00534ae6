//! Handshakes over paths that lose and delay.

use std::time::Duration;

use super::*;

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Passes,
    Lost,
    /// It arrives after this many that were sent later, or when nothing else is under way.
    Overtaken(usize),
}

/// Datagrams whose fates are known, in the order in which they are sent; all others pass.
struct Path {
    pair: Pair,
    fates: VecDeque<Fate>,
    /// What is under way: how many others arrive before it, whether the client sent it, and it.
    under_way: VecDeque<(usize, bool, Vec<u8>)>,
}

impl Path {
    fn send(&mut self, out: Outcome, by_client: bool) {
        let packets = out.packets.into_iter().map(|one| one.to_vec());
        match by_client {
            true => self.pair.at_client.extend(packets),
            false => self.pair.at_server.extend(packets),
        }
        for datagram in out.datagrams {
            let after = match self.fates.pop_front().unwrap_or(Fate::Passes) {
                Fate::Passes => 0,
                Fate::Lost => continue,
                Fate::Overtaken(by) => by,
            };
            self.under_way.push_back((after, by_client, datagram.to_vec()));
        }
    }

    /// Carries until nothing is under way.
    fn carry(&mut self) {
        while let Some((after, by_client, datagram)) = self.under_way.pop_front() {
            if after > 0 && !self.under_way.is_empty() {
                self.under_way.push_back((after - 1, by_client, datagram));
                continue;
            }
            let now = self.pair.now;
            let out = match by_client {
                true => self.pair.server.handle_datagram(now, address(5000), &datagram, || true),
                false => self.pair.client.handle_datagram(now, address(9899), &datagram, || true),
            };
            self.send(out, !by_client);
        }
    }

    fn wait(&mut self, time: Duration) {
        self.pair.now += time;
        let now = self.pair.now;
        for (_, out) in self.pair.client.handle_timeout(now) {
            self.send(out, true);
        }
        for (_, out) in self.pair.server.handle_timeout(now) {
            self.send(out, false);
        }
        self.carry();
    }
}

/// How long it takes until a packet of an association has come to the server and one back.
fn passes(identity: &ServerIdentity, fates: &[Fate]) -> Option<Duration> {
    let fates = fates.iter().copied().collect();
    let mut path = Path { pair: Pair::new(identity), fates, under_way: VecDeque::new() };
    let begun = path.pair.now;
    let own = Identity::nobody().expect("an identity");
    let trust = trust(&trusting(identity), "peer.test");
    let out = path.pair.client.open(begun, address(9899), &own, trust, None);
    path.send(out, true);
    path.carry();
    while path.pair.now - begun < Duration::from_secs(30) {
        if matches!(path.pair.client.state(address(9899)), State::Over(_)) {
            return None;
        }
        let now = path.pair.now;
        let out = path.pair.client.send(now, address(9899), [&b"there"[..]].into_iter());
        path.send(out, true);
        path.carry();
        if !path.pair.at_server.is_empty() {
            let out = path.pair.server.send(now, address(5000), [&b"back"[..]].into_iter());
            path.send(out, false);
            path.carry();
        }
        if !path.pair.at_client.is_empty() {
            return Some(now - begun);
        }
        path.wait(Duration::from_millis(250));
    }
    None
}

/// Whether a session comes up soon enough that with these fates one flight was sent again at most
/// three times.
fn comes_up(identity: &ServerIdentity, fates: &[Fate]) {
    let took = passes(identity, fates);
    assert!(took.is_some_and(|took| took < Duration::from_secs(8)), "{fates:?}: {took:?}");
}

#[test]
fn a_handshake_completes_whatever_is_lost() {
    let identity = identity();
    for (one, next) in (0..10).flat_map(|one| (1..3).map(move |next| (one, one + next))) {
        let mut fates = [Fate::Passes; 12];
        fates[one] = Fate::Lost;
        fates[next] = Fate::Lost;
        comes_up(&identity, &fates);
    }
}

#[test]
fn a_handshake_completes_whatever_is_reordered() {
    let identity = identity();
    for (one, by) in (0..10).flat_map(|one| [1, 3].map(move |by| (one, by))) {
        let mut fates = [Fate::Passes; 12];
        fates[one] = Fate::Overtaken(by);
        comes_up(&identity, &fates);
    }
}
