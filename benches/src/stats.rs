//! Medians and percentiles of small samples.
#![forbid(unsafe_code)]

/// The value below which `per_mille` thousandths of the samples lie (nearest rank); 0 for no samples.
pub fn percentile(samples: &mut [u64], per_mille: usize) -> u64 {
    if samples.is_empty() {
        return 0;
    }
    let rank = (samples.len() * per_mille / 1000).min(samples.len() - 1);
    *samples.select_nth_unstable(rank).1
}

/// The middle value; `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::{median, percentile};

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let mut samples: Vec<u64> = (1..=1000).rev().collect();
        assert_eq!(percentile(&mut samples, 500), 501);
        assert_eq!(percentile(&mut samples, 990), 991);
        assert_eq!(percentile(&mut samples, 1000), 1000);
        assert_eq!(percentile(&mut [], 500), 0);
    }

    #[test]
    fn the_median_ignores_one_wild_run() {
        assert_eq!(median(&[3.0, 1.0, 900.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
