//! The frame of bars and boxes that stand beside one another: a value axis with lines across, the
//! names of places below, and what both axes show.

use super::markup::{escape, number};

/// A picture that is being drawn.
#[derive(Debug)]
pub(super) struct Frame {
    svg: String,
    width: u32,
    height: u32,
}

impl Frame {
    /// Where the value axis stands.
    pub(super) const LEFT: f64 = 62.0;
    const TOP: f64 = 10.0;
    /// What stands below the other axis, and what stays free to the right.
    const FOOT: f64 = 48.0;
    const MARGIN: f64 = 10.0;

    /// Begins a picture of this size.
    pub(super) fn new((width, height): (u32, u32)) -> Self {
        let svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" \
             font-family=\"sans-serif\" font-size=\"13\" fill=\"var(--ink)\">\n"
        );
        Self { svg, width, height }
    }

    /// Where the other axis stands.
    pub(super) fn bottom(&self) -> f64 {
        f64::from(self.height) - Self::FOOT
    }

    /// How far values reach above it.
    pub(super) fn rise(&self) -> f64 {
        self.bottom() - Self::TOP
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
    pub(super) fn end(mut self, x_label: &str, y_label: &str) -> String {
        let (left, bottom, room) = (Self::LEFT, self.bottom(), self.room());
        self.push(&format!(
            "<path d=\"M{left} {top}V{bottom}H{:.1}\" fill=\"none\" stroke=\"var(--ink)\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n\
             </svg>\n",
            left + room,
            left + room / 2.0,
            bottom + 40.0,
            escape(x_label),
            f64::midpoint(Self::TOP, bottom),
            escape(y_label),
            top = Self::TOP,
        ));
        self.svg
    }
}
