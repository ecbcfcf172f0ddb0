//! The picture of the gates: a lane per band over the saturation, and, where ceilings follow a signal, what it
//! makes of them.
#![forbid(unsafe_code)]
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "coordinates of a picture; at most 64 bands"
)]

use bandgate_core::{
    admit::ceiling::{adaptive::AdaptiveCeilings, limit, reflective},
    types::{
        policy::{Adaptive, BandSelection, Holdback},
        settings::{PoolSettings, Settings},
    },
};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::levels::{Levels, Moved, signal, under};
use super::tables::free_below;
use crate::load;
use crate::picture::{COLOURS, FONT, label_series};

const WIDTH: u32 = 560;
const HEAD: u32 = 64;
/// Height of a panel without its lanes, and of a lane.
const FRAME: u32 = 130;
const LANE: u32 = 26;
/// Where the saturation axis ends.
const END: f64 = 1.1;
/// Points of a curve.
const POINTS: u32 = 120;
const WFQ: RGBColor = RGBColor(226, 238, 249);
const GREY: RGBColor = RGBColor(90, 90, 90);

type Drawn = Result<(), Box<dyn core::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One pool with what its panels show.
struct Gates<'a> {
    pool: &'a PoolSettings,
    names: Vec<String>,
    levels: Levels,
}

impl<'a> Gates<'a> {
    fn of(pool: &'a PoolSettings) -> Self {
        let bands = load::bands(pool);
        let priorities: Vec<i32> = bands.iter().map(|&(priority, _)| priority).collect();
        let label = |(priority, name): (i32, Option<String>)| match name {
            Some(name) => format!("{priority} {name}"),
            None => priority.to_string(),
        };
        let levels = Levels::of(pool, &priorities);
        Self { pool, names: bands.into_iter().map(label).collect(), levels }
    }

    fn height(&self) -> u32 {
        FRAME + LANE * u32::try_from(self.names.len().max(6)).unwrap_or(64)
    }

    /// The signal the ceilings follow, if they do.
    fn adaptive(&self) -> Option<(&AdaptiveCeilings, &'a Adaptive)> {
        match (&self.levels.moved, &self.pool.holdback) {
            (Moved::BySignal(ceilings), Holdback::Adaptive(params)) => Some((ceilings, params)),
            _ => None,
        }
    }
}

/// Draws every pool as SVG.
pub(super) fn svg(name: &str, settings: &Settings) -> Result<String, String> {
    let pools: Vec<Gates<'_>> = settings.pools.iter().map(Gates::of).collect();
    let mut out = String::new();
    draw(name, &pools, &mut out).map_err(|e| e.to_string())?;
    Ok(out)
}

fn draw(name: &str, pools: &[Gates<'_>], out: &mut String) -> Drawn {
    let columns = if pools.iter().any(|pool| pool.adaptive().is_some()) { 2 } else { 1 };
    let height: u32 = pools.iter().map(Gates::height).sum();
    let root = SVGBackend::with_string(out, (WIDTH * columns, HEAD + height)).into_drawing_area();
    root.fill(&WHITE)?;
    let (head, mut body) = root.split_vertically(HEAD);
    head.draw_text(
        &format!("Gates of {name}"),
        &TextStyle::from((FONT, 20).into_font()),
        (16, 12),
    )?;
    let how = "A band is open along its line and gated from its end on; pale: where that moves. Blue: weighted order.";
    let grey = TextStyle::from((FONT, 13).into_font()).color(&GREY);
    head.draw_text(how, &grey, (16, 40))?;
    for pool in pools {
        let (row, rest) = body.split_vertically(pool.height());
        let (left, right) = row.split_horizontally(WIDTH);
        lanes(&left, pool)?;
        if let Some((ceilings, params)) = pool.adaptive() {
            family(&right, pool, ceilings, params)?;
        }
        body = rest;
    }
    root.present()?;
    Ok(())
}

/// The height of a band's lane, the most urgent on top.
fn lane(count: usize, i: usize) -> f64 {
    (count - i) as f64 - 0.5
}

/// What is drawn of one band: pieces of its lane with their strength, 1 where it is open for sure.
fn pieces(gates: &Gates<'_>, i: usize) -> Vec<(f64, f64, f64)> {
    let (low, high) = (gates.levels.low[i], gates.levels.high[i]);
    if !matches!(gates.levels.moved, Moved::ByDecisions) {
        return vec![(0.0, low, 1.0), (low, high, 0.35)];
    }
    let free = free_below(u32::try_from(i).unwrap_or(0), gates.names.len());
    let mut all = vec![(0.0, free, 1.0)];
    for step in 0..POINTS {
        let at = |step: u32| free + (1.0 - free) * f64::from(step) / f64::from(POINTS);
        // The share of decisions that find it open, as the strength of the line.
        let strength = 1.0 / reflective::period(at(step)) as f64;
        all.push((at(step), at(step + 1), strength));
    }
    all
}

fn lanes(panel: &Area<'_>, gates: &Gates<'_>) -> Drawn {
    let Gates { pool, names, levels } = gates;
    let count = names.len();
    let top = count as f64;
    let mut chart = ChartBuilder::on(panel)
        .caption(format!("{} ({} slots)", pool.name, pool.slots), (FONT, 16))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(110)
        .build_cartesian_2d(0.0..END, 0.0..top + 0.8)?;
    let (from, kept) = if let BandSelection::Wfq(wfq) = &pool.selection {
        (wfq.activation, wfq.deactivation)
    } else {
        (END, END)
    };
    let shade = |from: f64, to: f64, strength: f64| {
        Rectangle::new([(from, 0.0), (to, top + 0.8)], WFQ.mix(strength).filled())
    };
    chart.draw_series([shade(from, END, 1.0), shade(kept, from, 0.4)])?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_labels(11)
        .y_labels(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_style(RGBColor(120, 120, 120))
        .label_style((FONT, 12))
        .x_desc("saturation")
        .axis_desc_style((FONT, 13))
        .draw()?;
    let small = || TextStyle::from((FONT, 12).into_font()).color(&GREY);
    for (word, x, show) in [("strict", 0.01, kept > 0.0), ("wfq", from + 0.01, from < END)] {
        if show {
            chart.draw_series([Text::new(word, (x, top + 0.65), small())])?;
        }
    }
    for (i, colour) in (0..count).zip(COLOURS.iter().cycle()) {
        let y = lane(count, i);
        chart.draw_series([PathElement::new([(0.0, y), (END, y)], RGBColor(215, 215, 215))])?;
        for (from, to, strength) in pieces(gates, i).into_iter().filter(|(a, b, _)| a < b) {
            let style = colour.mix(strength).stroke_width(6);
            chart.draw_series([PathElement::new([(from, y), (to, y)], style)])?;
        }
        let (low, high) = (levels.low[i], levels.high[i]);
        let slots = limit(high, pool.slots);
        let label = if low < high {
            format!("{low:.3}..{high:.3}: {}..{slots} slots", limit(low, pool.slots))
        } else {
            format!("{high:.3}: {slots} slots")
        };
        if !matches!(levels.moved, Moved::ByDecisions) {
            let x = high.min(END - if low < high { 0.36 } else { 0.22 }) + 0.01;
            chart.draw_series([Text::new(label, (x, y + 0.42), small())])?;
        }
    }
    // The names stand outside the plot, where the axis would have numbers.
    for (i, name) in names.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(0.0, lane(count, i)));
        let (left, up) = panel.get_base_pixel();
        let style = TextStyle::from((FONT, 12).into_font());
        panel.draw_text(&cut(name), &style, (x - left - 104, y - up - 6))?;
    }
    Ok(())
}

/// A name short enough for its place.
fn cut(name: &str) -> String {
    const MOST: usize = 16;
    if name.chars().count() <= MOST {
        return name.into();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}

/// The ceilings over a signal that stays: one curve per band.
fn family(
    panel: &Area<'_>,
    gates: &Gates<'_>,
    ceilings: &AdaptiveCeilings,
    params: &Adaptive,
) -> Drawn {
    let end = params.full * 1.2;
    let mut chart = ChartBuilder::on(panel)
        .caption(format!("{}: ceilings over {}", gates.pool.name, signal(params)), (FONT, 16))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(0.0..end, 0.0..1.05)?;
    chart
        .configure_mesh()
        .x_labels(7)
        .y_labels(6)
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_style(RGBColor(120, 120, 120))
        .label_style((FONT, 12))
        .x_desc(format!("{}, steady", signal(params)))
        .y_desc("ceiling")
        .axis_desc_style((FONT, 13))
        .draw()?;
    // The corners of the curves belong to them, wherever the steps fall.
    let mut xs: Vec<f64> =
        (0..=POINTS).map(|step| end * f64::from(step) / f64::from(POINTS)).collect();
    xs.extend([params.target, params.full]);
    xs.sort_unstable_by(f64::total_cmp);
    let curves: Vec<_> = xs.iter().map(|&x| (x, under(ceilings, x))).collect();
    for (i, colour) in (0..gates.names.len()).zip(COLOURS.iter().cycle()) {
        let style = colour.stroke_width(2);
        let points = curves.iter().map(|(x, levels)| (*x, levels[i]));
        let line = chart.draw_series(LineSeries::new(points, style))?;
        if gates.names.len() <= 8 {
            line.label(cut(&gates.names[i]))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
        }
    }
    if gates.names.len() <= 8 {
        label_series(&mut chart, SeriesLabelPosition::LowerLeft)?;
    }
    Ok(())
}
