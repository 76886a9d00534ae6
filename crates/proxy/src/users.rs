//! Who may use a proxy, by name and password.

use std::fmt;

use eyas_relay::handshake::ClientCredentials;
use thiserror::Error;

/// The limit on users in one file. A longer file is probably something else.
const MAX_USERS: usize = 10_000;

/// Names and passwords, which do not appear in debugging output.
#[derive(Clone, Default)]
pub struct ProxyUsers(Vec<(Vec<u8>, Vec<u8>)>);

/// The error of parsing [`ProxyUsers`].
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UsersError {
    /// A line has no colon, or an empty name or password.
    #[error("line {0} is not NAME:PASSWORD")]
    Line(usize),
    /// A name or a password is too long for SOCKS5.
    #[error("line {0}: a name and a password have 255 bytes at most")]
    TooLong(usize),
    /// It contains no user.
    #[error("it contains no users: write NAME:PASSWORD, one per line")]
    Empty,
    /// There are too many users.
    #[error("it has more than {MAX_USERS} lines")]
    TooMany,
}

impl ProxyUsers {
    /// Parses lines of `NAME:PASSWORD`. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// If a line is invalid, or there are no users or too many.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let mut users = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, password) = line.split_once(':').ok_or(UsersError::Line(number + 1))?;
            if name.is_empty() || password.is_empty() {
                return Err(UsersError::Line(number + 1));
            }
            if name.len() > 255 || password.len() > 255 {
                return Err(UsersError::TooLong(number + 1));
            }
            if users.len() >= MAX_USERS {
                return Err(UsersError::TooMany);
            }
            users.push((name.as_bytes().to_vec(), password.as_bytes().to_vec()));
        }
        if users.is_empty() { Err(UsersError::Empty) } else { Ok(Self(users)) }
    }

    /// Returns whether this is one of the users, in a time that does not depend on how much of it matches.
    pub(crate) fn contains(&self, given: &ClientCredentials) -> bool {
        let ClientCredentials { name, password } = given;
        self.0.iter().fold(false, |found, (one, secret)| {
            found | (is_same(one, name) & is_same(secret, password))
        })
    }
}

fn is_same(expected: &[u8], given: &[u8]) -> bool {
    let differences = (0..expected.len().max(given.len())).fold(0, |differences, at| {
        let byte = |bytes: &[u8]| bytes.get(at).copied().unwrap_or_default();
        differences | (byte(expected) ^ byte(given))
    });
    std::hint::black_box(differences) == 0 && expected.len() == given.len()
}

impl fmt::Debug for ProxyUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_name_and_a_password() {
        let users = ProxyUsers::parse("# who may\n\nada:love:lace\nbob:x\n").expect("parses");
        let contains = |name: &str, password: &str| {
            users.contains(&ClientCredentials { name: name.into(), password: password.into() })
        };
        assert!(contains("ada", "love:lace") && contains("bob", "x"));
        for (name, password) in [("ada", "x"), ("ada", ""), ("", ""), ("ada", "love:lace\0")] {
            assert!(!contains(name, password), "{name}:{password}");
        }
        assert_eq!(format!("{users:?}"), "2 users");
    }

    #[test]
    fn another_kind_of_file_is_refused() {
        let error = |text: &str| ProxyUsers::parse(text).expect_err("refused");
        assert_eq!(error("ada:x\nbob\n"), UsersError::Line(2));
        assert_eq!(error(":x"), UsersError::Line(1));
        assert_eq!(error("# none\n"), UsersError::Empty);
        assert_eq!(error(&format!("a:{}", "x".repeat(256))), UsersError::TooLong(1));
    }
}
