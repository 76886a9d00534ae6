//! The flags of `eyas get` beside those of the installed curl: the same command line has the same outcome.
//!
//! Compared are the exit code, standard output, and the files that were written. docs/guide/curl.md has what differs.

mod parts;
mod server;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::ports::own_port;
use crate::stage::{Eyas, Peer, Served};
use eyas_testserver::ServerPersonality;

/// Command lines, which follow `curl` and `eyas get`. `URL` is the server, `CLOSED` a port where nothing listens, `TLS` a
/// server of HTTP/2 with TLS, `H2C` one of HTTP/2 without, `SECURED` the first one as if it had TLS, `SOCKET` the server at a socket of the file system, and `TOOL` differs between the two. Variables may stand in
/// front.
const LINES: &[&str] = &[
    // One URL and several, over one connection.
    "URL/text",
    "--url URL/text",
    "URL/text URL/bytes",
    "URL/connection URL/connection",
    "CLOSED/ URL/text",
    "URL/text CLOSED/",
    "--url URL/text -o one URL/bytes -o two",
    "--url URL/text URL/bytes",
    "URL/bytes --url URL/text -O -o two",
    "--fail-early CLOSED/ URL/text",
    "CLOSED/",
    "http://",
    "--no-such-flag URL/text",
    // Flags given twice, and those that are usually written together.
    "-s -s -S -S URL/text",
    "-sSL URL/redirect/2",
    "-fsSL URL/redirect/2",
    "-L -L --max-redirs 9 --max-redirs 1 URL/redirect/3",
    "-N -# --no-progress-meter URL/text",
    "-g URL/echo?[1-3]",
    "-L --no-location URL/redirect/1",
    "-f --no-fail -s --no-silent -i --no-include --compressed --no-compressed URL/status/404",
    "--no-location -L --no-buffer --buffer URL/redirect/1",
    "-6 -4 URL/text",
    "-4 -6 --ipv4 URL/text",
    "--http2-prior-knowledge --http1.1 -w %{http_version} URL/text",
    "--http1.1 --http2-prior-knowledge -w %{http_version} H2C/bytes/10",
    "-k --http1.1 --http2 -w %{http_version} TLS/bytes/10",
    "-k --http2 --http1.1 -w %{http_version} TLS/bytes/10",
    // Redirects and statuses.
    "URL/redirect/1",
    "-L URL/redirect/2",
    "-L -d x URL/redirect/1",
    "-L --max-redirs 1 URL/redirect/3",
    "-L --max-redirs 0 URL/redirect/1",
    "-L --max-redirs 0 -o out URL/redirect/1",
    "-L --max-redirs 0 URL/text",
    "--max-redirs 0 URL/redirect/1",
    "-L --max-redirs -1 URL/redirect/3",
    "URL/status/404",
    "-f URL/status/404",
    "-fsS URL/status/500",
    "-f -o out URL/status/404",
    "--fail-with-body URL/status/404",
    "--fail-with-body -o out URL/status/404",
    "-f URL/status/404 URL/text",
    // Heads.
    "-i URL/text",
    "-I URL/text",
    "-I -f URL/text",
    "-i -L URL/redirect/1",
    "-i URL/reason",
    "-i -L URL/reason/redirect",
    "-I -X GET URL/text",
    "-I -X GET -w %{size_download} -o out URL/text",
    "--compressed -i URL/gzip",
    "--compressed -D heads -o out -w '%{size_download} %header{content-length}' URL/gzip",
    "-i -o out URL/gzip",
    "--compressed URL/gzip/none",
    "--compressed -o out URL/gzip/none",
    "-D - URL/text",
    "-D heads -o out -L URL/redirect/1",
    // Files.
    "-o out URL/text",
    "-o - URL/text",
    "-o one -o two URL/text URL/bytes",
    "-o one URL/text URL/bytes",
    "-O URL/text",
    "-O -O URL/text URL/bytes",
    "-O -o two URL/text URL/bytes",
    "--remote-name-all URL/text URL/bytes",
    "-OJ URL/named",
    "-OJ URL/text",
    "-OJ URL/taken",
    "-OJ URL/named URL/named -OJ",
    "-OJL URL/redirect/1",
    "-OJ -C - URL/named",
    "-J -o data URL/taken",
    "-O --output-dir in/it --create-dirs URL/text",
    "-o in/it/out --create-dirs URL/text",
    "-o no/such/out URL/text",
    "-R -o out URL/text",
    // Parts.
    "-r 0-4 URL/bytes",
    "-r 5- URL/bytes",
    "-r -5 URL/bytes",
    "-r 5 URL/bytes",
    "-r 100- URL/bytes",
    "-r 0-4 URL/norange",
    "-C - -o begun URL/bytes",
    "-C - -o whole URL/bytes",
    "-C - -o new URL/bytes",
    "-C - -O URL/bytes",
    "-C 5 URL/bytes",
    "-C 10 -o begun URL/bytes",
    "-C - -o begun URL/norange",
    // What is printed afterwards.
    "-o out -w %{http_code}\\n URL/text",
    "-sw '%{response_code} %{size_download} %{content_type}\\n' URL/status/404",
    "-L -o out -w '%{num_redirects}\\t%{url_effective}\\n' URL/redirect/2",
    "-o out -w '%{redirect_url}\\n' URL/redirect/2",
    "-w '%{method} %{http_version} %{remote_ip} %{num_connects} %{urlnum}\\n' URL/text URL/text",
    "-d abc -o out -w '%{size_upload} %{method}\\n' URL/echo",
    "-w '%header{etag} %header{none} 100%% %x \\x' URL/text",
    "-w '%{http_code} %{exitcode} %{num_connects}\\n' CLOSED/",
    "-w '%{onerror}failed\\n' URL/text CLOSED/",
    "-w '%{stderr}hidden%{stdout}shown\\n' URL/text",
    "-w @format URL/text",
    "-w '%{size_header} %{num_headers}' URL/list",
    "-L -w '%{size_header}' URL/reason/redirect",
    "-w '%{header_json}' URL/list",
    "-w '%{header_json} %{size_header}' CLOSED/",
    "-o out -w '%{filename_effective}\\n' URL/text",
    "-w %{no_such_variable}\\n URL/text",
    // What is sent.
    "-d a=1 -d b=2 URL/echo",
    "-d @data URL/echo",
    "--data-binary @data URL/echo",
    "--data-raw @data URL/echo",
    "--data-urlencode 'a=b c&d' URL/echo",
    "--data-urlencode n@data URL/echo",
    "-d 1 --data-urlencode '=x y' --data-binary @data -d 2 URL/echo",
    "-G -d '' URL/echo",
    "-G -d '' URL/echo?q=0",
    "-G -d a=1 --data-urlencode 'b=2 3' URL/echo?q=0",
    "-X DELETE URL/echo",
    "-X PUT -d x URL/echo",
    "-d '' URL/echo",
    "-F a=1 -F 'f=@data;type=text/x' URL/echo",
    "-T data URL/echo",
    "-T data URL/echo/",
    "-H 'X-One: 1' -H 'X-Two;' -H Accept: URL/echo",
    "-H @fields URL/echo",
    "-H @fields -H 'X-Two: three' -H @fields URL/echo",
    "-e 'http://from.test/;auto' -L URL/cookies",
    "-e ';auto' -L -w %{referer} URL/cookies",
    "-e ';auto' URL/echo",
    "-e http://from.test/ -L URL/cookies",
    "-A agent -e http://from.test/ URL/echo",
    "-u ada:secret URL/echo",
    "--oauth2-bearer token URL/echo",
    // Cookies.
    "-b 'a=1; b=2' URL/echo",
    "-b a=1 -b b=2 URL/echo",
    "-b cookies URL/echo",
    "-b cookies -b own=1 URL/echo",
    "-b nosuchfile -L URL/cookies",
    "-b own=1 -L URL/cookies",
    "-c jar -o out URL/cookies",
    "-b cookies -c jar -L -o out URL/cookies",
    "-L -c - URL/cookies",
    // Limits and retries.
    "-m 0 URL/text",
    "-m 0.5 URL/silent",
    "--connect-timeout 0 -m 9 -m 0 URL/text",
    "--limit-rate 1M URL/bytes",
    "--limit-rate 0 URL/bytes",
    "--retry 2 -f URL/busy/TOOL-1",
    "--retry 2 -o out URL/busy/TOOL-2",
    "--retry 1 --retry-delay 1 -f URL/status/503",
    "--retry 3 --retry-delay 9 --retry-max-time 1 -f URL/status/503",
    "--retry 3 -f URL/status/404",
    "--retry 1 --retry-connrefused CLOSED/",
    "URL/short",
    "URL/hangup",
    "-k SECURED/text",
    // How the server is reached.
    "--interface 127.0.0.1 URL/text",
    "--interface lo URL/text",
    "--interface nosuch0 URL/text",
    "--interface 203.0.113.9 URL/text",
    "-k -x URL https://a.test/",
    "-x URL http://a.test/echo",
    "-x URL --noproxy '*' URL/echo",
    "http_proxy=URL http://a.test/echo",
    "http_proxy=URL --noproxy 127.0.0.1 URL/echo",
    "http_proxy=CLOSED no_proxy=a.test --noproxy '' URL/echo",
    "--unix-socket SOCKET http://a.test/echo http://a.test/connection",
    "--unix-socket SOCKET -w '%{http_code} %{num_connects}\\n' http://a.test/text",
    "--unix-socket no/such http://a.test/text",
    "--http2-prior-knowledge -w %{http_version}\\n H2C/bytes/10",
    "TLS/bytes/10",
    "-k -w %{http_version}\\n TLS/bytes/10",
    "-k --http1.1 -w %{http_version}\\n TLS/bytes/10",
    "--cacert ca.pem -w '%{ssl_verify_result}\\n' TLS/bytes/10",
];

/// The servers that the lines name.
struct Servers {
    url: String,
    closed: String,
    tls: String,
    h2c: String,
    secured: String,
    socket: String,
}

/// The outcome of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    out: String,
    files: BTreeMap<String, String>,
}

#[test]
fn a_command_line_has_the_same_outcome_as_with_curl() {
    if Command::new("curl").arg("-q").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no curl here to compare with");
        return;
    }
    let peer = Peer::start(ServerPersonality::TcpOnly);
    let h2c = Served::start(Eyas::new("serve --plain"));
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    server::start_at(&socket);
    let url = |address: &dyn std::fmt::Display| format!("http://{address}");
    let plain = server::start();
    let servers = Servers {
        url: url(&plain),
        secured: format!("https://{plain}"),
        closed: url(&format!("127.0.0.1:{}", own_port())),
        tls: format!("https://127.0.0.1:{}", peer.port()),
        h2c: url(&h2c.address),
        socket: socket.display().to_string(),
    };
    let root = fs::read_to_string(peer.directory().join("ca.pem")).expect("reads");
    let (left, different) = (Mutex::new(LINES.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(line) = left.lock().expect("not poisoned").next() else { return };
                    let [curl, eyas] =
                        ["curl", "eyas"].map(|tool| run(tool, line, &servers, &root));
                    if curl != eyas {
                        let text = format!("{line}\n  curl {curl:?}\n  eyas {eyas:?}");
                        different.lock().expect("not poisoned").push(text);
                    }
                }
            });
        }
    });
    let different = different.into_inner().expect("not poisoned");
    assert!(different.is_empty(), "{} lines:\n{}", different.len(), different.join("\n"));
}

/// curl's CVE-2010-3842: a server does not choose which file of the user it writes, nor through a link.
#[test]
fn a_name_of_the_server_replaces_no_file_and_no_link() {
    let directory = tempfile::tempdir().expect("a directory");
    let [given, precious] = ["given.txt", "precious"].map(|name| directory.path().join(name));
    let line = format!("get -OJ http://{}/named", server::start());
    let run = |code| Eyas::new(&line).within(directory.path()).run().exits(code).err;
    fs::write(&precious, "old").expect("writes");
    for target in ["precious", "nothing"] {
        std::os::unix::fs::symlink(target, &given).expect("links");
        let err = run(23);
        assert!(err.contains("given.txt is there already") && err.contains("-o FILE"), "{err}");
        fs::remove_file(&given).expect("removes");
    }
    run(0);
    assert_eq!(fs::read_to_string(&given).expect("reads"), "named\n");
    run(23);
    assert_eq!(fs::read_to_string(&precious).expect("reads"), "old");
    assert_eq!(files(directory.path(), directory.path()).len(), 2);
}

/// The page says of each flag of curl what has become of it.
#[test]
fn the_page_has_all_flags_of_curl() {
    let page = include_str!("../../../../docs/guide/curl.md");
    let mentioned: Vec<&str> = page
        .split(|letter: char| !(letter.is_ascii_alphanumeric() || "-.*".contains(letter)))
        .filter(|word| word.starts_with("--"))
        .map(|word| word.trim_end_matches('.'))
        .collect();
    let has = page.split("## What eyas has\n").nth(1).and_then(|rest| rest.split("## ").next());
    let help = Eyas::new("help get").run().exits(0).out;
    let words: Vec<&str> = help.split([' ', ',', '\n', '[', ']']).collect();
    let is_flag = |word: &&str| word.starts_with("--") && !word.starts_with("---");
    for flag in has.expect("a chapter").split(['`', ' ']).filter(is_flag) {
        assert!(words.contains(&flag), "{flag} is not in the help");
    }
    let Ok(curl) = Command::new("curl").args(["-q", "--help", "all"]).output() else {
        eprintln!("SKIPPED: there is no curl here whose flags could be missing");
        return;
    };
    let help = String::from_utf8_lossy(&curl.stdout).into_owned();
    let flags =
        help.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
    let is_mentioned = |flag: &str| {
        mentioned.iter().any(|word| match word.strip_suffix('*') {
            Some(start) => flag.starts_with(start),
            None => flag == *word,
        })
    };
    let missing: Vec<&str> = flags.filter(|flag| !is_mentioned(flag)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Runs one of the programs in a new directory.
fn run(tool: &str, line: &str, servers: &Servers, root: &str) -> Outcome {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let cookies = "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tkept\tyes\n\
                   127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tlate\tyes\n";
    let begun = &server::BYTES[..server::BEGUN];
    let given = [
        ("begun", begun),
        ("whole", server::BYTES),
        ("data", "one\ntwo\r\n& 3\n"),
        ("format", "%{http_code} from\n a file\\n"),
        ("fields", "X-One: 1\r\n\r\nX-Two: two\nX-Empty;\nAccept:"),
        ("cookies", cookies),
        ("ca.pem", root),
    ];
    for (name, content) in given {
        fs::write(path.join(name), content).expect("writes");
    }
    let mut words = words(line);
    for word in &mut words {
        for (name, value) in [
            ("URL", servers.url.as_str()),
            ("CLOSED", &servers.closed),
            ("TLS", &servers.tls),
            ("H2C", &servers.h2c),
            ("SECURED", &servers.secured),
            ("SOCKET", &servers.socket),
            ("TOOL", tool),
        ] {
            *word = word.replace(name, value);
        }
    }
    let mut command = match tool {
        "curl" => Command::new("curl"),
        _ => Command::new(env!("CARGO_BIN_EXE_eyas")),
    };
    let is_variable =
        |word: &&String| word.split_once('=').is_some_and(|(name, _)| name.ends_with("_proxy"));
    let variables = words.iter().take_while(is_variable).filter_map(|word| word.split_once('='));
    let variables: Vec<(&str, &str)> = variables.collect();
    command
        .env_clear()
        .env("EYAS_MEMORY", "none")
        .env("HOME", path)
        .envs(variables.iter().copied());
    if let Some(search) = std::env::var_os("PATH") {
        command.env("PATH", search);
    }
    command.args((tool == "eyas").then_some("get")).args(&words[variables.len()..]);
    let output = command.current_dir(path).stdin(Stdio::null()).output().expect("it runs");
    let out = comparable("-", &String::from_utf8_lossy(&output.stdout));
    let mut files = files(path, path);
    files.retain(|name, content| !given.contains(&(name.as_str(), content.as_str())));
    Outcome { code: output.status.code(), out, files }
}

/// Splits a line as a shell does, with single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match (letter, words.last_mut()) {
            ('\'', _) => is_quoted = !is_quoted,
            (' ', _) if !is_quoted => words.push(String::new()),
            (letter, Some(word)) => word.push(letter),
            (_, None) => {}
        }
    }
    words
}

/// Returns the files below a directory, with their contents and whether they are from the last century.
fn files(directory: &Path, root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, root));
            continue;
        }
        let name = path.strip_prefix(root).expect("is below").display().to_string();
        let changed_at = entry.metadata().and_then(|metadata| metadata.modified()).expect("a time");
        let seconds = changed_at.duration_since(std::time::UNIX_EPOCH).expect("later").as_secs();
        let age = if seconds < 946_684_800 { "old: " } else { "" };
        let content = String::from_utf8_lossy(&fs::read(&path).expect("reads")).into_owned();
        found.insert(name.clone(), format!("{age}{}", comparable(&name, &content)));
    }
    found
}

/// Removes what is the program's own choice: comments of a cookie file, and the order of its lines.
fn comparable(name: &str, text: &str) -> String {
    if name != "jar" && !text.contains("# Netscape HTTP Cookie File") {
        return text.to_owned();
    }
    let is_comment =
        |line: &&str| line.is_empty() || (line.starts_with('#') && !line.starts_with("#HttpOnly_"));
    let mut lines: Vec<&str> = text.lines().filter(|line| !is_comment(line)).collect();
    lines.sort_unstable();
    lines.join("\n")
}
