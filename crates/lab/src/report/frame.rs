//! The frame of bars and boxes that stand beside one another: a value axis with lines across, the
//! names of places below, and what both axes show.
//!
//! What the value axis shows stands above it: beside it, upright, a long name would be cut.

use super::markup::{escape, number};

/// A letter of a label, and a line of it, in the units of the picture.
const LETTER: f64 = 7.2;
const LINE: f64 = 17.0;
/// Where a label above an axis begins.
const LABEL_LEFT: f64 = 4.0;

/// What an axis shows, above it in a picture of this width, and how high that is.
pub(super) fn label_above(label: &str, width: u32) -> (String, f64) {
    let room = ((f64::from(width) - 2.0 * LABEL_LEFT) / LETTER) as usize;
    let mut lines = vec![String::new()];
    for word in label.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > room {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    let svg = lines.iter().zip(1_u8..).map(|(line, number)| {
        format!(
            "<text x=\"{LABEL_LEFT}\" y=\"{:.1}\" font-family=\"sans-serif\" font-size=\"13\" \
             fill=\"var(--ink)\">{}</text>\n",
            LINE * f64::from(number) - 3.0,
            escape(line),
        )
    });
    (svg.collect(), LINE * lines.len() as f64)
}

/// A picture that is being drawn.
#[derive(Debug)]
pub(super) struct Frame {
    svg: String,
    width: u32,
    height: u32,
    /// Where the value axis ends.
    top: f64,
}

impl Frame {
    /// Where the value axis stands.
    pub(super) const LEFT: f64 = 52.0;
    const TOP: f64 = 10.0;
    /// What stands below the other axis, and what stays free to the right.
    const FOOT: f64 = 48.0;
    const MARGIN: f64 = 10.0;

    /// Begins a picture of this size, whose values are these.
    pub(super) fn new((width, height): (u32, u32), y_label: &str) -> Self {
        let (label, label_height) = label_above(y_label, width);
        let svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" \
             font-family=\"sans-serif\" font-size=\"13\" fill=\"var(--ink)\">\n{label}"
        );
        Self { svg, width, height, top: Self::TOP + label_height }
    }

    /// Where the other axis stands.
    pub(super) fn bottom(&self) -> f64 {
        f64::from(self.height) - Self::FOOT
    }

    /// How far values reach above it.
    pub(super) fn rise(&self) -> f64 {
        self.bottom() - self.top
    }

    /// How wide the axis is on which places stand.
    pub(super) fn room(&self) -> f64 {
        f64::from(self.width) - Self::LEFT - Self::MARGIN
    }

    /// A line across, with its value.
    pub(super) fn line(&mut self, value: f64, y: f64) {
        self.push(&format!(
            "<path d=\"M{left} {y:.1}H{:.1}\" stroke=\"var(--faint)\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>\n",
            Self::LEFT + self.room(),
            Self::LEFT - 6.0,
            y + 4.0,
            number(value),
            left = Self::LEFT,
        ));
    }

    /// The name of a place, below its middle.
    pub(super) fn place(&mut self, label: &str, middle: f64) {
        self.push(&format!(
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            self.bottom() + 18.0,
            escape(label),
        ));
    }

    /// What stands in it.
    pub(super) fn push(&mut self, svg: &str) {
        self.svg.push_str(svg);
    }

    /// The axes, and the end.
    pub(super) fn end(mut self, x_label: &str) -> String {
        let (left, top, bottom, room) = (Self::LEFT, self.top, self.bottom(), self.room());
        self.push(&format!(
            "<path d=\"M{left} {top}V{bottom}H{:.1}\" fill=\"none\" stroke=\"var(--ink)\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>\n",
            left + room,
            left + room / 2.0,
            bottom + 40.0,
            escape(x_label),
        ));
        self.svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_label_is_whole_at_any_width() {
        let label = "from the intended start to the end of the response [ms], median";
        for (width, wanted) in [(360, 2), (760, 1)] {
            let (svg, height) = label_above(label, width);
            let lines: Vec<&str> = svg
                .lines()
                .filter_map(|line| line.split_once('>')?.1.strip_suffix("</text>"))
                .collect();
            assert_eq!((lines.len(), lines.join(" ").as_str()), (wanted, label));
            assert!(lines.iter().all(|line| line.len() as f64 * LETTER <= f64::from(width)));
            assert_eq!(height, LINE * wanted as f64);
            let frame = Frame::new((width, 320), label);
            assert!(frame.rise() + height < frame.bottom(), "below the label");
        }
    }
}
