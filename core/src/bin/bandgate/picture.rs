//! The picture of a report: waits over virtual time, one panel per configuration, the same scales everywhere.
#![forbid(unsafe_code)]
#![allow(clippy::float_arithmetic, reason = "coordinates of a picture")]

use bandgate_core::sim::report::{BandReport, ConfigReport, Report};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

const PANEL_WIDTH: u32 = 460;
const PANEL_HEIGHT: u32 = 360;
const HEAD: u32 = 64;
/// Longest time without a dispatch that a line runs across, as a part of all time.
const LONGEST_BRIDGE: f64 = 0.03;
/// Panels in a row.
const COLUMNS: usize = 3;
pub(crate) const FONT: &str = "sans-serif";

/// Colours that stay apart for colour-blind eyes and in grey (Okabe and Ito, 2008), most urgent band first.
pub(crate) const COLOURS: [RGBColor; 7] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

/// Draws the report as SVG.
pub(crate) fn svg(report: &Report) -> Result<String, String> {
    let columns = report.configs.len().clamp(1, COLUMNS);
    let rows = report.configs.len().div_ceil(columns).max(1);
    let mut out = String::new();
    draw(report, (rows, columns), &mut out).map_err(|e| e.to_string())?;
    Ok(out)
}

pub(crate) type Drawn = Result<(), Box<dyn core::error::Error>>;

fn draw(report: &Report, (rows, columns): (usize, usize), out: &mut String) -> Drawn {
    let size = (PANEL_WIDTH * u32::try_from(columns)?, HEAD + PANEL_HEIGHT * u32::try_from(rows)?);
    let root = SVGBackend::with_string(out, size).into_drawing_area();
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(HEAD);
    let title = format!("Waits on {}, {} requests", report.trace, report.rows);
    let how = format!(
        "Speed-up {}. Each line: the longest wait among the dispatches of a band at that time. \
         No line: no dispatch of that band.",
        report.speedup
    );
    head.draw_text(&title, &TextStyle::from((FONT, 20).into_font()), (16, 12))?;
    let grey = TextStyle::from((FONT, 13).into_font()).color(&RGBColor(90, 90, 90));
    head.draw_text(&how, &grey, (16, 40))?;
    let points = || report.configs.iter().flat_map(|c| &c.bands).flat_map(|b| &b.series);
    let last = points().fold(1e-3, |top: f64, &(t, _)| top.max(t)) * 1.02;
    let longest = points().fold(1e-3, |top: f64, &(_, wait)| top.max(wait)) * headroom(report);
    for (panel, config) in body.split_evenly((rows, columns)).iter().zip(&report.configs) {
        draw_panel(panel, config, last, longest)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(
    panel: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    config: &ConfigReport,
    last: f64,
    longest: f64,
) -> Drawn {
    let caption = format!("{} ({} slots)", config.name, config.slots);
    let mut chart = ChartBuilder::on(panel)
        .caption(caption, (FONT, 16))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(0.0..last, 0.0..longest)?;
    chart
        .configure_mesh()
        .x_labels(6)
        .y_labels(6)
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_style(RGBColor(120, 120, 120))
        .label_style((FONT, 12))
        .x_label_formatter(&|x| axis_label(*x, last))
        .y_label_formatter(&|y| axis_label(*y, longest))
        .x_desc("virtual time of the dispatch (s)")
        .y_desc("longest wait (s)")
        .axis_desc_style((FONT, 13))
        .draw()?;
    for (band, colour) in config.bands.iter().zip(COLOURS.iter().cycle()) {
        let style = colour.stroke_width(2);
        for (i, stretch) in stretches(&band.series, last * LONGEST_BRIDGE).enumerate() {
            let line = chart.draw_series(LineSeries::new(stretch.iter().copied(), style))?;
            if i == 0 {
                line.label(legend(band))
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
            }
            if let [alone] = *stretch {
                chart.draw_series([Circle::new(alone, 2, colour.filled())])?;
            }
        }
    }
    label_series(&mut chart, SeriesLabelPosition::UpperLeft)
}

/// A chart over two plain scales.
pub(crate) type Plain<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// The box that says which line is which.
pub(crate) fn label_series<'a, 'b: 'a>(
    chart: &mut Plain<'a, 'b>,
    at: SeriesLabelPosition,
) -> Drawn {
    chart
        .configure_series_labels()
        .position(at)
        .margin(8)
        .legend_area_size(22)
        .background_style(WHITE.mix(0.8))
        .border_style(RGBColor(200, 200, 200))
        .label_font((FONT, 13))
        .draw()?;
    Ok(())
}

/// Factor on the vertical scale that leaves room for the legend above the lines.
fn headroom(report: &Report) -> f64 {
    const PLOT: f64 = 270.0;
    let bands = report.configs.iter().map(|c| c.bands.len()).max().unwrap_or_default();
    let legend: f64 = (0..bands.min(8)).fold(16.0, |height, _| height + 18.0);
    PLOT / (PLOT - legend)
}

fn legend(band: &BandReport) -> String {
    let share = band.share_all_backlogged.map(|s| format!(": {:.0} % while all waited", s * 100.0));
    let starved = if band.starved { ", starved" } else { "" };
    format!("{}{}{starved}", band.label(), share.unwrap_or_default())
}

/// A series cut where the band had no dispatch for longer than `bridge` seconds.
fn stretches(series: &[(f64, f64)], bridge: f64) -> impl Iterator<Item = &[(f64, f64)]> {
    series.chunk_by(move |before, after| after.0 - before.0 <= bridge)
}

/// Labels of an axis that ends at `top`: whole numbers unless it is short.
fn axis_label(value: f64, top: f64) -> String {
    if top < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}
