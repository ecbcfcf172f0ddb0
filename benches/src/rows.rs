//! The table as data: what is measured, against whom, and what is to be reached.
//!
//! Ratios hold within one run on one machine. The absolute targets and the reference figures of the peers are those
//! of the reference machine the README names.
#![forbid(unsafe_code)]

use serde_json::{Value, json};

use crate::figures::Figures;

/// What a row has to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Ours / peer at most.
    Ratio(f64),
    /// Ours at most, in nanoseconds.
    Ns(f64),
    /// Ours at most, in bytes.
    Bytes(f64),
    /// Peer / ours at least: a scaling.
    Scaling(f64),
    /// Ours at least, in millions a second.
    MillionsPerSecond(f64),
    /// Nothing: the row is there for comparison.
    Compared,
}

/// Where the figure of the peer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Another measurement, by key.
    Key(&'static str),
    /// The cache-line round trip around our runs.
    RoundTrip,
    /// Nobody.
    Nobody,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// `P1` and so on.
    pub id: &'static str,
    /// In words.
    pub what: &'static str,
    /// Key of our figure.
    pub ours: &'static str,
    /// Whom we stand beside.
    pub peer: Peer,
    /// What is to be reached.
    pub target: Target,
}

/// A row with its figures.
#[derive(Clone, Debug)]
pub struct Line {
    row: Row,
    ours: Option<f64>,
    peer: Option<f64>,
    /// Whether the target is met; `None` for a row without one. A row that was not measured is not met.
    pub met: Option<bool>,
}

const fn row(
    id: &'static str,
    what: &'static str,
    ours: &'static str,
    peer: Peer,
    target: Target,
) -> Row {
    Row { id, what, ours, peer, target }
}

use Peer::{Key, Nobody, RoundTrip};
use Target::{Bytes, Compared, MillionsPerSecond, Ns, Ratio, Scaling};

/// Every row, in order.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row("P1", "admit + release, pool limit only", "P1/bandgate", Key("P1/floor_cas"), Ratio(1.15)),
    row("P1", "admit + release, pool limit only", "P1/bandgate", Key("P1/tokio_semaphore"), Compared),
    row("P2", "all limits, 64 flows", "P2/bandgate/64", Key("P2/tokio_semaphore"), Ns(27.0)),
    row("P2", "all limits, 131,072 flows", "P2/bandgate/131k", Key("P2/tokio_semaphore"), Ns(30.0)),
    row("P2", "all limits, 64 flows", "P2/bandgate/64", Key("P2/scheduler_task"), Compared),
    row("P3", "hand-off, 64 waiting", "P3/bandgate/64", Key("P3/tokio_semaphore"), Ratio(0.55)),
    row("P3", "hand-off, 1,024 waiting", "P3/bandgate/1024", Key("P3/tokio_semaphore"), Ratio(0.55)),
    row("P3", "hand-off, 64 waiting", "P3/bandgate/64", Key("P3/heap_oneshot"), Compared),
    row("P3", "hand-off, 64 waiting, each with a deadline", "P3/bandgate_deadlines/64", Key("P3/tokio_semaphore"), Compared),
    row("P3", "hand-off p99.9, 64 waiting, stamps included", "P3/bandgate_64/p999", Key("P3/tokio_semaphore_tail/p999"), Ns(300.0)),
    row("P3", "hand-off p99.9, 1,024 waiting, stamps included", "P3/bandgate_1024/p999", Key("P3/tokio_semaphore_tail/p999"), Ns(300.0)),
    row("P4", "decision, strict, 1k waiting", "P4/bandgate_strict/1k", Key("P4/bitmap_backlogged/1k"), Ns(5.0)),
    row("P4", "decision, strict, 100k waiting", "P4/bandgate_strict/100k", Key("P4/bitmap_backlogged/100k"), Ns(5.0)),
    row("P4", "decision, strict, 1M waiting", "P4/bandgate_strict/1M", Key("P4/bitmap_backlogged/1M"), Ns(35.0)),
    row("P4", "decision, strict, arrivals in any band, 1k", "P4/bandgate_strict_random/1k", Key("P4/bitmap_vecdeque/1k"), Ns(5.0)),
    row("P4", "decision, strict, arrivals in any band, 100k", "P4/bandgate_strict_random/100k", Key("P4/bitmap_vecdeque/100k"), Ns(5.0)),
    row("P4", "decision, strict, arrivals in any band, 1M", "P4/bandgate_strict_random/1M", Key("P4/bitmap_vecdeque/1M"), Ns(35.0)),
    row("P4", "decision, WFQ 8 bands, 1k waiting", "P4/bandgate_wfq/1k", Key("P4/finish_tag_heap/1k"), Ns(11.0)),
    row("P4", "decision, WFQ 8 bands, 100k waiting", "P4/bandgate_wfq/100k", Key("P4/finish_tag_heap/100k"), Ns(11.0)),
    row("P4", "decision, WFQ 8 bands, 1M waiting", "P4/bandgate_wfq/1M", Key("P4/finish_tag_heap/1M"), Ns(25.0)),
    row("P5", "submit to permit seen across cores, spinning, p50", "P5/bandgate/p50", RoundTrip, Ratio(1.2)),
    row("P5", "submit to permit seen across cores, spinning, p99", "P5/bandgate/p99", RoundTrip, Ratio(1.6)),
    row("P5", "the same p50 beside one store each way", "P5/bandgate/p50", Key("P5/floor_store/p50"), Compared),
    row("P5", "the same p50 beside a scheduler thread", "P5/bandgate/p50", Key("P5/scheduler_thread/p50"), Compared),
    row("P5", "the same p99 beside a scheduler thread", "P5/bandgate/p99", Key("P5/scheduler_thread/p99"), Compared),
    row("P7", "64 async tasks, 1 slot, per admit", "P7/bandgate", Key("P7/tokio_semaphore"), Ratio(0.9)),
    row("P7", "64 async tasks, 1 slot, per admit", "P7/bandgate", Key("P7/scheduler_task"), Compared),
    row("P8", "2 threads, 8 slots, pool only, per operation", "P8/bandgate_pool/per_op", Key("P8/tokio_semaphore/per_op"), Ns(30.0)),
    row("P8", "2 threads, 8 slots, pool only, per operation", "P8/bandgate_pool/per_op", Key("P8/floor_cas/per_op"), Compared),
    row("P8", "2 threads, 8 slots, all limits, per operation", "P8/bandgate_limits/per_op", Key("P8/tokio_semaphore/per_op"), Ns(60.0)),
    row("P8", "p99 of one, all limits, one a microsecond", "P8/bandgate_limits/paced/p99", Key("P8/tokio_semaphore/paced/p99"), Ns(120.0)),
    row("P8", "p99 of one, all limits, hammered", "P8/bandgate_limits/hammered/p99", Key("P8/tokio_semaphore/hammered/p99"), Ns(600.0)),
    row("P11", "bytes per queued request", "P11/queued_request", Nobody, Bytes(176.0)),
    row("P11", "bytes per idle tenant", "P11/idle_tenant", Nobody, Bytes(256.0)),
    row("P14", "replay of a trace in virtual time, per dispatch", "P14/bandgate", Nobody, MillionsPerSecond(3.0)),
    row("P15", "two threads, a pool each, beside one thread", "P15/bandgate/two", Key("P15/bandgate/one"), Scaling(1.9)),
    row("P15", "the same for two bare counters", "P15/floor_cas/two", Key("P15/floor_cas/one"), Compared),
    row("P16", "admit + release beside gated and capped waiters", "P16/bandgate", Key("P3/bandgate/64"), Ratio(1.2)),
    row("P16", "admit + release beside gated and capped waiters", "P16/bandgate", Key("P2/bandgate/64"), Compared),
    row("P17", "timer cancel + insert at 100k", "P17/bandgate", Key("P17/heap4_random"), Ns(12.0)),
    row("P17", "timer cancel + insert at 100k, oldest first", "P17/bandgate_oldest", Key("P17/heap4_oldest"), Compared),
    row("P17", "longest advance over 100k timers (cascades)", "P17/longest_advance/max", Nobody, Ns(20_000.0)),
];

/// Figures of the peers on the reference machine, as a range over its sessions, in nanoseconds.
#[rustfmt::skip]
pub const REFERENCE: &[(&str, f64, f64)] = &[
    ("P1/floor_cas", 9.9, 10.4),
    ("P1/tokio_semaphore", 22.1, 22.4),
    ("P2/scheduler_task", 311.0, 316.0),
    ("P3/tokio_semaphore", 69.9, 71.6),
    ("P3/heap_oneshot", 51.5, 53.0),
    ("P4/bitmap_vecdeque/1k", 3.65, 3.77),
    ("P4/bitmap_vecdeque/100k", 5.96, 6.16),
    ("P4/finish_tag_heap/1k", 58.2, 58.9),
    ("P4/finish_tag_heap/100k", 106.0, 181.0),
    ("P5/floor_store/p50", 105.0, 125.0),
    ("P5/scheduler_thread/p50", 220.0, 350.0),
    ("P7/tokio_semaphore", 223.0, 227.0),
    ("P7/scheduler_task", 374.0, 382.0),
    ("P8/floor_cas/per_op", 22.0, 27.1),
    ("P8/tokio_semaphore/per_op", 35.0, 77.4),
    ("P17/heap4_random", 25.6, 25.6),
    ("P17/heap4_oldest", 129.0, 129.0),
];

/// How far a peer may be off its reference before the run is marked.
const TOLERANCE: f64 = 0.25;

/// The peers that are more than a quarter off their reference, or missing, in words.
pub fn peers_off(figures: &Figures) -> Vec<String> {
    let judge = |(key, low, high): &(&str, f64, f64)| {
        let Some(found) = figures.get(key) else { return Some(format!("{key} was not measured")) };
        let (floor, roof) = (low * (1.0 - TOLERANCE), high * (1.0 + TOLERANCE));
        let inside = (floor..=roof).contains(&found.value);
        (!inside).then(|| format!("{key} is {:.1} ns; reference {low} to {high}", found.value))
    };
    REFERENCE.iter().filter_map(judge).collect()
}

impl Row {
    /// The row with its figures.
    pub fn line(&self, figures: &Figures) -> Line {
        let ours = figures.get(self.ours);
        let peer = match self.peer {
            Key(key) => figures.get(key).map(|figure| figure.value),
            RoundTrip => ours.and_then(|figure| figure.round_trip_ns),
            Nobody => None,
        };
        let ours = ours.map(|figure| figure.value);
        Line { row: *self, ours, peer, met: self.met(ours, peer) }
    }

    fn met(&self, ours: Option<f64>, peer: Option<f64>) -> Option<bool> {
        if self.target == Compared {
            return None;
        }
        let Some(ours) = ours else { return Some(false) };
        if self.peer != Nobody && peer.is_none() {
            return Some(false);
        }
        let ratio = peer.map_or(f64::INFINITY, |peer| ours / peer);
        Some(match self.target {
            Ratio(most) => ratio <= most,
            Ns(most) | Bytes(most) => ours <= most,
            Scaling(least) => 1.0 / ratio >= least,
            MillionsPerSecond(least) => 1_000.0 / ours >= least,
            Compared => return None,
        })
    }

    fn target(&self) -> String {
        match self.target {
            Ratio(most) => format!("<= {most} x"),
            Ns(most) => format!("<= {most} ns"),
            Bytes(most) => format!("<= {most} B"),
            Scaling(least) => format!(">= {least} x one"),
            MillionsPerSecond(least) => format!(">= {least}M/s"),
            Compared => "-".to_owned(),
        }
    }

    fn peer_name(&self) -> &'static str {
        match self.peer {
            Key(key) => key,
            RoundTrip => "round trip",
            Nobody => "-",
        }
    }
}

impl Line {
    fn ratio(&self) -> Option<f64> {
        Some(self.ours? / self.peer?)
    }

    /// One object of `target/bench-table.jsonl`. `ours_ns` holds bytes where the target is in bytes.
    pub fn json(&self) -> Value {
        json!({
            "id": self.row.id,
            "what": self.row.what,
            "ours_ns": rounded(self.ours),
            "peer": self.row.peer_name(),
            "peer_ns": rounded(self.peer),
            "ratio": rounded(self.ratio()),
            "target": self.row.target(),
            "met": self.met,
        })
    }

    /// How many times the target our figure is (what is to be large: the other way round), above 1 for a row that misses
    /// it; `None` without a target or a figure.
    pub fn times_target(&self) -> Option<f64> {
        let ours = self.ours?;
        Some(match self.row.target {
            Ratio(most) => self.ratio()? / most,
            Ns(most) | Bytes(most) => ours / most,
            Scaling(least) => self.ratio()? * least,
            MillionsPerSecond(least) => least * ours / 1_000.0,
            Compared => return None,
        })
    }

    /// One line of the README's table. A miss says by how much.
    pub fn markdown(&self) -> String {
        let figure = |value: Option<f64>| {
            value.map_or_else(|| "not measured".to_owned(), |value| format!("{value:.1}"))
        };
        let peer = if self.row.peer == Nobody { "-".to_owned() } else { figure(self.peer) };
        let met = match (self.met, self.times_target()) {
            (None, _) => "-".to_owned(),
            (Some(true), _) => "yes".to_owned(),
            (Some(false), None) => "**no**".to_owned(),
            (Some(false), Some(times)) => format!("**no**, {times:.1} x"),
        };
        let ratio = self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let Row { id, what, .. } = self.row;
        let (ours, name, target) = (figure(self.ours), self.row.peer_name(), self.row.target());
        format!("| {id} | {what} | {ours} | {name} | {peer} | {ratio} | {target} | {met} |")
    }

    /// The cells of the printed table.
    pub fn cells(&self) -> [String; 8] {
        let unit = if matches!(self.row.target, Bytes(_)) { "B" } else { "ns" };
        let figure = |value: Option<f64>| {
            value.map_or_else(|| "not measured".to_owned(), |value| format!("{value:.1} {unit}"))
        };
        let peer = if self.row.peer == Nobody { "-".to_owned() } else { figure(self.peer) };
        [
            self.row.id.to_owned(),
            self.row.what.to_owned(),
            figure(self.ours),
            self.row.peer_name().to_owned(),
            peer,
            self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            self.row.target(),
            self.met.map_or("-", |met| if met { "yes" } else { "NO" }).to_owned(),
        ]
    }
}

fn rounded(value: Option<f64>) -> Option<f64> {
    value.map(|value| (value * 1_000.0).round() / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::{
        Compared, Key, MillionsPerSecond, Nobody, Ns, REFERENCE, ROWS, Ratio, Row, Scaling,
        peers_off, row,
    };
    use crate::figures::Figures;

    fn figures(lines: &[(&str, f64)]) -> Figures {
        let mut figures = Figures::default();
        for (key, value) in lines {
            figures
                .add_own(&format!("{{\"key\":\"{key}\",\"value\":{value},\"round_trip_ns\":100}}"));
        }
        figures
    }

    #[test]
    fn a_missing_figure_of_either_side_is_not_met() {
        let one: Row = row("P0", "", "ours", Key("peer"), Ns(10.0));
        assert_eq!(one.line(&figures(&[("ours", 1.0), ("peer", 1.0)])).met, Some(true));
        let no_peer = one.line(&figures(&[("ours", 1.0)]));
        assert_eq!(no_peer.met, Some(false));
        assert_eq!(no_peer.cells()[4], "not measured");
        let no_ours = one.line(&figures(&[("peer", 1.0)]));
        assert_eq!(no_ours.met, Some(false));
        assert!(no_ours.json()["ours_ns"].is_null());
    }

    #[test]
    fn a_miss_says_how_many_times_its_target_it_is() {
        let known = figures(&[("ours", 400.0), ("peer", 100.0)]);
        let times = |target| row("P0", "", "ours", Key("peer"), target).line(&known).times_target();
        assert_eq!(times(Ratio(0.5)), Some(8.0));
        assert_eq!(times(Ns(200.0)), Some(2.0));
        assert_eq!(times(Scaling(2.0)), Some(8.0));
        // 400 ns are 2.5 million a second.
        assert_eq!(times(MillionsPerSecond(5.0)), Some(2.0));
        assert_eq!(times(Compared), None);
        let missed = row("P0", "it", "ours", Key("peer"), Ns(200.0)).line(&known);
        let expected = "| P0 | it | 400.0 | peer | 100.0 | 4.00 | <= 200 ns | **no**, 2.0 x |";
        assert_eq!(missed.markdown(), expected);
        let absent = row("P0", "it", "none", Nobody, Ns(200.0)).line(&known);
        assert_eq!(
            absent.markdown(),
            "| P0 | it | not measured | - | - | - | <= 200 ns | **no** |"
        );
    }

    #[test]
    fn a_ratio_is_ours_over_the_peer_of_the_same_run() {
        let one = row("P0", "", "ours", Key("peer"), Ratio(1.15));
        assert_eq!(one.line(&figures(&[("ours", 11.5), ("peer", 10.0)])).met, Some(true));
        assert_eq!(one.line(&figures(&[("ours", 11.6), ("peer", 10.0)])).met, Some(false));
    }

    #[test]
    fn a_peer_a_quarter_off_or_absent_marks_the_run() {
        let exact: Vec<(&str, f64)> = REFERENCE.iter().map(|(key, low, _)| (*key, *low)).collect();
        assert_eq!(peers_off(&figures(&exact)), [""; 0]);
        let mut slow = exact.clone();
        slow[1].1 *= 1.4;
        slow.pop();
        let marks = peers_off(&figures(&slow));
        assert_eq!(marks.len(), 2, "{marks:?}");
    }

    #[test]
    fn every_id_the_benches_owe_has_a_row() {
        let owed = ["P1", "P2", "P3", "P4", "P5", "P7", "P8", "P11", "P14", "P15", "P16", "P17"];
        for id in owed {
            assert!(ROWS.iter().any(|row| row.id == id), "{id} has no row");
            assert!(
                ROWS.iter().filter(|row| row.id == id).all(|row| row.ours.starts_with(id)),
                "{id} stands beside the figure of another id"
            );
        }
    }
}
