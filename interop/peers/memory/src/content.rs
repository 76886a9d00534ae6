//! The content of messages: their number and bytes derived from it (interop/peers/README.md).

use bytes::Bytes;

/// Returns the message with that number.
pub fn message(index: u32, size: usize) -> Bytes {
    let mut data: Vec<u8> = (0..size).map(|at| byte(index, at)).collect();
    if let Some(head) = data.first_chunk_mut::<4>() {
        *head = index.to_be_bytes();
    }
    data.into()
}

fn byte(index: u32, at: usize) -> u8 {
    (index as usize).wrapping_add(at * 7).wrapping_add(at >> 8) as u8
}

/// Returns the message's number, unless it is too short for one, and whether its content is correct.
pub fn check(data: &[u8]) -> (Option<u32>, bool) {
    let index = data.first_chunk::<4>().map(|head| u32::from_be_bytes(*head));
    let (number, start) = match (index, data.first()) {
        (Some(index), _) => (index, 4),
        (None, first) => (u32::from(first.copied().unwrap_or_default()), 1),
    };
    let good = data.iter().enumerate().skip(start).all(|(at, found)| *found == byte(number, at));
    (index, good && !data.is_empty())
}
