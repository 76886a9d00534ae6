//! Derives random values from the seed of a race, without state.
//!
//! A value depends on the seed and on its *purpose*, never on how many values were drawn before, so
//! the order in which DNS answers arrive cannot change it.

/// Returns a well-mixed number for this use of the seed.
pub(crate) fn draw(seed: u64, purpose: &[u8]) -> u64 {
    // FNV-1a over the purpose, then the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
    let hash = purpose.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ hash;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
