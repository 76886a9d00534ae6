//! Who may use a proxy, by name and password.

use std::fmt;

use thiserror::Error;

/// Users in one file; more are a sign that the file is something else.
const MAX_USERS: usize = 10_000;

/// Names and passwords. Nothing of them shows in debugging output.
#[derive(Clone, Default)]
pub struct Users(Vec<(Vec<u8>, Vec<u8>)>);

/// Why a text names no users.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UsersError {
    /// A line has no colon, or nothing on one side of it.
    #[error("line {0} is not NAME:PASSWORD")]
    Line(usize),
    /// A name or a password is longer than SOCKS5 can say.
    #[error("line {0}: a name and a password have 255 bytes at most")]
    TooLong(usize),
    /// It contains no user.
    #[error("it contains no users: write NAME:PASSWORD, one per line")]
    Nobody,
    /// There are too many.
    #[error("it has more than {MAX_USERS} lines")]
    TooMany,
}

impl Users {
    /// Reads `NAME:PASSWORD`, one a line. Empty lines and lines that begin with `#` say nothing.
    ///
    /// # Errors
    /// The first line that makes no sense.
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
        if users.is_empty() { Err(UsersError::Nobody) } else { Ok(Self(users)) }
    }

    /// Whether this is one of them. How long it takes does not tell how much of it was right.
    pub(crate) fn know(&self, name: &[u8], password: &[u8]) -> bool {
        self.0.iter().fold(false, |known, (one, secret)| {
            known | (is_same(one, name) & is_same(secret, password))
        })
    }
}

fn is_same(wanted: &[u8], shown: &[u8]) -> bool {
    let differences = (0..wanted.len().max(shown.len())).fold(0, |differences, at| {
        let of = |bytes: &[u8]| bytes.get(at).copied().unwrap_or_default();
        differences | (of(wanted) ^ of(shown))
    });
    std::hint::black_box(differences) == 0 && wanted.len() == shown.len()
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_name_and_a_password() {
        let users = Users::parse("# who may\n\nada:love:lace\nbob:x\n").expect("parses");
        assert!(users.know(b"ada", b"love:lace") && users.know(b"bob", b"x"));
        for (name, password) in [("ada", "x"), ("ada", ""), ("", ""), ("ada", "love:lace\0")] {
            assert!(!users.know(name.as_bytes(), password.as_bytes()), "{name}:{password}");
        }
        assert_eq!(format!("{users:?}"), "2 users");
    }

    #[test]
    fn another_kind_of_file_is_refused() {
        let error = |text: &str| Users::parse(text).expect_err("refused");
        assert_eq!(error("ada:x\nbob\n"), UsersError::Line(2));
        assert_eq!(error(":x"), UsersError::Line(1));
        assert_eq!(error("# nobody\n"), UsersError::Nobody);
        assert_eq!(error(&format!("a:{}", "x".repeat(256))), UsersError::TooLong(1));
    }
}
