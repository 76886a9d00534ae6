//! Expressions as text: `least(share[dB50, automatic, 64 KiB..]) / 0.97`.

use eyas_emulator::units::parse_amount;

use super::error::ExpressionError;
use super::expression::{AxisSpan, BinaryOperator, ClaimExpression, SeriesFunction};
use crate::measure::Measure;
use crate::situation::{NamedLabel, SituationGrid};

/// The maximum nesting depth of brackets.
const MAX_DEPTH: usize = 32;

impl ClaimExpression {
    /// Parses an expression about these points.
    ///
    /// # Errors
    /// The first that is invalid.
    pub(crate) fn parse(text: &str, grid: &SituationGrid) -> Result<Self, ExpressionError> {
        let mut parser = ExpressionParser { rest: text, grid, depth: 0 };
        let expression = parser.sum()?;
        match parser.peek() {
            None => Ok(expression),
            Some(_) => Err(ExpressionError::Rest(parser.rest.to_owned())),
        }
    }
}

struct ExpressionParser<'a> {
    rest: &'a str,
    grid: &'a SituationGrid,
    depth: usize,
}

impl<'a> ExpressionParser<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn skip_if(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), ExpressionError> {
        match self.skip_if(wanted) {
            true => Ok(()),
            false => Err(ExpressionError::Missing { wanted, rest: self.rest.to_owned() }),
        }
    }

    /// Consumes characters as long as `fits` accepts them.
    fn word(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    fn sum(&mut self) -> Result<ClaimExpression, ExpressionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ExpressionError::Depth);
        }
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some('+') => BinaryOperator::Add,
                Some('-') => BinaryOperator::Subtract,
                _ => break,
            };
            self.rest = &self.rest[1..];
            let right = self.product()?;
            left = ClaimExpression::Binary(operator, Box::new(left), Box::new(right));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<ClaimExpression, ExpressionError> {
        let mut left = self.factor()?;
        loop {
            let operator = match self.peek() {
                Some('*') => BinaryOperator::Multiply,
                Some('/') => BinaryOperator::Divide,
                _ => return Ok(left),
            };
            self.rest = &self.rest[1..];
            let right = self.factor()?;
            left = ClaimExpression::Binary(operator, Box::new(left), Box::new(right));
        }
    }

    fn factor(&mut self) -> Result<ClaimExpression, ExpressionError> {
        match self.peek() {
            Some('(') => {
                self.expect('(')?;
                let inner = self.sum()?;
                self.expect(')')?;
                Ok(inner)
            }
            Some(c) if c.is_ascii_digit() => {
                let text = self.word(|c| c.is_ascii_digit() || c == '.');
                let number = text.parse().map(ClaimExpression::Number);
                number.map_err(|_| ExpressionError::Number(text.to_owned()))
            }
            Some(c) if c.is_ascii_alphabetic() => {
                let name = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
                match self.peek() {
                    Some('(') => self.call(name),
                    _ => self.read(name),
                }
            }
            _ => Err(ExpressionError::Operand(self.rest.to_owned())),
        }
    }

    fn call(&mut self, name: &str) -> Result<ClaimExpression, ExpressionError> {
        let found = SeriesFunction::ALL.iter().find(|entry| entry.0 == name);
        let unknown = || ExpressionError::UnknownFunction(name.to_owned());
        let (_, function, fewest, most) = found.ok_or_else(unknown)?;
        self.expect('(')?;
        let mut arguments = vec![self.sum()?];
        while self.skip_if(',') {
            arguments.push(self.sum()?);
        }
        self.expect(')')?;
        match (*fewest..=*most).contains(&arguments.len()) {
            true => Ok(ClaimExpression::Call(*function, arguments)),
            false => {
                let (function, count) = (name.to_owned(), arguments.len());
                Err(ExpressionError::Arguments { function, count })
            }
        }
    }

    fn read(&mut self, name: &str) -> Result<ClaimExpression, ExpressionError> {
        let measure: Measure = name.parse()?;
        self.expect('[')?;
        let inside = self.word(|c| c != ']');
        self.expect(']')?;
        let mut parts: Vec<&str> = inside.split(',').map(str::trim).collect();
        let without_scenes = self.grid.scenes.iter().all(|scene| scene.id.is_empty());
        if without_scenes {
            parts.insert(0, "");
        }
        let [scene, curve, range] = parts.as_slice() else {
            let form = if without_scenes { "[curve, where]" } else { "[scene, curve, where]" };
            let (measure, found) = (name.to_owned(), inside.to_owned());
            return Err(ExpressionError::Form { measure, form, found });
        };
        let known = |names: &[NamedLabel], id: &str| names.iter().any(|name| name.id == id);
        if !known(&self.grid.scenes, scene) {
            return Err(ExpressionError::UnknownScene((*scene).to_owned()));
        }
        if !known(&self.grid.curves, curve) {
            return Err(ExpressionError::UnknownCurve((*curve).to_owned()));
        }
        let span = span(range)?;
        Ok(ClaimExpression::Read {
            measure,
            scene: (*scene).to_owned(),
            curve: (*curve).to_owned(),
            span,
        })
    }
}

/// Parses `64 KiB`, `largest`, `64 KiB..`, `..256 KiB`, `64 KiB..256 KiB` or `..`.
fn span(text: &str) -> Result<AxisSpan, ExpressionError> {
    if text == "largest" {
        return Ok(AxisSpan::Largest);
    }
    let bound = |text: &str, open: f64| match text.trim() {
        "" => Ok(open),
        text => parse_amount(text).map(|(amount, kind)| amount / kind.display_unit().1),
    };
    match text.split_once("..") {
        Some((low, high)) => {
            Ok(AxisSpan::Between(bound(low, f64::NEG_INFINITY)?, bound(high, f64::INFINITY)?))
        }
        None if text.is_empty() => Err(ExpressionError::NoPlace),
        None => Ok(AxisSpan::At(bound(text, 0.0)?)),
    }
}
