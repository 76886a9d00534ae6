//! `eyas man`: the pages that a package installs with the binary.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | the page of a command |
//! | `sections` | exit status, environment and files |
//! | `guide` | the guides of `docs/`, as pages of section 7 |

mod guide;
mod sections;

use std::fs;
use std::io;
use std::path::Path;

use clap::{Arg, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::failure::{Failure, FailureKind};
use crate::flags::{Cli, ManFlags};
use crate::output;

/// The start of the part of a command's help that has its own section in the man page.
const EXAMPLES: &str = "Examples:\n";
/// The indentation of examples on a man page. With the indentation of text they would not fit in
/// eighty columns.
const EXAMPLES_INDENT: &str = "2n";
/// The word before the topic of a guide, in place of a command.
const GUIDE: &str = "guide";

/// Prints the page of a command, or writes those of all into a directory.
pub(crate) fn run(flags: &ManFlags) -> Result<(), Failure> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    if let Some((guide, topic)) = flags.command.split_first()
        && guide == GUIDE
    {
        return output::text(&guide::page(topic)?);
    }
    let Some(directory) = &flags.out else {
        return output::text(&page(find_command(&root, &flags.command)?));
    };
    let failed = |cause: io::Error| Failure::write(&directory.display().to_string(), &cause);
    fs::create_dir_all(directory).map_err(failed)?;
    write(&root, directory)?;
    guide::all().try_for_each(|(name, page)| write_page(directory, &format!("{name}.7"), &page))
}

/// Writes one page.
fn write_page(directory: &Path, name: &str, page: &[u8]) -> Result<(), Failure> {
    let path = directory.join(name);
    fs::write(&path, page).map_err(|cause| Failure::write(&path.display().to_string(), &cause))
}

fn find_command<'a>(
    root: &'a clap::Command,
    words: &[String],
) -> Result<&'a clap::Command, Failure> {
    words.iter().try_fold(root, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let text = format!("{} has no command {word:?}", name(command).replace('-', " "));
            Failure::new(FailureKind::Usage, text).hint(match names.is_empty() {
                true => "it has only its own page".to_owned(),
                false => format!("it has {}; --out DIR writes all pages", names.join(", ")),
            })
        })
    })
}

/// Writes the pages of a command and of all its subcommands.
fn write(command: &clap::Command, directory: &Path) -> Result<(), Failure> {
    write_page(directory, &format!("{}.1", name(command)), page(command).as_bytes())?;
    command.get_subcommands().try_for_each(|command| write(command, directory))
}

/// Returns the name with hyphens, as in names of man pages.
fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &clap::Command) -> String {
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = render(command, &mut page);
    guide::as_pages(&String::from_utf8_lossy(&page))
}

fn render(command: &clap::Command, page: &mut Vec<u8>) -> io::Result<()> {
    // An empty date would be no argument at all.
    let man = Man::new(command.clone().mut_args(with_full_help))
        .title(name(command).to_uppercase())
        .date(" ")
        .source(concat!("eyas ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    let mut rest = Roff::new();
    let after_help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    sections_after_flags(&mut rest, &after_help);
    sections::add(&mut rest, name(command));
    let also: Vec<String> = match name(command) {
        "eyas" => guide::names().collect(),
        _ => vec!["eyas(1)".to_owned()],
    };
    rest.control("SH", ["SEE ALSO"]).text([roman(also.join(", "))]);
    let mut text = Vec::new();
    rest.to_writer(&mut text)?;
    page.extend(text);
    Ok(())
}

/// Returns a flag with the text that the short help leaves out, and with its aliases.
fn with_full_help(flag: Arg) -> Arg {
    let flag = flag.hide_short_help(false);
    let others = flag.get_visible_aliases().unwrap_or_default().join(", --");
    match (others.as_str(), flag.get_long_help().or(flag.get_help())) {
        ("", _) | (_, None) => flag,
        (others, Some(help)) => {
            let help = format!("{help} [alias: --{others}]");
            flag.long_help(help)
        }
    }
}

/// Adds what follows the flags: the examples, whose lines are kept, then text.
fn sections_after_flags(roff: &mut Roff, text: &str) {
    let mut parts = text.split("\n\n");
    if let Some(examples) = text.starts_with(EXAMPLES).then(|| parts.next()).flatten() {
        roff.control("SH", ["EXAMPLES"]).control("in", [EXAMPLES_INDENT]).control("nf", []);
        for line in examples.lines().skip(1) {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []).control("in", []);
    }
    for (number, paragraph) in parts.enumerate() {
        match number {
            0 => roff.control("SH", ["NOTES"]),
            _ => roff.control("PP", []),
        };
        roff.text([roman(paragraph.replace('\n', " "))]);
    }
}
