//! Serial numbers with safe comparisons (RFC 1982).
//!
//! They wrap around, so they have no `Ord`: an order is only defined for two numbers that are less
//! than half of the number space apart.

mod numbers;

pub use numbers::Tsn;
#[cfg(feature = "internals")]
pub use numbers::{AsconfNumber, Mid, ReconfigurationNumber, Ssn};
#[cfg(not(feature = "internals"))]
pub(crate) use numbers::{AsconfNumber, Mid, ReconfigurationNumber, Ssn};

#[cfg(test)]
mod tests {
    use super::{Ssn, Tsn};

    #[test]
    fn order_survives_the_wrap() {
        assert!(Tsn(0).is_after(Tsn(u32::MAX)));
        assert!(Tsn(u32::MAX).is_before(Tsn(0)));
        assert!(Ssn(3).is_at_or_after(Ssn(65_530)));
        assert_eq!(Tsn(2).distance_from(Tsn(u32::MAX)), 3);
    }

    #[test]
    fn a_number_is_neither_after_nor_before_itself() {
        assert!(!Tsn(7).is_after(Tsn(7)));
        assert!(Tsn(7).is_at_or_after(Tsn(7)));
        assert!(Tsn(7).is_at_or_before(Tsn(7)));
    }

    #[test]
    fn half_a_space_away_nothing_is_after_the_other() {
        let (a, b) = (Tsn(0), Tsn(1 << 31));
        assert!(!a.is_after(b) && !b.is_after(a));
    }
}
