//! What is requested, and what is sent with it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::data::DataFlags;
use crate::flags::error::ValueError;
use crate::flags::form::{self, FormField};
use crate::flags::values::{self, HeaderLine};

/// The request.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestFlags {
    /// Request only the headers (HEAD), and print them
    #[arg(short = 'I', long, conflicts_with_all = ["data", "form", "form_string", "upload_file"])]
    pub(crate) head: bool,
    /// Request method
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(crate) method: Option<http::Method>,
    /// Add a header; 'Name;' sends it empty, 'Name:' omits one that eyas would send; @FILE has one in
    /// each line, @- is standard input
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<HeaderSource>,
    #[command(flatten)]
    pub(crate) data: DataFlags,
    /// Send the data of -d in the query of the URL, with GET
    #[arg(short = 'G', long)]
    pub(crate) get: bool,
    /// Send a form with POST (multipart/form-data): NAME=TEXT, NAME=@FILE to upload a file, NAME=<FILE for
    /// its text; ;type=TYPE and ;filename=NAME may follow
    #[arg(short = 'F', long, value_name = "NAME=CONTENT", value_parser = form::field,
          conflicts_with_all = ["data"])]
    pub(crate) form: Vec<FormField>,
    /// Like --form, but use the text as it is, even if it starts with @ or <
    #[arg(long, value_name = "NAME=TEXT", value_parser = form::plain_field,
          conflicts_with_all = ["data"])]
    pub(crate) form_string: Vec<FormField>,
    /// Send FILE with PUT, - is standard input; if the URL ends in /, the file name is appended
    #[arg(short = 'T', long, value_name = "FILE",
          conflicts_with_all = ["data", "form", "form_string"])]
    pub(crate) upload_file: Option<PathBuf>,
    /// Request only these bytes: 0-499, 500-, or -500 for the last ones; the server may ignore it
    #[arg(short = 'r', long, value_name = "RANGE", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,
    /// Follow redirects
    #[arg(short = 'L', long)]
    pub(crate) location: bool,
    /// Maximum number of redirects to follow; -1 is no limit
    #[arg(long, value_name = "N", default_value = "50", allow_negative_numbers = true,
          value_parser = values::redirects)]
    pub(crate) max_redirs: usize,
    /// User-Agent to send
    #[arg(short = 'A', long, value_name = "NAME")]
    pub(crate) user_agent: Option<String>,
    /// Referer to send; with ;auto after it, requests after a redirect name the page before
    #[arg(short = 'e', long, value_name = "URL")]
    pub(crate) referer: Option<String>,
    /// User and password for HTTP Basic authentication
    #[arg(short = 'u', long, value_name = "USER:PASSWORD")]
    pub(crate) user: Option<String>,
    /// Bearer token to send (RFC 6750)
    #[arg(long, value_name = "TOKEN", hide_short_help = true)]
    pub(crate) oauth2_bearer: Option<String>,
    /// Request a compressed response and decompress it
    #[arg(long)]
    pub(crate) compressed: bool,
    /// Proxy for requests over TCP; by default the environment decides (https_proxy, no_proxy)
    #[arg(short = 'x', long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// Hosts for which no proxy is used, instead of those of the environment (no_proxy)
    #[arg(long, value_name = "HOSTS")]
    pub(crate) noproxy: Option<String>,
    /// Send the cookies NAME=VALUE; NAME=VALUE, or those of a file in Netscape's format
    #[arg(short = 'b', long, value_name = "COOKIES|FILE")]
    pub(crate) cookie: Vec<String>,
    /// Write all cookies to FILE in Netscape's format at the end; - is standard output
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) cookie_jar: Option<PathBuf>,
    /// Connect from this address, or from those of this network interface
    #[arg(long, value_name = "ADDR|NAME")]
    pub(crate) interface: Option<SourceFlag>,
    /// Connect to this socket of the file system, whatever the host of the URL is
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interface", "proxy"])]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Keep cookies between the requests of a chain of redirects
    #[arg(long)]
    pub(crate) cookies: bool,
}

/// Where header lines come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderSource {
    /// This is one.
    Line(HeaderLine),
    /// Each line of this file is one.
    File(PathBuf),
}

impl FromStr for HeaderSource {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.strip_prefix('@') {
            Some(file) => Ok(Self::File(file.into())),
            None => values::header(text).map(Self::Line),
        }
    }
}

/// Where connections come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceFlag {
    /// This address.
    Address(IpAddr),
    /// The addresses of this network interface.
    Interface(String),
}

impl FromStr for SourceFlag {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        // curl's prefixes for what is an interface or an address only.
        let text = ["if!", "host!"]
            .into_iter()
            .find_map(|prefix| text.strip_prefix(prefix))
            .unwrap_or(text);
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        Ok(bare.parse().map_or_else(|_| Self::Interface(text.to_owned()), Self::Address))
    }
}
