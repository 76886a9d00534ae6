//! Tests of colours, tables, durations and counts.

use std::time::Duration;

use super::*;
use crate::flags::ColorChoice;

fn style(choice: ColorChoice, terminal: bool, environment: &[(&str, &str)]) -> OutputStyle {
    OutputStyle::new(choice, terminal, |name| {
        environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn things_are_counted_in_grammar() {
    for (number, text) in [(0, "no handshakes"), (1, "1 handshake"), (1_234, "1,234 handshakes")] {
        assert_eq!(counted(number, "handshake"), text);
    }
}

#[test]
fn colours_need_a_terminal_and_no_opt_out() {
    use ColorChoice::{Always, Auto, Never};
    assert!(style(Auto, true, &[]).colour);
    assert!(!style(Auto, false, &[]).colour);
    assert!(!style(Auto, true, &[("NO_COLOR", "1")]).colour);
    assert!(style(Auto, true, &[("NO_COLOR", "")]).colour);
    assert!(!style(Auto, true, &[("TERM", "dumb")]).colour);
    assert!(style(Always, false, &[("NO_COLOR", "1")]).colour);
    assert!(!style(Never, true, &[]).colour);
}

#[test]
fn locales_without_unicode_get_ascii() {
    let unicode =
        |environment: &[(&str, &str)]| style(ColorChoice::Auto, true, environment).unicode;
    assert!(unicode(&[]));
    assert!(unicode(&[("LANG", "en_GB.UTF-8")]));
    assert!(unicode(&[("LANG", "C.utf8")]));
    assert!(!unicode(&[("LANG", "C")]));
    assert!(!unicode(&[("LC_ALL", "POSIX"), ("LANG", "en_GB.UTF-8")]));
}

#[test]
fn a_pipe_gets_eighty_columns() {
    assert_eq!(style(ColorChoice::Auto, false, &[("COLUMNS", "200")]).width, 80);
    assert_eq!(style(ColorChoice::Auto, true, &[("COLUMNS", "100")]).width, 100);
    assert_eq!(style(ColorChoice::Auto, true, &[("COLUMNS", "9")]).width, 60);
}

#[test]
fn a_line_without_colour_is_its_text() {
    let line = PaintedLine::new().with_span(Paint::Good, "won").with_span(Paint::Plain, " it  ");
    assert_eq!(line.to_text(false), "won it");
    assert_eq!(line.to_text(true), "\u{1b}[1m\u{1b}[32mwon\u{1b}[0m it");
    assert_eq!(line.width(), 8);
}

#[test]
fn numbers_are_not_wrapped_next_to_long_names() {
    let narrow = OutputStyle { width: 40, ..style(ColorChoice::Never, false, &[]) };
    let row = ["a name that is longer than the screen is wide", "203.5"];
    let row = row.map(|text| (Paint::Plain, text.to_owned())).to_vec();
    let lines = table_of_numbers(&["Round trip", "200 ms"], vec![row], narrow);
    let lines: Vec<String> = lines.iter().map(|line| line.to_text(false)).collect();
    for whole in ["200 ms", "203.5"] {
        assert!(lines.iter().any(|line| line.ends_with(whole)), "{lines:#?}");
    }
    assert!(lines.iter().all(|line| columns(line) <= 40), "{lines:#?}");
}

#[test]
fn a_last_column_without_room_is_printed_below() {
    let address = "[2001:db8:1234:5678:9abc:def0:1234:5678]:443";
    let why = "unreachable: no route leads to the network that this address is in";
    let row =
        |address: &str| [address, "no", why].map(|text| (Paint::Plain, text.to_owned())).to_vec();
    let render = |address: &str, width: usize| -> Vec<String> {
        let style = OutputStyle { width, unicode: false, ..style(ColorChoice::Never, false, &[]) };
        let lines = table(&["address", "works", "why not"], vec![row(address)], style);
        lines.iter().map(|line| line.to_text(false)).collect()
    };
    for width in [60, 80, 110] {
        for address in [address, "192.0.2.1:443"] {
            let lines = render(address, width);
            assert!(lines.iter().all(|line| columns(line) <= width), "{lines:#?}");
            let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
            assert!(why.split(' ').all(|word| words.contains(&word)), "whole words: {lines:#?}");
        }
    }
    assert_eq!(render("192.0.2.1:443", 80).len(), 4, "beside it where there is room");
    insta::assert_snapshot!(render(address, 60).join("\n"));
}

#[test]
fn a_cell_as_wide_as_the_terminal_is_printed_below() {
    let address = "[2001:db8:1234:5678:9abc:def0:1234:5678]:443";
    let cells = ["a.name.of.some.length.example.org", "sctp-udp dtls", address, "5 min", "good"];
    let row = cells.map(|text| (Paint::Plain, text.to_owned())).to_vec();
    let header = ["host", "over", "address", "age", "verdict"];
    for width in [60, 80, 110] {
        let style = OutputStyle { width, ..style(ColorChoice::Never, false, &[]) };
        let lines = table(&header, vec![row.clone()], style);
        let lines: Vec<String> = lines.iter().map(|line| line.to_text(false)).collect();
        assert!(lines.iter().all(|line| columns(line) <= width), "{width}: {lines:#?}");
        let page = lines.join("\n");
        assert!(cells.iter().all(|cell| page.contains(cell)), "{width}: {page}");
    }
}

#[test]
fn characters_outside_the_locale_are_replaced() {
    let ascii = OutputStyle { unicode: false, ..style(ColorChoice::Never, false, &[]) };
    assert_eq!(ascii.transliterate("1.5 ms ± 0.2, ≥ 3, σ"), "1.5 ms +/- 0.2, >= 3, sigma");
    assert_eq!(ascii.transliterate("日"), "?");
    assert_eq!(OutputStyle { unicode: true, ..ascii }.transliterate("± 日"), "± 日");
    let cell = vec![(Paint::Plain, "103 µs".to_owned())];
    let mut lines = table(&["round trip"], vec![cell.clone()], ascii);
    lines.extend(table_of_numbers(&["≥ 3 ms"], vec![cell], ascii));
    lines.extend(wrapped(Paint::Plain, "after 103 µs", 2, ascii));
    for line in lines {
        assert!(line.to_text(false).is_ascii(), "{line:?}");
    }
}

#[test]
fn times_have_about_two_digits() {
    let cases = [
        (0, "0 ms"),
        (840, "0.84 ms"),
        (999, "1.0 ms"),
        (4_200, "4.2 ms"),
        (9_960, "10 ms"),
        (58_400, "58 ms"),
        (999_900, "1.00 s"),
        (1_250_000, "1.25 s"),
        (30_000_000, "30 s"),
        (300_000_000, "5 min"),
        (7_200_000_000, "2 h"),
        (172_800_000_000, "2 days"),
    ];
    for (micros, text) in cases {
        assert_eq!(time(Duration::from_micros(micros)), text);
    }
}

#[test]
fn thousands_are_separated() {
    for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
        assert_eq!(count(number), text);
    }
}

#[test]
fn characters_that_a_terminal_would_obey_are_escaped_everywhere() {
    let text = "a\u{1b}[2J\u{9b}m\u{202e}b\u{2028}\u{200b}";
    let shown = r"a\u{1b}[2J\u{9b}m\u{202e}b\u{2028}\u{200b}";
    for unicode in [true, false] {
        let style = OutputStyle { unicode, ..style(ColorChoice::Never, false, &[]) };
        let cell = || vec![(Paint::Plain, text.to_owned())];
        let mut lines = vec![PaintedLine::new().with_span(Paint::Plain, text)];
        lines.extend(table(&["name"], vec![cell()], style).pop());
        lines.extend(table_of_numbers(&["name"], vec![cell()], style).pop());
        lines.extend(wrapped(Paint::Plain, text, 2, style));
        for line in lines {
            assert_eq!(line.to_text(false).trim(), shown);
        }
    }
    let coloured = OutputStyle { colour: true, ..style(ColorChoice::Never, false, &[]) };
    let row = vec![(Paint::Bad, "bad".to_owned())];
    let lines = table(&["name"], vec![row], coloured);
    assert!(lines.iter().any(|line| line.to_text(true).contains("\u{1b}[")), "{lines:?}");
}

#[test]
fn objects_are_escaped_and_keep_their_meaning() {
    let value = serde_json::json!({ "a\u{9b}": ["\u{202e}\u{e0001}\u{7f}", "\n", "é"] });
    for pretty in [true, false] {
        let text = shown_json(&value, pretty);
        assert!(text.contains(r#""\u202e\udb40\udc01\u007f""#), "{text}");
        assert!(text.contains("é") && text.contains(r"a\u009b") && text.contains('\n') == pretty);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}
