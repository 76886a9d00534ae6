//! Protected messages in any order, repeated, damaged and forged: each message is opened once, nothing else
//! is opened, and the window against replays agrees with a set. Each step is four octets, so that every
//! input means something and a change of one octet changes one step.
#![no_main]

use std::collections::BTreeSet;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

#[path = "messages/mod.rs"]
mod sctp;
mod reach;

use reach::Reach;
use sctp::{End, OVERHEAD, WIDTH, Window};

static REACH: Reach<8> = Reach::new([
    "a message that is opened",
    "a message that was repeated",
    "a changed message",
    "a message of another length",
    "a message of the wrong end or stream",
    "a message with another number",
    "a number behind the window",
    "a number that moves the whole window",
]);

/// Steps of one run; more find nothing new.
const MAX_STEPS: usize = 400;
const STREAM: u16 = 1023;
const NUMBER: usize = 8;

type Step = [u8; 4];

struct Sent {
    message: Vec<u8>,
    sealed: Bytes,
}

/// Sends, and delivers what a network may make of it.
fn exchange(steps: impl Iterator<Item = Step>) {
    let ((mut near, mut far), (_, mut elsewhere)) = (End::pair(STREAM), End::pair(STREAM + 1));
    let (mut sent, mut opened) = (Vec::<Sent>::new(), BTreeSet::new());
    for [kind, index, a, b] in steps {
        if kind % 6 == 0 || sent.is_empty() {
            let message = vec![a; b.into()];
            let sealed = near.seal(&message);
            assert_eq!(sealed.len(), message.len() + OVERHEAD);
            sent.push(Sent { message, sealed });
            continue;
        }
        let number = usize::from(index) % sent.len();
        let Sent { message, sealed } = &sent[number];
        let mut other = sealed.to_vec();
        match kind % 6 {
            1 => {
                let is_new = opened.insert(number);
                let opening = far.open(other);
                assert_eq!(opening.as_deref(), is_new.then_some(&message[..]), "{number}");
                let outcome =
                    if is_new { "a message that is opened" } else { "a message that was repeated" };
                REACH.hit(outcome);
                continue;
            }
            2 => {
                let at = usize::from(a) % other.len();
                other[at] ^= b.max(1);
                REACH.hit("a changed message");
            }
            3 => {
                match a % 2 {
                    0 => other.push(b),
                    _ => other.truncate(usize::from(b) % other.len()),
                }
                REACH.hit("a message of another length");
            }
            4 => {
                assert_eq!(near.open(other.clone()), None, "it is the sender's own");
                assert_eq!(elsewhere.open(other), None, "it is of another stream");
                REACH.hit("a message of the wrong end or stream");
                continue;
            }
            _ => {
                let far_ahead = u64::MAX - u64::from(b);
                let claimed = if a % 2 == 0 { u64::from(b) } else { far_ahead };
                if claimed == number as u64 {
                    continue;
                }
                other[..NUMBER].copy_from_slice(&claimed.to_be_bytes());
                REACH.hit("a message with another number");
            }
        }
        assert_eq!(far.open(other), None, "it is not the sender's");
    }
    // Nothing of all this has closed the window for what is still on its way.
    for (number, Sent { message, sealed }) in sent.iter().enumerate() {
        let is_new = !opened.contains(&number);
        assert_eq!(far.open(sealed.to_vec()).as_deref(), is_new.then_some(&message[..]));
    }
}

/// Asks the window about numbers, and a set about the same.
fn compare(steps: impl Iterator<Item = Step>) {
    let (mut window, mut come) = (Window::default(), BTreeSet::new());
    for [kind, is_noted, a, b] in steps {
        let highest = come.last().copied();
        let (base, distance) = (highest.unwrap_or(0), u64::from(u16::from_be_bytes([a, b])));
        let number: u64 = match kind % 4 {
            0 => base.saturating_add(distance % 4),
            1 => base.saturating_sub(distance),
            2 => base.saturating_sub(2 * distance),
            // Up to 32 times the width of the window, and at most to the end of all numbers.
            _ if b == u8::MAX => u64::MAX - u64::from(a),
            _ => base.saturating_add(32 * distance),
        };
        let is_within = highest.is_none_or(|highest| highest < number || highest - number < WIDTH);
        let is_new = number < u64::MAX && is_within && !come.contains(&number);
        assert_eq!(window.is_new(number), is_new, "{number} after {highest:?}");
        if !is_within {
            REACH.hit("a number behind the window");
        }
        if is_new && is_noted % 4 > 0 {
            window.note(number);
            come.insert(number);
            if highest.is_some_and(|highest| number.saturating_sub(highest) > WIDTH) {
                REACH.hit("a number that moves the whole window");
            }
        }
    }
}

/// Octets that no end has sealed.
fn forged(bytes: &[u8]) {
    let (mut near, mut far) = End::pair(STREAM);
    assert_eq!(far.open(bytes.to_vec()), None);
    let sealed = near.seal(b"a packet");
    assert_eq!(far.open(sealed.to_vec()).as_deref(), Some(&b"a packet"[..]));
}

fuzz_target!(|bytes: &[u8]| {
    REACH.begin();
    let Some((mode, rest)) = bytes.split_first() else { return };
    let steps = rest.as_chunks::<4>().0.iter().copied().take(MAX_STEPS);
    match mode % 3 {
        0 => exchange(steps),
        1 => compare(steps),
        _ => forged(rest),
    }
});
