//! Timers the usual way: a 4-ary heap of deadlines with the position of each timer beside it, so that one
//! can be taken out of the middle.

/// Timers 0..n, each in the heap.
#[derive(Debug)]
pub struct Heap4 {
    heap: Vec<(u64, u32)>,
    position: Vec<u32>,
}

impl Heap4 {
    /// Timers with these deadlines, timer `i` with the i-th.
    pub fn new(deadlines: impl IntoIterator<Item = u64>) -> Self {
        let mut heap = Self { heap: Vec::new(), position: Vec::new() };
        for (timer, deadline) in (0u32..).zip(deadlines) {
            heap.position.push(timer);
            heap.insert(timer, deadline);
        }
        heap
    }

    /// Adds a timer that is not in the heap.
    #[inline(always)]
    pub fn insert(&mut self, timer: u32, deadline: u64) {
        self.heap.push((deadline, timer));
        self.rise(self.heap.len() - 1);
    }

    /// Takes a timer out that is in the heap.
    #[inline(always)]
    pub fn cancel(&mut self, timer: u32) {
        let hole = self.position[timer as usize] as usize;
        let Some(last) = self.heap.pop() else { return };
        if hole < self.heap.len() {
            self.place(hole, last);
            self.rise(hole);
            self.sink(hole);
        }
    }

    /// The timer that is due first.
    pub fn first(&self) -> Option<(u64, u32)> {
        self.heap.first().copied()
    }

    #[inline(always)]
    fn place(&mut self, at: usize, item: (u64, u32)) {
        self.heap[at] = item;
        self.position[item.1 as usize] = u32::try_from(at).unwrap_or(u32::MAX);
    }

    fn rise(&mut self, mut at: usize) {
        let item = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent].0 <= item.0 {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, item);
    }

    fn sink(&mut self, mut at: usize) {
        let item = self.heap[at];
        loop {
            let first = 4 * at + 1;
            let end = (first + 4).min(self.heap.len());
            let Some(child) = (first..end).min_by_key(|child| self.heap[*child].0) else { break };
            if self.heap[child].0 >= item.0 {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, item);
    }
}

#[cfg(test)]
mod tests {
    use super::Heap4;
    use crate::rng::Rng;

    #[test]
    fn cancelled_timers_never_come_up_and_the_rest_come_in_order() {
        let mut rng = Rng::new(7);
        let deadlines: Vec<u64> = (0..500).map(|_| rng.bits() % 1000).collect();
        let mut heap = Heap4::new(deadlines.iter().copied());
        for timer in (0..500).step_by(3) {
            heap.cancel(timer);
        }
        let mut seen = Vec::new();
        while let Some((deadline, timer)) = heap.first() {
            assert_ne!(timer % 3, 0, "timer {timer} was cancelled");
            seen.push(deadline);
            heap.cancel(timer);
        }
        assert_eq!(seen.len(), 333);
        assert!(seen.is_sorted());
    }
}
