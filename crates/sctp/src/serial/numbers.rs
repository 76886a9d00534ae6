//! The kinds of serial numbers in SCTP.

/// Declares one kind of serial number over an unsigned integer.
macro_rules! serial_number {
    ($(#[$doc:meta])* $name:ident, $integer:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $integer);

        #[cfg_attr(not(feature = "internals"), expect(dead_code, reason = "not every kind needs all"))]
        impl $name {
            /// Returns the next number.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }

            /// Returns the previous number.
            #[must_use]
            pub const fn previous(self) -> Self {
                Self(self.0.wrapping_sub(1))
            }

            /// Returns the number `count` further on.
            #[must_use]
            pub const fn plus(self, count: $integer) -> Self {
                Self(self.0.wrapping_add(count))
            }

            /// Returns how far this number is ahead of `other`; wraps around if it is behind.
            #[must_use]
            pub const fn distance_from(self, other: Self) -> $integer {
                self.0.wrapping_sub(other.0)
            }

            /// Returns whether this number comes after `other` (RFC 1982 §3.2).
            #[must_use]
            pub const fn is_after(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) > 0
            }

            /// Returns whether this number is `other` or comes after it.
            #[must_use]
            pub const fn is_at_or_after(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) >= 0
            }

            /// Returns whether this number comes before `other`.
            #[must_use]
            pub const fn is_before(self, other: Self) -> bool {
                other.is_after(self)
            }

            /// Returns whether this number is `other` or comes before it.
            #[must_use]
            pub const fn is_at_or_before(self, other: Self) -> bool {
                other.is_at_or_after(self)
            }
        }
    };
}

serial_number! {
    /// Transmission Sequence Number of a DATA or I-DATA chunk (RFC 9260 §1.3).
    Tsn, u32, i32
}

serial_number! {
    /// Stream Sequence Number of an ordered message in a DATA chunk (RFC 9260 §1.3).
    Ssn, u16, i16
}

serial_number! {
    /// Message Identifier of an I-DATA chunk (RFC 8260 §2.1).
    Mid, u32, i32
}

serial_number! {
    /// Re-configuration request sequence number (RFC 6525 §4.1).
    ReconfigurationNumber, u32, i32
}

serial_number! {
    /// Serial number of an ASCONF chunk (RFC 5061 §4.1.1).
    AsconfNumber, u32, i32
}
