//! The figures of one run by key: criterion's medians (`P1/floor_cas`) and the own lines (`P5/floor_store/p50`).
#![forbid(unsafe_code)]

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Nanoseconds, or bytes where the row says so.
    pub value: f64,
    /// The cache-line round trip around the runs, for gated figures.
    pub round_trip_ns: Option<f64>,
}

/// All figures found.
#[derive(Clone, Debug, Default)]
pub struct Figures(BTreeMap<String, Figure>);

impl Figures {
    /// Reads both places; a place that does not exist holds nothing.
    pub fn read(criterion: &Path, own: &Path) -> io::Result<Self> {
        let mut figures = Self::default();
        let mut found = Vec::new();
        walk(criterion, &mut found)?;
        for folder in found {
            if let Some((key, value)) = criterion_median(&folder) {
                figures.0.insert(key, Figure { value, round_trip_ns: None });
            }
        }
        match fs::read_to_string(own) {
            Ok(text) => figures.add_own(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(figures)
    }

    /// Adds own lines; of two with one key the later counts, and a null takes the earlier away.
    pub fn add_own(&mut self, text: &str) {
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            let Some(key) = line["key"].as_str() else { continue };
            self.0.remove(key);
            if let Some(value) = line["value"].as_f64() {
                let round_trip_ns = line["round_trip_ns"].as_f64();
                self.0.insert(key.to_owned(), Figure { value, round_trip_ns });
            }
        }
    }

    /// The figure of this key, if it was measured.
    pub fn get(&self, key: &str) -> Option<Figure> {
        self.0.get(key).copied()
    }
}

/// Folders under `at` that hold a finished measurement (`new/estimates.json`).
fn walk(at: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(at) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        if path.join("estimates.json").is_file() && path.ends_with("new") {
            found.push(path);
        } else if path.is_dir() {
            walk(&path, found)?;
        }
    }
    Ok(())
}

/// The id as criterion prints it, and the median in nanoseconds.
fn criterion_median(folder: &Path) -> Option<(String, f64)> {
    let read = |name: &str| -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(folder.join(name)).ok()?).ok()
    };
    let key = read("benchmark.json")?["full_id"].as_str()?.to_owned();
    let median = read("estimates.json")?["median"]["point_estimate"].as_f64()?;
    Some((key, median))
}

#[cfg(test)]
mod tests {
    use super::Figures;

    #[test]
    fn a_later_line_replaces_an_earlier_and_null_takes_it_away() {
        let mut figures = Figures::default();
        figures.add_own("{\"key\":\"a\",\"value\":1.0}\n{\"key\":\"a\",\"value\":2.0}\nnot json\n");
        assert_eq!(figures.get("a").map(|figure| figure.value), Some(2.0));
        figures.add_own("{\"key\":\"a\",\"value\":null}");
        assert_eq!(figures.get("a"), None);
    }
}
