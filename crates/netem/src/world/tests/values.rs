//! A world with packets of values behaves like one with packets of bytes, and nodes that need the
//! bytes get them.

use super::*;
use crate::link::{BitErrorConfig, BitErrorEffect};
use crate::middlebox::MiddleboxNode;
use crate::middlebox::mtu::{MtuAnswer, MtuLimit};
use crate::packet::PacketPayload;
use crate::router::Router;

/// A repeated byte, or bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Number(u8, usize),
    Written(Bytes),
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self::Written(bytes)
    }
}

impl PacketPayload for Value {
    fn len(&self) -> usize {
        match self {
            Self::Number(_, length) => *length,
            Self::Written(bytes) => bytes.len(),
        }
    }

    fn to_bytes(&self) -> Bytes {
        match self {
            Self::Number(number, length) => alloc::vec![*number; *length].into(),
            Self::Written(bytes) => bytes.clone(),
        }
    }
}

/// Sends its packets, and stores those that arrive.
#[derive(Default)]
struct Endpoint<P> {
    to_send: Vec<P>,
    received: Vec<P>,
}

impl<P: PacketPayload> Node<P> for Endpoint<P> {
    fn handle_input(&mut self, _now: Duration, input: NodeInput<P>) {
        if let NodeInput::Arrived { packet, .. } = input {
            self.received.push(packet.payload);
        }
    }

    fn poll_output(&mut self, _now: Duration) -> NodeOutput<P> {
        match self.to_send.pop() {
            Some(payload) => {
                NodeOutput::Transmit { interface: 0, packet: packet(20).with_payload(payload) }
            }
            None => NodeOutput::Timeout(None),
        }
    }
}

enum Station<P> {
    Endpoint(Endpoint<P>),
    Router(Router<P>),
    Limit(MiddleboxNode<MtuLimit>),
}

impl<P: PacketPayload> Node<P> for Station<P> {
    fn handle_input(&mut self, now: Duration, input: NodeInput<P>) {
        match self {
            Self::Endpoint(end) => end.handle_input(now, input),
            Self::Router(router) => router.handle_input(now, input),
            Self::Limit(limit) => limit.handle_input(now, input),
        }
    }

    fn poll_output(&mut self, now: Duration) -> NodeOutput<P> {
        match self {
            Self::Endpoint(end) => end.poll_output(now),
            Self::Router(router) => router.poll_output(now),
            Self::Limit(limit) => limit.poll_output(now),
        }
    }
}

/// The arrivals through two nodes on the path, the recorded events, and a capture.
fn through<P: PacketPayload>(
    to_send: Vec<P>,
    middlebox_mtu: Option<usize>,
    errors: f64,
) -> (Vec<P>, Vec<WorldRecord>, Vec<u8>) {
    let mut world: World<Station<P>, P> = World::new(7);
    let sender = world.add_node(Station::Endpoint(Endpoint { to_send, received: Vec::new() }));
    let middle = world.add_node(match middlebox_mtu {
        Some(mtu) => Station::Limit(MiddleboxNode(MtuLimit::new(mtu, MtuAnswer::Nothing))),
        None => Station::Router(Router::new().host(B, 1)),
    });
    let receiver =
        world.add_node(Station::Endpoint(Endpoint { to_send: Vec::new(), received: Vec::new() }));
    let last = LinkConfig {
        bit_error: Some(BitErrorConfig { probability: errors, effect: BitErrorEffect::Corrupt }),
        ..link()
    };
    world.connect((sender, 0), (middle, 0), link(), link());
    let tapped = world.connect((middle, 1), (receiver, 0), last, link());
    world.keep_records(1000);
    world.tap(tapped, TapPoint::Receiver, "last");
    world.run_until(milliseconds(1000));
    let Station::Endpoint(end) = world.node_mut(receiver) else { unreachable!("an end was added") };
    let received = core::mem::take(&mut end.received);
    let records = world.records().to_vec();
    (
        received,
        records,
        world.capture_mut().map(crate::capture::PacketCapture::drain).unwrap_or_default(),
    )
}

#[test]
fn values_behave_like_their_bytes() {
    let values: Vec<Value> = (0..40).map(|n| Value::Number(n, 100 * usize::from(n))).collect();
    let bytes: Vec<Bytes> = values.iter().map(Value::to_bytes).collect();
    for (limit, errors) in [(None, 0.0), (Some(1500), 0.0), (None, 1e-4), (Some(1500), 1e-4)] {
        let (values, records, captured) = through(values.clone(), limit, errors);
        let (bytes, expected, written) = through(bytes.clone(), limit, errors);
        assert_eq!(records, expected);
        assert!(captured == written, "what a capture shows");
        assert_eq!(values.iter().map(Value::to_bytes).collect::<Vec<_>>(), bytes);
        // Only nodes that need the bytes have encoded the payload.
        let untouched = values.iter().filter(|value| matches!(value, Value::Number(..))).count();
        match limit {
            Some(_) => assert_eq!(untouched, 0),
            None if errors == 0.0 => assert_eq!(untouched, 40),
            None => assert!((1..40).contains(&untouched), "{untouched}"),
        }
    }
}
