//! Lines of text below a plot.

use plotters::{
    coord::Shift,
    prelude::{Color, DrawingArea, IntoFont, SVGBackend, Text, TextStyle},
    style::{BLACK, RGBColor},
};

use crate::Failure;

pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub const FONT: &str = "sans-serif";
/// Of a line of the caption, and of its letters.
const LINE: u32 = 16;
const LETTERS: i32 = 12;
/// Letters that fit beside each other, where each takes some half of its height.
const LETTER_WIDTH: f64 = 0.55 * LETTERS as f64;
const MARGIN: i32 = 10;

pub const INK: RGBColor = BLACK;

/// Lines of the caption, broken so that each fits.
pub fn lines(caption: &[String], width: u32) -> Vec<String> {
    let room = (f64::from(width) / LETTER_WIDTH) as usize;
    caption.iter().flat_map(|line| broken(line, room)).collect()
}

fn broken(line: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + word.len() >= room {
            lines.push(word.to_owned());
        } else {
            let gap = if lines[last].is_empty() { "" } else { " " };
            lines[last] += &format!("{gap}{word}");
        }
    }
    lines
}

pub fn height(lines: &[String]) -> u32 {
    LINE * lines.len() as u32 + LINE / 2
}

pub fn draw(canvas: &Canvas<'_>, lines: &[String]) -> Result<(), Failure> {
    let style: TextStyle<'_> = (FONT, LETTERS).into_font().color(&INK.mix(0.7));
    for (index, line) in lines.iter().enumerate() {
        let place = (MARGIN, (LINE * index as u32) as i32);
        canvas.draw(&Text::new(line.as_str(), place, style.clone()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(broken("one two three", 8), ["one two", "three"]);
        assert_eq!(broken("unbreakable", 3), ["unbreakable"]);
    }
}
