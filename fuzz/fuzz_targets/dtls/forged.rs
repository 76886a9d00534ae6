//! Datagrams that no client has sent.

/// Returns the datagram truncated, with a flipped bit, or with an appended byte.
pub fn mangled(datagram: &[u8], place: u8, how: u8) -> Vec<u8> {
    let mut datagram = datagram.to_vec();
    let place = usize::from(place) * datagram.len() / 256;
    match how {
        0..16 => datagram.truncate(place),
        16..32 => datagram.push(place as u8),
        // Mostly in the headers.
        32..128 if !datagram.is_empty() => {
            let place = place % datagram.len().min(32);
            datagram[place] ^= 1 << (how % 8);
        }
        _ => datagram[place] ^= 1 << (how % 8),
    }
    datagram
}

/// Returns a datagram that requires no knowledge.
pub fn junk(a: u8, b: u8) -> Vec<u8> {
    let contents: &[u8] = match b % 5 {
        0 => &[2, 40],
        1 => &[1, 0],
        2 => &[1],
        3 => &[14, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        _ => &[b; 64],
    };
    if a >= 128 {
        return [&[0x20 | a & 0x1f][..], contents].concat();
    }
    let length = u8::try_from(contents.len()).expect("short");
    let header = [20 + a % 8, 0xfe, 0xfd - (b >> 7), 0, a >> 4 & 3, 0, 0, 0, 0, 0, b, 0, length];
    [&header[..], contents].concat()
}
