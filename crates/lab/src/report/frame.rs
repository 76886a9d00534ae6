//! The frame of pictures with bars or boxes: a value axis with grid lines, the names of the places
//! below, and the labels of both axes.
//!
//! The label of the value axis is above it: rotated beside it, a long label would be cut off.

use super::markup::{escape, number};

/// The width of a letter of a label and the height of a line, in units of the picture.
const LETTER: f64 = 7.2;
const LINE: f64 = 17.0;
/// The left edge of a label above an axis.
const LABEL_LEFT: f64 = 4.0;

/// Returns the label above an axis in a picture of this width, as SVG, and its height.
pub(super) fn label_above(label: &str, width: u32) -> (String, f64) {
    let max_letters = ((f64::from(width) - 2.0 * LABEL_LEFT) / LETTER) as usize;
    let mut lines = vec![String::new()];
    for word in label.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > max_letters {
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

/// A picture under construction.
#[derive(Debug)]
pub(super) struct PictureFrame {
    svg: String,
    width: u32,
    height: u32,
    /// The top of the value axis.
    top: f64,
}

impl PictureFrame {
    /// The position of the value axis.
    pub(super) const LEFT: f64 = 52.0;
    const TOP: f64 = 10.0;
    /// The height below the horizontal axis, and the margin on the right.
    const FOOT: f64 = 48.0;
    const MARGIN: f64 = 10.0;

    /// Starts a picture of this size with this label of the value axis.
    pub(super) fn new((width, height): (u32, u32), y_label: &str) -> Self {
        let (label, label_height) = label_above(y_label, width);
        let svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" \
             font-family=\"sans-serif\" font-size=\"13\" fill=\"var(--ink)\">\n{label}"
        );
        Self { svg, width, height, top: Self::TOP + label_height }
    }

    /// Returns the position of the horizontal axis.
    pub(super) fn bottom(&self) -> f64 {
        f64::from(self.height) - Self::FOOT
    }

    /// Returns the height of the value axis.
    pub(super) fn axis_height(&self) -> f64 {
        self.bottom() - self.top
    }

    /// Returns the width of the horizontal axis.
    pub(super) fn axis_width(&self) -> f64 {
        f64::from(self.width) - Self::LEFT - Self::MARGIN
    }

    /// Draws a grid line with its value.
    pub(super) fn line(&mut self, value: f64, y: f64) {
        self.push(&format!(
            "<path d=\"M{left} {y:.1}H{:.1}\" stroke=\"var(--faint)\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>\n",
            Self::LEFT + self.axis_width(),
            Self::LEFT - 6.0,
            y + 4.0,
            number(value),
            left = Self::LEFT,
        ));
    }

    /// Draws the name of a place, centred below it.
    pub(super) fn draw_label(&mut self, label: &str, middle: f64) {
        self.push(&format!(
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            self.bottom() + 18.0,
            escape(label),
        ));
    }

    /// Adds SVG.
    pub(super) fn push(&mut self, svg: &str) {
        self.svg.push_str(svg);
    }

    /// Draws the axes and finishes the picture.
    pub(super) fn end(mut self, x_label: &str) -> String {
        let (left, top, bottom, axis_width) =
            (Self::LEFT, self.top, self.bottom(), self.axis_width());
        self.push(&format!(
            "<path d=\"M{left} {top}V{bottom}H{:.1}\" fill=\"none\" stroke=\"var(--ink)\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>\n",
            left + axis_width,
            left + axis_width / 2.0,
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
    fn a_long_label_is_complete_at_any_width() {
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
            let frame = PictureFrame::new((width, 320), label);
            assert!(frame.axis_height() + height < frame.bottom(), "below the label");
        }
    }
}
