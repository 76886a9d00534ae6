//! `eyas URL`, which means `eyas get URL`.

use std::ffi::{OsStr, OsString};

use clap::Command;

/// Inserts `get` into the command line if there is a URL in place of a command.
///
/// A single word is never taken for a URL, so that a misspelt command is reported as such and not
/// looked up in DNS.
pub(super) fn with_get(root: &Command, mut line: Vec<OsString>) -> Vec<OsString> {
    let is_command = |word: &OsStr| {
        word == "help" || root.get_subcommands().any(|subcommand| subcommand.get_name() == word)
    };
    let mut may_be_value = false;
    for word in line.iter().skip(1) {
        let is_flag = word.as_encoded_bytes().starts_with(b"-");
        if !is_flag && is_url(word) {
            line.insert(1, "get".into());
            return line;
        }
        if !is_flag && (is_command(word) || !may_be_value) {
            return line;
        }
        may_be_value = is_flag && !is_switch(root, word);
    }
    line
}

/// Returns whether this is a flag of all commands without a value.
fn is_switch(root: &Command, word: &OsStr) -> bool {
    let name = word.to_str().and_then(|word| word.strip_prefix("--"));
    let mut flags = root.get_arguments();
    flags.any(|flag| flag.get_long() == name && name.is_some() && !flag.get_action().takes_values())
}

/// Returns whether this is an HTTP URL, or a host with a dot, a port or a path.
pub(super) fn is_url(word: &OsStr) -> bool {
    let Some(word) = word.to_str() else { return false };
    if word.starts_with("http://") || word.starts_with("https://") {
        return true;
    }
    let host = word.split('/').next().unwrap_or_default();
    let is_host = host.starts_with(|first: char| first.is_alphanumeric() || first == '[')
        && !host.contains(char::is_whitespace);
    is_host && (host.contains(['.', ':']) || (word.len() > host.len() && host == "localhost"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::flags::Cli;

    fn completed(line: &str) -> String {
        let line = line.split_whitespace().map(OsString::from).collect();
        let line = with_get(&Cli::command(), line);
        line.join(OsStr::new(" ")).into_string().expect("text")
    }

    #[test]
    fn a_url_is_fetched() {
        for line in [
            "https://example.org/",
            "-v https://example.org/",
            "--json -o page https://example.org/",
            "example.org",
            "example.org/a/b",
            "localhost:8443/",
            "localhost/",
            "[::1]:8443/",
            "127.0.0.1",
        ] {
            assert_eq!(completed(&format!("eyas {line}")), format!("eyas get {line}"));
        }
    }

    #[test]
    fn commands_and_misspelt_commands_are_not_urls() {
        for line in [
            "",
            "get https://example.org/",
            "race --all example.org",
            "--json race example.org:443",
            "help get",
            "gte https://example.org/",
            "--json gte https://example.org/",
            "raec example",
            "--help",
            "./file",
            "/etc/hosts",
        ] {
            let line = format!("eyas {line}");
            assert_eq!(completed(&line), line.trim_end());
        }
    }
}
