//! A bar for each system: its median, with a whisker from the least to the greatest.

use std::path::Path;

use plotters::prelude::*;

use crate::{
    Failure,
    caption::{self, FONT, INK},
    scale::{decades, short},
};

const WIDTH: u32 = 960;
/// Of one bar with its gap.
const BAR: u32 = 24;
/// Room for title and axis.
const AROUND: u32 = 100;
/// Room for names, left of the bars.
const NAMES: u32 = 250;
/// Half of a bar, of its place's height.
const HALF: f64 = 0.34;
/// Half of the end of a whisker.
const END: f64 = 0.18;

const OWN: RGBColor = RGBColor(27, 120, 85);
const OTHER: RGBColor = RGBColor(120, 132, 146);

pub struct Bar {
    pub name: String,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Drawn in a colour of its own.
    pub own: bool,
}

pub struct Bars {
    pub title: String,
    /// What the axis measures.
    pub axis: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
    pub caption: Vec<String>,
}

impl Bars {
    /// # Errors
    /// Where there is no bar with a figure above 0, or the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let ends = self.bars.iter().flat_map(|bar| [bar.min, bar.max]);
        let axis = decades(ends).ok_or_else(|| format!("{}: no figure to draw", self.title))?;
        let lines = caption::lines(&self.caption, WIDTH);
        let height = AROUND + BAR * self.bars.len() as u32;
        let size = (WIDTH, height + caption::height(&lines));
        let canvas = SVGBackend::new(path, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        let (plot, below) = canvas.split_vertically(height);
        caption::draw(&below, &lines)?;

        let count = self.bars.len() as f64;
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, (FONT, 18))
            .margin(10)
            .margin_right(70)
            .x_label_area_size(40)
            .y_label_area_size(NAMES)
            .build_cartesian_2d(axis.clone().log_scale(), 0.0..count)?;
        let mut mesh = chart.configure_mesh();
        let mesh = mesh.disable_y_mesh().disable_y_axis().x_desc(&self.axis);
        mesh.x_label_formatter(&|value| short(*value)).label_style((FONT, 12)).draw()?;
        for (index, bar) in self.bars.iter().enumerate() {
            let middle = count - index as f64 - 0.5;
            chart.draw_series(bar.shapes(axis.start, middle))?;
            self.name(&plot, bar, chart.backend_coord(&(axis.start, middle)))?;
            let beside = chart.backend_coord(&(bar.max, middle));
            plot.draw(&Text::new(
                short(bar.median),
                (beside.0 + 6, beside.1 - 6),
                (FONT, 12).into_font().color(&INK),
            ))?;
        }
        Ok(canvas.present()?)
    }

    /// Right-aligned beside its bar. The axis' own marks are not used: it would
    /// choose which of them to show.
    fn name(&self, plot: &caption::Canvas<'_>, bar: &Bar, at: (i32, i32)) -> Result<(), Failure> {
        use plotters::style::text_anchor::{HPos, Pos, VPos};
        let style = (FONT, 12).into_font().color(&INK).pos(Pos::new(HPos::Right, VPos::Center));
        Ok(plot.draw(&Text::new(bar.name.as_str(), (at.0 - 6, at.1), style))?)
    }
}

impl Bar {
    /// The bar, its whisker, and the whisker's ends.
    fn shapes(
        &self,
        from: f64,
        middle: f64,
    ) -> Vec<DynElement<'static, SVGBackend<'_>, (f64, f64)>> {
        let colour = if self.own { OWN } else { OTHER };
        let whisker = |points: [(f64, f64); 2]| PathElement::new(points, INK).into_dyn();
        let end = |value| whisker([(value, middle - END), (value, middle + END)]);
        let corners = [(from, middle - HALF), (self.median, middle + HALF)];
        vec![
            Rectangle::new(corners, colour.filled()).into_dyn(),
            whisker([(self.min, middle), (self.max, middle)]),
            end(self.min),
            end(self.max),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, median: f64) -> Bar {
        Bar { name: name.to_owned(), median, min: median * 0.9, max: median * 1.1, own: false }
    }

    #[test]
    fn a_plot_names_every_system_and_the_machine() {
        let path = std::env::temp_dir().join(format!("bars-{}.svg", std::process::id()));
        let bars = (0..30).map(|index| bar(&format!("system <{index}>"), f64::from(index) + 0.5));
        let bars = Bars {
            title: "A4: messages".to_owned(),
            axis: "M/s".to_owned(),
            bars: bars.collect(),
            caption: vec!["a machine".to_owned()],
        };
        bars.write(&path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!((0..30).all(|index| svg.contains(&format!("system &lt;{index}&gt;"))), "{svg}");
        assert!(svg.contains("a machine") && svg.contains("A4: messages"));
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        let bars = Bars {
            title: "C".to_owned(),
            axis: String::new(),
            bars: vec![bar("x", f64::NAN)],
            caption: Vec::new(),
        };
        let error = bars.write(Path::new("nowhere.svg")).unwrap_err();
        assert_eq!(error.to_string(), "C: no figure to draw");
    }
}
