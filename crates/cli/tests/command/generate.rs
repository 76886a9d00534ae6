//! Tests of `eyas completions` and `eyas man`.

use std::fs;
use std::process::Command;

use crate::stage::Eyas;

#[test]
fn completions_include_the_flags_in_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = Eyas::new("completions").arg(shell).run().exits(0).out;
        assert!(script.contains("doh-url"), "{shell}");
    }
}

#[test]
fn help_describes_both() {
    let help = Eyas::new("--help").run().exits(0).out;
    for name in ["completions", "man"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {help}");
    }
}

/// Every page has its name as file name and title, and contains every flag.
#[test]
fn man_pages_have_what_the_help_has() {
    let directory = tempfile::tempdir().expect("a directory");
    Eyas::new("man --out man1").within(directory.path()).run().exits(0);
    let pages = ["", "-get", "-race", "-pipe", "-serve", "-memory", "-man", "-lab-run"];
    for page in pages {
        let file = directory.path().join("man1").join(format!("eyas{page}.1"));
        let text = fs::read_to_string(&file).expect(page);
        let title = format!(".TH EYAS{} 1 \" \" \"eyas ", page.to_uppercase());
        assert!(text.contains(&title), "{page}: {text}");
        let shown = text.replace('\\', "");
        assert!(shown.contains(&format!(".SH NAME\neyas{page} - ")), "{page}: {text}");
        let words = page.replace('-', " ");
        let help = Eyas::new(&format!("{words} --help")).run().exits(0).out;
        for flag in help.split_whitespace().filter(|word| word.starts_with("--")) {
            // The value of an option is set apart in the page.
            let flag = flag.split(['[', '=']).next().unwrap_or(flag);
            let flag = flag.trim_end_matches([',', '.', ';', ':', '\'', ')', ']']);
            assert!(shown.contains(flag), "{page} lacks {flag}");
        }
        let printed = Eyas::new(&format!("man {words}")).run().exits(0).out;
        assert_eq!(printed, text, "{page}");
    }
    let get = fs::read_to_string(directory.path().join("man1/eyas-get.1")).expect("a page");
    assert!(get.contains("Delay between two attempts when nothing is remembered"), "{get}");
    assert!(get.contains(".nf\n"), "{get}");
}

/// As formatted by nroff; skipped without it.
#[test]
fn man_pages_fit_eighty_columns() {
    let directory = tempfile::tempdir().expect("a directory");
    Eyas::new("man --out man1").within(directory.path()).run().exits(0);
    for file in fs::read_dir(directory.path().join("man1")).expect("reads") {
        let file = file.expect("a file").path();
        let set = Command::new("nroff").args(["-man", "-c", "-rLL=80n"]).arg(&file).output();
        let Ok(set) = set else { return eprintln!("SKIPPED: there is no nroff") };
        // Bold letters are printed twice, with a backspace.
        let page = String::from_utf8_lossy(&set.stdout);
        let mut letters = String::new();
        for letter in page.chars() {
            match letter {
                '\u{8}' => drop(letters.pop()),
                letter => letters.push(letter),
            }
        }
        if file.extension().is_some_and(|section| section == "7") {
            assert!(letters.contains("DESCRIPTION"), "{}: {letters}", file.display());
            continue;
        }
        for section in ["OPTIONS", "EXIT STATUS", "ENVIRONMENT"] {
            assert!(letters.contains(section), "{}: {letters}", file.display());
        }
        assert!(!letters.contains("docs/"), "{}: {letters}", file.display());
        let too_long = letters.lines().find(|line| line.chars().count() > 80);
        assert_eq!(too_long, None, "{}", file.display());
    }
}

#[test]
fn guides_are_pages_and_can_be_printed() {
    let directory = tempfile::tempdir().expect("a directory");
    Eyas::new("man --out man1").within(directory.path()).run().exits(0);
    let file = fs::read_to_string(directory.path().join("man1/eyas-guide-lab.7")).expect("a page");
    assert_eq!(Eyas::new("man guide lab").run().exits(0).out, file);
    assert!(file.contains(".TH EYAS-GUIDE-LAB 7"), "{file}");
    let lab = Eyas::new("man lab").run().exits(0).out.replace('\\', "");
    assert!(lab.contains("eyas-guide-lab(7) explains how to write a plan"), "{lab}");
    for (line, word) in [("man guide", "sctp-run"), ("man guide nosuch", "nosuch")] {
        let refused = Eyas::new(line).run().exits(2).err;
        assert!(refused.contains(word), "{refused}");
    }
}

#[test]
fn no_file_is_written_unless_requested() {
    let directory = tempfile::tempdir().expect("a directory");
    for line in ["man", "man get", "completions bash"] {
        Eyas::new(line).within(directory.path()).run().exits(0);
    }
    let refused = Eyas::new("man man1").within(directory.path()).run().exits(2);
    assert!(refused.err.contains("--out"), "{}", refused.err);
    assert_eq!(fs::read_dir(directory.path()).expect("reads").count(), 0);
}
