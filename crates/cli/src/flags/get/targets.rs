//! The URLs, and the destinations of `-o` and `-O`, which belong to them in the order in which both are given.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

const FILE: &str = "output";
const REMOTE_NAME: &str = "remote_name";

const URLS: &str = "urls";
const MORE_URLS: &str = "more_urls";

/// The URLs, with and without `--url`, in the order in which they are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Urls(pub(crate) Vec<String>);

impl Args for Urls {
    fn augment_args(command: Command) -> Command {
        let urls = Arg::new(URLS).value_name("URL").num_args(1..).action(ArgAction::Append);
        let urls = urls
            .required_unless_present(MORE_URLS)
            .help("The URLs to fetch, one after the other; https:// if no scheme is given");
        let more = Arg::new(MORE_URLS).long("url").value_name("URL").action(ArgAction::Append);
        command.arg(urls).arg(more.hide_short_help(true).help("Another URL to fetch"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Urls {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |id| {
            let at = matches.indices_of(id).into_iter().flatten();
            at.zip(matches.get_many::<String>(id).into_iter().flatten())
        };
        let mut all: Vec<_> = given(URLS).chain(given(MORE_URLS)).collect();
        all.sort_by_key(|(index, _)| *index);
        Ok(Self(all.into_iter().map(|(_, url)| url.clone()).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Where the body of a URL goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputTarget {
    /// To this file; `-` is standard output.
    File(PathBuf),
    /// To a file with the name in the URL.
    RemoteName,
}

/// The destinations, in order: the first is for the first URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputTargets(pub(crate) Vec<OutputTarget>);

impl Args for OutputTargets {
    fn augment_args(command: Command) -> Command {
        let file =
            Arg::new(FILE).short('o').long("output").value_name("FILE").action(ArgAction::Append);
        let file = file.value_parser(ValueParser::os_string()).help(
            "Write the body to FILE, which is created once it is complete; - is standard output. With \
             several URLs, the first -o or -O is for the first URL, and so on",
        );
        let name = Arg::new(REMOTE_NAME).short('O').long("remote-name").action(ArgAction::Append);
        let name = name.num_args(0).default_missing_value("true").value_parser(ValueParser::bool());
        let name = name.help("Write the body to a file named after the last part of the URL");
        command.next_help_heading("Output").arg(file).arg(name)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OutputTargets {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let at = |id| matches.indices_of(id).into_iter().flatten();
        let files = matches.get_many::<OsString>(FILE).into_iter().flatten();
        let files = files.map(|path| OutputTarget::File(path.into()));
        let mut all: Vec<_> = at(FILE).zip(files).collect();
        all.extend(at(REMOTE_NAME).map(|index| (index, OutputTarget::RemoteName)));
        all.sort_by_key(|(index, _)| *index);
        Ok(Self(all.into_iter().map(|(_, target)| target).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
