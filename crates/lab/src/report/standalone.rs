//! Pictures as files of their own, with title, legend and colours inside.

use super::STYLE;
use super::chart::ChartLine;
use super::markup::escape;
use super::picture::{self, FinishedPicture};
use crate::results::ResultsDocument;

/// The width of a picture, the height of its title and of a row of the legend, and the margin.
const WIDTH: f64 = 760.0;
const TITLE: f64 = 30.0;
const ROW: f64 = 22.0;
const MARGIN: f64 = 12.0;
/// The width of a letter, and of the sample of a line with the space beside it.
const LETTER: f64 = 7.2;
const SAMPLE: f64 = 52.0;
/// The space after an entry of the legend.
const GAP: f64 = 22.0;

/// Returns the first pictures of a document, at most this number: their titles, and the files.
pub(super) fn pictures(document: &ResultsDocument, most: usize) -> Vec<(String, String)> {
    let document = &*super::scale::readable(document);
    let all = document.figures.iter().flat_map(|figure| picture::pictures(document, figure));
    all.take(most).map(|drawn| (drawn.title.clone(), file(&drawn))).collect()
}

fn file(drawn: &FinishedPicture) -> String {
    let height = height(&drawn.wide);
    let (legend, legend_height) = legend(&drawn.legend, TITLE + height);
    let total = TITLE + height + legend_height + MARGIN;
    let inside = drawn.wide.replacen(
        "<svg ",
        &format!("<svg x=\"0\" y=\"{TITLE}\" width=\"{WIDTH}\" height=\"{height}\" "),
        1,
    );
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {total}\" \
         width=\"{WIDTH}\" height=\"{total}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>{title}</title>\n<style>\n{dark}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{total}\" fill=\"var(--paper)\"/>\n\
         <text x=\"{MARGIN}\" y=\"20\" font-weight=\"bold\" fill=\"var(--ink)\">{title}</text>\n\
         {inside}\n{legend}</svg>\n",
        title = escape(&drawn.title),
        dark = dark_rules(),
    );
    light()
        .into_iter()
        .fold(svg, |svg, (name, colour)| svg.replace(&format!("var(--{name})"), colour))
}

/// Returns the height of a picture from its view box.
fn height(svg: &str) -> f64 {
    let view_box = svg.split_once("viewBox=\"").and_then(|(_, rest)| rest.split_once('"'));
    let height = view_box.and_then(|(numbers, _)| numbers.split(' ').nth(3)?.parse().ok());
    height.unwrap_or(400.0)
}

/// Returns the legend from this height on, and its own height.
fn legend(lines: &[ChartLine], top: f64) -> (String, f64) {
    let (mut svg, mut x, mut row) = (String::new(), MARGIN, 0.0);
    for line in lines {
        let width = SAMPLE + line.label.chars().count() as f64 * LETTER + GAP;
        if x > MARGIN && x + width > WIDTH {
            (x, row) = (MARGIN, row + 1.0);
        }
        let y = top + ROW * row;
        svg.push_str(&format!(
            "<g transform=\"translate({x:.0} {y:.0})\"><path d=\"M1 9H43\" \
             stroke=\"var(--c{colour})\" fill=\"none\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/>{marker}<text x=\"{SAMPLE}\" y=\"14\" \
             fill=\"var(--ink)\">{label}</text></g>\n",
            colour = line.colour,
            dashes = line.dash.css(),
            marker = line.marker.svg(22, 9, line.colour),
            label = escape(&line.label),
        ));
        x += width;
    }
    let rows = if lines.is_empty() { 0.0 } else { row + 1.0 };
    (svg, rows * ROW)
}

/// Returns rules that replace the light colours by the dark ones where the reader prefers these.
/// Programs without such rules, or without variables, show the light picture.
fn dark_rules() -> String {
    let pairs = light().into_iter().zip(colours("prefers-color-scheme: dark"));
    let rule = |((_, from), (_, to)): ((&str, &str), (&str, &str))| {
        format!("[fill=\"{from}\"] {{ fill: {to} }} [stroke=\"{from}\"] {{ stroke: {to} }}\n")
    };
    format!("@media (prefers-color-scheme: dark) {{\n{}}}\n", pairs.map(rule).collect::<String>())
}

fn light() -> Vec<(&'static str, &'static str)> {
    colours(":root")
}

/// Returns the variables after this place of the style sheet.
fn colours(place: &str) -> Vec<(&'static str, &'static str)> {
    let rest = STYLE.split_once(place).map_or("", |(_, rest)| rest);
    let block = rest.find("--").and_then(|at| rest[at..].split_once('}'));
    let declarations = block.map_or("", |(block, _)| block).split(';');
    let pair = |declaration: &'static str| {
        let (name, colour) = declaration.trim().strip_prefix("--")?.split_once(':')?;
        Some((name, colour.trim()))
    };
    declarations.filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_own_colours_and_legend() {
        let drawn =
            FinishedPicture::sample("a < b", "<svg viewBox=\"0 0 760 400\"></svg>", "Fixed & more");
        let svg = file(&drawn);
        assert!(!svg.contains("var(--"), "{svg}");
        for wanted in ["a &lt; b", "Fixed &amp; more", "#0072b2", "viewBox=\"0 0 760 464\""] {
            assert!(svg.contains(wanted), "{wanted}: {svg}");
        }
        assert!(svg.contains("[fill=\"#1b1f24\"] { fill: #e6e9ed }"), "{svg}");
    }

    #[test]
    fn each_light_colour_has_a_dark_one_and_is_unique() {
        let (light, dark) = (light(), colours("prefers-color-scheme: dark"));
        let names = |colours: &[(&'static str, &'static str)]| -> Vec<&str> {
            colours.iter().map(|(name, _)| *name).collect()
        };
        assert!(light.len() > 10 && names(&light) == names(&dark));
        let values: std::collections::BTreeSet<&str> = light.iter().map(|pair| pair.1).collect();
        assert_eq!(values.len(), light.len());
    }

    #[test]
    fn a_long_legend_has_several_rows() {
        let line = |label: &str| FinishedPicture::sample("", "", label).legend.remove(0);
        let lines: Vec<ChartLine> = (0..4).map(|_| line(&"x".repeat(60))).collect();
        let (svg, height) = legend(&lines, 0.0);
        assert_eq!((svg.matches("<text").count(), height), (4, 4.0 * ROW));
        assert_eq!(legend(&[], 0.0).1, 0.0);
    }
}
