//! CRC32c without special instructions: eight bytes at a time by tables (slicing-by-8).

/// The polynomial of Castagnoli, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[n][b]`: the effect of the byte `b` on the checksum when `n` more bytes follow it.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut following = 1;
    while following < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before: u32 = tables[following - 1][byte];
            tables[following][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        following += 1;
    }
    tables
}

/// Extends `crc` by `bytes`.
pub(super) fn append(crc: u32, bytes: &[u8]) -> u32 {
    let (blocks, rest) = bytes.as_chunks::<8>();
    let mut crc = !crc;
    for block in blocks {
        let [a, b, c, d, e, f, g, h] = (u64::from_le_bytes(*block) ^ u64::from(crc)).to_le_bytes();
        crc = entry(7, a) ^ entry(6, b) ^ entry(5, c) ^ entry(4, d);
        crc ^= entry(3, e) ^ entry(2, f) ^ entry(1, g) ^ entry(0, h);
    }
    for byte in rest {
        crc = (crc >> 8) ^ entry(0, byte ^ crc.to_le_bytes()[0]);
    }
    !crc
}

fn entry(following: usize, byte: u8) -> u32 {
    TABLES[following][usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::append;

    /// RFC 3720 appendix B.4.
    #[test]
    fn known_answers() {
        assert_eq!(append(0, b"123456789"), 0xe306_9283);
        assert_eq!(append(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(append(0, &[0xff; 32]), 0x62a8_ab43);
        let mut counting = [0; 32];
        for (at, byte) in (0..).zip(&mut counting) {
            *byte = at;
        }
        assert_eq!(append(0, &counting), 0x46dd_794e);
    }
}
