//! What figures do as one thing grows: one panel for each figure, one line for each system.

use std::path::Path;

use plotters::prelude::*;

use crate::{
    Failure,
    caption::{self, FONT, INK},
    scale::{decades, short},
};

const WIDTH: u32 = 800;
const PANEL: u32 = 340;
const COLOURS: [RGBColor; 4] =
    [RGBColor(120, 132, 146), RGBColor(27, 120, 85), RGBColor(188, 92, 32), RGBColor(72, 84, 170)];
const DOT: i32 = 4;
/// Above a panel: its title, and the names of its curves in their colours, where no curve runs.
const HEAD: u32 = 40;
const LEFT: i32 = 70;
const LEGEND: i32 = 300;
const NAME: i32 = 160;

/// One line.
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Lines of one figure over what grows.
pub struct Panel {
    pub title: String,
    /// What the upright axis measures.
    pub axis: String,
    pub curves: Vec<Curve>,
}

pub struct Curves {
    /// What grows.
    pub grows: String,
    pub panels: Vec<Panel>,
    pub caption: Vec<String>,
}

impl Curves {
    /// # Errors
    /// Where a panel has no figure above 0, or the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let lines = caption::lines(&self.caption, WIDTH);
        let height = PANEL * self.panels.len() as u32;
        let size = (WIDTH, height + caption::height(&lines));
        let canvas = SVGBackend::new(path, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        let (plots, below) = canvas.split_vertically(height);
        caption::draw(&below, &lines)?;
        let areas = plots.split_evenly((self.panels.len(), 1));
        areas.iter().zip(&self.panels).try_for_each(|(area, panel)| self.draw(area, panel))?;
        Ok(canvas.present()?)
    }

    fn draw(&self, area: &caption::Canvas<'_>, panel: &Panel) -> Result<(), Failure> {
        let points = || panel.curves.iter().flat_map(|curve| curve.points.iter().copied());
        let across = decades(points().map(|(x, _)| x));
        let up = decades(points().map(|(_, y)| y));
        let nothing = || format!("{}: no figure to draw", panel.title);
        let (across, up) = across.zip(up).ok_or_else(nothing)?;
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .margin_top(HEAD)
            .margin_right(30)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(across.log_scale(), up.log_scale())?;
        let mut mesh = chart.configure_mesh();
        let mesh = mesh.x_desc(&self.grows).y_desc(&panel.axis).label_style((FONT, 12));
        mesh.x_label_formatter(&|x| short(*x)).y_label_formatter(&|y| short(*y)).draw()?;
        area.draw(&Text::new(
            panel.title.as_str(),
            (LEFT, 12),
            (FONT, 16).into_font().color(&INK),
        ))?;
        for (index, (curve, colour)) in panel.curves.iter().zip(COLOURS.iter().cycle()).enumerate()
        {
            let name = (LEGEND + index as i32 * NAME, 14);
            area.draw(&Text::new(curve.name.as_str(), name, (FONT, 13).into_font().color(colour)))?;
            chart.draw_series([PathElement::new(curve.points.clone(), colour.stroke_width(2))])?;
            let dot = |point: &(f64, f64)| Circle::new(*point, DOT, colour.filled());
            chart.draw_series(curve.points.iter().map(dot))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_names_its_curves_and_what_grows() {
        let path = std::env::temp_dir().join(format!("curves-{}.svg", std::process::id()));
        let curve = |name: &str, by: f64| Curve {
            name: name.to_owned(),
            points: [1.0_f64, 64.0, 4_096.0].map(|x| (x, by * x.sqrt())).to_vec(),
        };
        let panel = |title: &str| Panel {
            title: title.to_owned(),
            axis: "M/s".to_owned(),
            curves: vec![curve("by hand", 1.0), curve("pool", 3.0)],
        };
        let curves = Curves {
            grows: "workers".to_owned(),
            panels: vec![panel("throughput"), panel("p99")],
            caption: vec!["a machine".to_owned()],
        };
        curves.write(&path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        for text in ["by hand", "pool", "workers", "throughput", "p99", "a machine"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }
}
