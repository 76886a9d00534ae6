//! Priorities (RFC 9218): the field and frame value, and the order in which a sender serves streams.

mod order;

pub use order::SendOrder;

use alloc::string::String;
use core::fmt::Write as _;

/// How urgent a response is, and whether a part of it is of use (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority {
    /// `u`, from 0, the most urgent, to 7.
    pub urgency: u8,
    /// `i`: whether the recipient processes parts as they arrive.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// The least urgent.
    pub const MAX_URGENCY: u8 = 7;

    /// Parses the value of a Priority field or a PRIORITY_UPDATE frame: a dictionary of RFC 8941 §3.2.
    /// `None` if it is not one. Parameters with values out of range and unknown ones are ignored (RFC
    /// 9218 §4); of one that is there twice the last counts.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut priority = Self::default();
        let mut rest = value.trim_ascii();
        while !rest.is_empty() {
            let (key, after) = dictionary::key(rest)?;
            let (item, after) = dictionary::value(after)?;
            match (key, item) {
                (b"u", dictionary::Item::Integer(urgency)) => {
                    if let Ok(urgency @ 0..=Self::MAX_URGENCY) = u8::try_from(urgency) {
                        priority.urgency = urgency;
                    }
                }
                (b"i", dictionary::Item::Boolean(incremental)) => {
                    priority.incremental = incremental;
                }
                _ => {}
            }
            rest = dictionary::next_member(after)?;
        }
        Some(priority)
    }

    /// Returns the value of a Priority field, without what is the default.
    #[must_use]
    pub fn to_value(self) -> String {
        let mut value = String::new();
        if self.urgency != Self::default().urgency {
            // Writing to a string does not fail.
            let _ = write!(value, "u={}", self.urgency.min(Self::MAX_URGENCY));
        }
        if self.incremental {
            value.push_str(if value.is_empty() { "i" } else { ", i" });
        }
        value
    }
}

/// What of dictionaries (RFC 8941 §3.2, §4.2.2) a priority needs: each member is read over, and only
/// integers and Booleans are told apart.
mod dictionary {
    /// The value of a member.
    pub(super) enum Item {
        Integer(i64),
        Boolean(bool),
        Other,
    }

    /// Returns a key and what follows it (RFC 8941 §4.2.3.3).
    pub(super) fn key(text: &[u8]) -> Option<(&[u8], &[u8])> {
        let is_first = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'*';
        text.first().filter(|byte| is_first(byte))?;
        let is_inner = |byte: &u8| is_first(byte) || byte.is_ascii_digit() || b"_-.".contains(byte);
        let end = text.iter().position(|byte| !is_inner(byte)).unwrap_or(text.len());
        text.split_at_checked(end)
    }

    /// Returns the value of a member, with its parameters read over, and what follows.
    pub(super) fn value(text: &[u8]) -> Option<(Item, &[u8])> {
        let (item, mut rest) = match text {
            [b'=', b'(', after @ ..] => (Item::Other, inner_list(after)?),
            [b'=', after @ ..] => bare_item(after)?,
            _ => (Item::Boolean(true), text),
        };
        while let [b';', after @ ..] = rest {
            let (_, after) = key(trim_spaces(after))?;
            rest = match after {
                [b'=', after @ ..] => bare_item(after)?.1,
                _ => after,
            };
        }
        Some((item, rest))
    }

    /// Returns what follows the comma after a member; empty at the end.
    pub(super) fn next_member(text: &[u8]) -> Option<&[u8]> {
        match text.trim_ascii_start() {
            [] => Some(&[]),
            [b',', after @ ..] => Some(after.trim_ascii_start()).filter(|after| !after.is_empty()),
            _ => None,
        }
    }

    fn trim_spaces(mut text: &[u8]) -> &[u8] {
        while let [b' ', after @ ..] = text {
            text = after;
        }
        text
    }

    fn inner_list(mut text: &[u8]) -> Option<&[u8]> {
        loop {
            text = trim_spaces(text);
            if let [b')', after @ ..] = text {
                return Some(after);
            }
            let (_, mut after) = bare_item(text)?;
            while let [b';', parameter @ ..] = after {
                let (_, rest) = key(trim_spaces(parameter))?;
                after = match rest {
                    [b'=', rest @ ..] => bare_item(rest)?.1,
                    _ => rest,
                };
            }
            match after {
                [b' ' | b')', ..] => text = after,
                _ => return None,
            }
        }
    }

    /// Returns an item and what follows it (RFC 8941 §4.2.3.1).
    fn bare_item(text: &[u8]) -> Option<(Item, &[u8])> {
        match text {
            [b'?', b'0', rest @ ..] => Some((Item::Boolean(false), rest)),
            [b'?', b'1', rest @ ..] => Some((Item::Boolean(true), rest)),
            [b'"', rest @ ..] => string(rest).map(|rest| (Item::Other, rest)),
            [b':', rest @ ..] => {
                let end = rest.iter().position(|&byte| byte == b':')?;
                let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
                let (bytes, rest) = rest.split_at_checked(end)?;
                let rest = rest.get(1..)?;
                bytes.iter().all(is_base64).then_some((Item::Other, rest))
            }
            [b'-' | b'0'..=b'9', ..] => number(text),
            [first, ..] if first.is_ascii_alphabetic() || *first == b'*' => {
                let is_inner = |byte: &u8| {
                    matches!(byte, b':' | b'/')
                        || crate::message::is_token(core::slice::from_ref(byte))
                };
                let end = text.iter().position(|byte| !is_inner(byte)).unwrap_or(text.len());
                text.get(end..).map(|rest| (Item::Other, rest))
            }
            _ => None,
        }
    }

    /// Reads over the rest of a string (RFC 8941 §4.2.5).
    fn string(mut text: &[u8]) -> Option<&[u8]> {
        loop {
            text = match text {
                [b'"', rest @ ..] => return Some(rest),
                [b'\\', b'"' | b'\\', rest @ ..] => rest,
                [b' '..=b'[' | b']'..=b'~', rest @ ..] => rest,
                _ => return None,
            };
        }
    }

    /// Returns an integer of at most 15 digits, or reads over a decimal (RFC 8941 §4.2.4).
    fn number(text: &[u8]) -> Option<(Item, &[u8])> {
        let (is_negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let count = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (whole, rest) = digits.split_at_checked(count(digits))?;
        if let [b'.', fraction @ ..] = rest {
            let places = count(fraction);
            let is_valid = (1..=12).contains(&whole.len()) && (1..=3).contains(&places);
            return Some((Item::Other, fraction.get(places..)?)).filter(|_| is_valid);
        }
        if !(1..=15).contains(&whole.len()) {
            return None;
        }
        let value = whole.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        Some((Item::Integer(if is_negative { -value } else { value }), rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn priority(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    #[test]
    fn fields_are_dictionaries() {
        for (value, expected) in [
            ("", Some(priority(3, false))),
            ("u=0", Some(priority(0, false))),
            ("u=5, i", Some(priority(5, true))),
            ("i=?0,u=1", Some(priority(1, false))),
            ("  i ,\t u=7  ", Some(priority(7, true))),
            ("u=1, u=2", Some(priority(2, false))),
            ("u=8", Some(priority(3, false))),
            ("u=-1", Some(priority(3, false))),
            ("u=1.5", Some(priority(3, false))),
            ("u=300, i=1", Some(priority(3, false))),
            ("u=2;x=1;y, i;z=\"a\\\"b\"", Some(priority(2, true))),
            ("a=(1 \"b\";c=d :YQ==:), b=tok/en:x, u=6", Some(priority(6, false))),
            ("u", Some(priority(3, false))),
            ("u=", None),
            ("u=1,", None),
            ("u=1 i", None),
            ("U=1", None),
            ("=1", None),
            ("a=\"", None),
            ("a=(1", None),
            ("a=(1\"b\")", None),
            ("u=1234567890123456", None),
            ("\u{e4}", None),
        ] {
            assert_eq!(Priority::parse(value.as_bytes()), expected, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn a_priority_is_read_back(urgency in 0..=Priority::MAX_URGENCY, incremental: bool) {
            let priority = Priority { urgency, incremental };
            prop_assert_eq!(Priority::parse(priority.to_value().as_bytes()), Some(priority));
        }

        #[test]
        fn arbitrary_values_never_panic(value: Vec<u8>) {
            let _ = Priority::parse(&value);
        }
    }
}
