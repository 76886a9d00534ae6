//! The tables of the Huffman code, made from the lengths of its codes.
//!
//! <https://www.rfc-editor.org/rfc/rfc7541#appendix-B>

/// The symbol for the end of a string.
pub(super) const END: u16 = 256;
/// The most bits of a code.
pub(super) const MAX_LENGTH: usize = 30;
/// How many bits are looked up at once: two of the most common octets fit.
pub(super) const FIRST_BITS: usize = 12;

/// The bits of each octet's code, and of the one for the end.
pub(super) static LENGTHS: [u8; 257] = SIZES;

#[rustfmt::skip]
const SIZES: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The codes of the octets and of the end, in the lowest bits.
pub(super) static CODES: [u32; 257] = codes();

/// The symbols in the order of their codes.
pub(super) static SYMBOLS: [u16; 257] = symbols();

/// What the first [`FIRST_BITS`] bits begin with.
pub(super) static PAIRS: [Pair; 1 << FIRST_BITS] = pairs();

/// The codes that are longer than that, by length.
pub(super) static LONG_CODES: [LongCodes; MAX_LENGTH - FIRST_BITS] = long_codes();

/// One octet, or two if the codes of both fit the bits; none if the first does not.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) octets: [u8; 2],
    /// How many of them there are.
    pub(super) count: u8,
    /// The bits of the first.
    pub(super) first_bits: u8,
    /// The bits of all of them.
    pub(super) bits: u8,
}

/// The codes of one length. Both codes are followed by zeros or ones up to 32 bits.
#[derive(Clone, Copy)]
pub(super) struct LongCodes {
    pub(super) length: u32,
    pub(super) first: u32,
    pub(super) last: u32,
    /// The index of the first code's symbol in [`SYMBOLS`].
    pub(super) start: usize,
}

// The code is canonical: ordered by length, then by symbol, each code is the one before plus 1.

const fn symbols() -> [u16; 257] {
    let mut symbols = [0; 257];
    let (mut length, mut filled) = (0, 0);
    while length <= MAX_LENGTH {
        let mut symbol = 0;
        while symbol < 257 {
            if SIZES[symbol] as usize == length {
                symbols[filled] = symbol as u16;
                filled += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    symbols
}

const fn codes() -> [u32; 257] {
    let ordered = symbols();
    let mut codes = [0; 257];
    let (mut index, mut code, mut length) = (0, 0_u32, SIZES[ordered[0] as usize]);
    while index < 257 {
        let symbol = ordered[index] as usize;
        code <<= SIZES[symbol] - length;
        length = SIZES[symbol];
        codes[symbol] = code;
        code += 1;
        index += 1;
    }
    codes
}

const fn pairs() -> [Pair; 1 << FIRST_BITS] {
    let mut single = [(0_u8, 0_u8); 1 << FIRST_BITS];
    let codes = codes();
    let mut symbol = 0;
    while symbol < 256 {
        let length = SIZES[symbol] as usize;
        if length <= FIRST_BITS {
            let first = (codes[symbol] as usize) << (FIRST_BITS - length);
            let mut index = first;
            while index < first + (1 << (FIRST_BITS - length)) {
                single[index] = (symbol as u8, length as u8);
                index += 1;
            }
        }
        symbol += 1;
    }
    let mut pairs = [Pair { octets: [0, 0], count: 0, first_bits: 0, bits: 0 }; 1 << FIRST_BITS];
    let mut index = 0;
    while index < pairs.len() {
        let (octet, bits) = single[index];
        if bits > 0 {
            let (next, next_bits) = single[(index << bits) & ((1 << FIRST_BITS) - 1)];
            let both = bits + next_bits;
            let has_two = next_bits > 0 && both as usize <= FIRST_BITS;
            pairs[index] = Pair {
                octets: [octet, if has_two { next } else { 0 }],
                count: if has_two { 2 } else { 1 },
                first_bits: bits,
                bits: if has_two { both } else { bits },
            };
        }
        index += 1;
    }
    pairs
}

const fn long_codes() -> [LongCodes; MAX_LENGTH - FIRST_BITS] {
    let ordered = symbols();
    let codes = codes();
    // A length without codes has a last code that is below all that are left.
    let mut groups =
        [LongCodes { length: 0, first: 0, last: 0, start: 0 }; MAX_LENGTH - FIRST_BITS];
    let mut index = 0;
    while index < 257 {
        let symbol = ordered[index] as usize;
        let length = SIZES[symbol] as usize;
        if length > FIRST_BITS {
            let group = &mut groups[length - FIRST_BITS - 1];
            let rest = 32 - length as u32;
            if group.length == 0 {
                group.length = length as u32;
                group.first = codes[symbol] << rest;
                group.start = index;
            }
            group.last = codes[symbol] << rest | ((1 << rest) - 1);
        }
        index += 1;
    }
    groups
}
