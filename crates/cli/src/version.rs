//! `eyas --version --verbose`: what a report of a fault has to say about the program.

use serde_json::{Value, json};

/// The commit that the program was built from, or `unknown`.
pub(crate) const COMMIT: &str = env!("EYAS_COMMIT");

/// What is linked into every build of the command.
const TRANSPORTS: &[&str] = &["quic", "tcp", "mptcp", "sctp"];
/// The cryptography of TLS, QUIC and DTLS.
const PROVIDER: &str = "ring";

/// Returns whether a command line that asks for the version asks for all of it: `-Vv`, `--version -v`.
pub(crate) fn is_verbose(mut arguments: impl Iterator<Item = String>) -> bool {
    arguments.any(|argument| match argument.strip_prefix("--") {
        Some(long) => long == "verbose",
        None => argument.strip_prefix('-').is_some_and(|short| short.contains('v')),
    })
}

/// Returns the version with what the build depended on, one fact in each line.
pub(crate) fn description() -> String {
    format!(
        "eyas {}\ncommit: {COMMIT}\ntarget: {}\nbuild: {}\ntransports: {}\ncryptography: {PROVIDER}\n",
        env!("CARGO_PKG_VERSION"),
        env!("EYAS_TARGET"),
        build(),
        TRANSPORTS.join(", "),
    )
}

/// Returns the same as an object.
pub(crate) fn to_json() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": COMMIT,
        "target": env!("EYAS_TARGET"),
        "build": build(),
        "transports": TRANSPORTS,
        "cryptography": PROVIDER,
    })
}

fn build() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_version_is_requested_by_each_spelling() {
        for (line, expected) in [
            ("--version", false),
            ("-V", false),
            ("--version -v", true),
            ("--version --verbose", true),
            ("-Vv", true),
            ("get --version", false),
        ] {
            let arguments = line.split(' ').map(str::to_owned);
            assert_eq!(is_verbose(arguments), expected, "{line}");
        }
    }

    #[test]
    fn the_text_and_the_object_say_the_same() {
        let text = description();
        for value in to_json().as_object().unwrap().values() {
            let words = match value {
                Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>(),
                other => vec![other.as_str().unwrap()],
            };
            assert!(words.iter().all(|word| text.contains(word)), "{value} is not in {text}");
        }
    }
}
