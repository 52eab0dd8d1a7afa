//! Draws SVG plots of measured values, with the number of objects as the horizontal axis.
//!
//! Guarantees: both axes are linear and start at zero.

use std::{ops::Range, path::Path};

use anyhow::{Context as _, Result};
use plotters::{
    chart::{ChartBuilder, SeriesLabelPosition},
    drawing::IntoDrawingArea as _,
    element::{Circle, PathElement},
    prelude::SVGBackend,
    series::LineSeries,
    style::{BLACK, Color as _, Palette, Palette99, WHITE},
};

use crate::{
    case::{growing, of_size},
    plan::Plan,
    samples::Samples,
};

/// An SVG plot of one measured quantity against the number of objects.
pub(crate) struct Picture {
    file: &'static str,
    title: &'static str,
    field: &'static str,
    factor: f64,
}

/// The plots of a run with the topic [`Scale`](crate::plan::Topic::Scale).
pub(crate) const PICTURES: [Picture; 3] = [
    Picture {
        file: "sync.svg",
        title: "Until all is in the cache (s)",
        field: "sync_s",
        factor: 1.0,
    },
    Picture {
        file: "cpu.svg",
        title: "CPU time of that (s)",
        field: "sync_cpu_s",
        factor: 1.0,
    },
    Picture {
        file: "memory.svg",
        title: "Memory afterwards (GiB)",
        field: "steady_kib",
        factor: 1.0 / (1024.0 * 1024.0),
    },
];

const SIZE: (u32, u32) = (800, 480);

/// One line of a plot: its name, and its points (thousands of objects, measured value).
type Line = (String, Vec<(f64, f64)>);

impl Picture {
    /// Writes the plot of the medians in `samples` as an SVG file into `folder`.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub(crate) fn draw(&self, folder: &Path, samples: &Samples) -> Result<()> {
        let path = folder.join(self.file);
        let lines = self.lines(samples);
        paint(&path, self.title, &lines).with_context(|| format!("can't draw {}", path.display()))
    }

    fn lines(&self, samples: &Samples) -> Vec<Line> {
        let sizes = Plan::full(1, 1).scale;
        let line = |name: &str| -> Vec<_> {
            let points = sizes.iter().filter_map(|pods| {
                let value = samples.median(&of_size(name, *pods), self.field)?;
                Some((f64::from(*pods) / 1_000.0, value * self.factor))
            });
            points.collect()
        };
        let lines = growing().into_iter().map(|case| {
            let points = line(&case.name);
            (case.name, points)
        });
        lines.filter(|(_, points)| !points.is_empty()).collect()
    }
}

/// Returns the range of an axis for `values`: from zero to 5 % above the maximum.
fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let highest = values.fold(0.0, f64::max);
    0.0..if highest > 0.0 { highest * 1.05 } else { 1.0 }
}

fn paint(path: &Path, title: &str, lines: &[Line]) -> Result<()> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let points = || lines.iter().flat_map(|(_, points)| points);
    let across = range(points().map(|point| point.0));
    let up = range(points().map(|point| point.1));
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(across, up)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("thousand pods")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()?;
    for (place, (name, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(place).to_rgba();
        let line = LineSeries::new(points.iter().copied(), color.stroke_width(2));
        chart
            .draw_series(line)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        let dots = points
            .iter()
            .map(|point| Circle::new(*point, 3, color.filled()));
        chart.draw_series(dots)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .border_style(BLACK.mix(0.3))
        .background_style(WHITE)
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_point_for_each_measured_size() {
        let mut samples = Samples::default();
        for (pods, seconds) in [(10_000, 1), (50_000, 5)] {
            let line = format!("{{\"sync_s\": {seconds}}}");
            samples.add(&of_size("kube-rs", pods), &line).unwrap();
        }
        let lines = PICTURES[0].lines(&samples);
        assert_eq!(
            lines,
            [("kube-rs".to_owned(), vec![(10.0, 1.0), (50.0, 5.0)])]
        );
    }

    #[test]
    fn axes_start_at_zero() {
        assert_eq!(range([2.0, 20.0].into_iter()), 0.0..21.0);
        assert_eq!(range(std::iter::empty()), 0.0..1.0);
    }
}
