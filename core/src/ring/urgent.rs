//! The urgent list: commands that must never be refused, when LOCK is taken and the ring is full.
//!
//! What is asked stands in the bits of a **node** that exists once per slab index, per flow and per pool,
//! so nothing is allocated and nothing can be full. Whoever turns a node's word from "nothing asked" to
//! "something asked" links the node; everybody after that only adds bits. The holder takes the whole list
//! by one swap.
//!
//! | word | written by | ordering | read by | ordering |
//! | --- | --- | --- | --- | --- |
//! | `word` of a node | posters, RMW | AcqRel | holder, swap(0) | AcqRel |
//! | `difference` of a value node | posters, `fetch_add` before the word | Relaxed | holder, swap(0) after the word | Relaxed |
//! | `link` of a node | the one poster who found the word idle | Relaxed, before the list head | holder, before it takes the word | Relaxed |
//! | list `head` | posters, CAS | Release: the link is there | holder, swap(empty) | Acquire |
//!
//! `link` is free to be written again the moment the word is taken (somebody finds it idle and links the
//! node anew), hence the holder reads `link` first. A node whose word is not idle is linked, or its poster
//! is just about to link it: freeing a slab entry therefore never touches its node.
//!
//! A poster that sleeps between bits and link delays its own node, nothing else.

use crate::sync::{AtomicU32, AtomicU64, Backoff, Ordering, planted};
use crate::types::NONE;

/// What [`UrgentNode::ask`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Asked {
    /// The node was idle: the caller links it with [`UrgentList::push`].
    Link,
    /// The node is linked already, or about to be: the holder will find the bit.
    Joined,
    /// A newer generation asks: the caller's entry is gone.
    Stale,
}

/// A place on the urgent list: used either as an entry's node ([`ask`](Self::ask)), as a flow's
/// (in an [`OwedNode`]), or for the marks of a pool ([`mark`](Self::mark)), never mixed.
#[derive(Debug)]
pub struct UrgentNode {
    word: AtomicU64,
    link: AtomicU32,
}

impl UrgentNode {
    /// A node with nothing asked.
    pub fn new() -> Self {
        Self { word: AtomicU64::new(0), link: AtomicU32::new(NONE) }
    }

    /// Entry node: asks for the request `bits` (not 0) on behalf of `generation`. An older generation's
    /// bits are void and replaced. Generations compare modulo `2^32`: the one less than `2^31` ahead is
    /// the newer. Lock-free; any thread.
    pub fn ask(&self, generation: u32, bits: u32) -> Asked {
        debug_assert!(bits != 0, "an idle node could not be told from an asked one");
        let mut backoff = Backoff::new();
        // ORDERING: Relaxed. Only a guess for the CAS below.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (there, old) = split(word);
            let (next, outcome) = if old == 0 {
                (join(generation, bits), Asked::Link)
            } else if there == generation {
                (join(generation, old | bits), Asked::Joined)
            } else if is_newer(generation, there) || planted!("n2") {
                (join(generation, bits), Asked::Joined)
            } else {
                return Asked::Stale;
            };
            // ORDERING: AcqRel. Release publishes what the poster wrote before; Acquire orders the link it
            // may write after the holder's read of the last one. Pairs with the swap in `take`.
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return outcome,
                Err(now) => word = now,
            }
            backoff.snooze();
        }
    }

    /// A pool's node: sets mark bits (not 0). `true`: the caller links the node. Wait-free; any thread.
    #[must_use]
    pub fn mark(&self, bits: u64) -> bool {
        debug_assert!(bits != 0, "an idle node could not be told from a marked one");
        // ORDERING: AcqRel, as in `ask`: the marks' values stand in other atomics and are published here.
        self.word.fetch_or(bits, Ordering::AcqRel) == 0
    }

    /// Whether something is asked and not taken. A hint: it may change at once. Wait-free; any thread.
    #[inline]
    pub fn is_asked(&self) -> bool {
        // ORDERING: Relaxed; the caller's fence orders it where it matters.
        self.word.load(Ordering::Relaxed) != 0
    }

    /// Takes what is asked and leaves the node idle; see [`bits_of`]. Only the holder of
    /// LOCK, and only through [`Chain::next`] or for a node it knows to be off the list. Wait-free.
    #[inline]
    pub fn take(&self) -> u64 {
        // ORDERING: AcqRel. Acquire sees what the posters wrote before; Release keeps our read of `link`
        // before the next poster's store of it.
        self.word.swap(0, Ordering::AcqRel)
    }
}

impl Default for UrgentNode {
    fn default() -> Self {
        Self::new()
    }
}

/// A value node: how many permits of a flow (or of no flow) were released, and what they used beyond their
/// estimates, all together.
///
/// The two are not changed as one. The sum comes first, so whoever takes the count has the sum of those
/// counted; it may hold the difference of a release whose count is still to come, which is then settled
/// a moment early. Neither can overflow: a pool has at most `2^20` slots, and a difference is below `2^32`.
#[derive(Debug, Default)]
pub struct OwedNode {
    /// Its word is the count.
    node: UrgentNode,
    /// Two's complement.
    difference: AtomicU64,
}

impl OwedNode {
    /// A node with nothing owed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its place on the list.
    pub const fn node(&self) -> &UrgentNode {
        &self.node
    }

    /// One more permit was released; it used so many tokens above its estimate (below zero: fewer). `true`:
    /// the caller links the node. Wait-free; any thread.
    #[must_use]
    pub fn owe(&self, difference: i64) -> bool {
        if difference != 0 {
            // ORDERING: Relaxed; published by the count behind it.
            self.difference.fetch_add(difference.cast_unsigned(), Ordering::Relaxed);
        }
        if planted!("v1") {
            // ORDERING: Relaxed, Release, as if only the publication mattered.
            let count = self.node.word.load(Ordering::Relaxed);
            self.node.word.store(count + 1, Ordering::Release);
            return count == 0;
        }
        // ORDERING: AcqRel, as in `ask`; Release publishes the difference too.
        self.node.word.fetch_add(1, Ordering::AcqRel) == 0
    }

    /// Takes what was used beyond the estimates. Only the holder of LOCK, after it took the count (the word
    /// that [`Chain::next`] gave). Wait-free.
    pub fn take_difference(&self) -> i64 {
        // ORDERING: Relaxed; the Acquire of the count orders it after what was counted.
        self.difference.swap(0, Ordering::Relaxed).cast_signed()
    }
}

const fn join(generation: u32, bits: u32) -> u64 {
    (generation as u64) << 32 | bits as u64
}

/// The two halves of an entry node's word: generation, bits.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
pub const fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// Whether generation `a` is newer than `b`, modulo `2^32`.
#[inline]
pub const fn is_newer(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

/// The request bits of a taken entry word that hold for `generation`: all, or none if another asked.
#[inline]
pub fn bits_of(word: u64, generation: u32) -> u32 {
    let (asked_by, bits) = split(word);
    if asked_by == generation || planted!("n1") { bits } else { 0 }
}

/// The list itself: one per pool. The owner gives it a cache line of its own.
#[derive(Debug)]
pub struct UrgentList {
    head: AtomicU32,
}

impl UrgentList {
    /// An empty list.
    pub fn new() -> Self {
        Self { head: AtomicU32::new(NONE) }
    }

    /// Links the node the caller just turned from idle to asked; `id` is how the holder finds it again
    /// (anything but [`NONE`]). Lock-free; any thread.
    pub fn push(&self, id: u32, node: &UrgentNode) {
        debug_assert!(id != NONE, "NONE is the end of the list");
        let mut backoff = Backoff::new();
        // ORDERING: Relaxed. Only a guess for the CAS; the nodes behind it are not looked at.
        let mut head = self.head.load(Ordering::Relaxed);
        let publish = if planted!("u1") { Ordering::Relaxed } else { Ordering::Release };
        loop {
            // ORDERING: Relaxed; published by the CAS below.
            node.link.store(head, Ordering::Relaxed);
            // ORDERING: Release pairs with the swap in `take_all`. Each later push is an RMW and carries
            // the earlier ones on, so one Acquire sees every link.
            match self.head.compare_exchange_weak(head, id, publish, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
            backoff.snooze();
        }
    }

    /// Whether no node is linked: part of a holder's look after its unlock, behind a `fence(SeqCst)`.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // ORDERING: Relaxed; the fences of poster and holder order it.
        self.head.load(Ordering::Relaxed) == NONE
    }

    /// Holder of LOCK only: takes the whole list. Looks before it swaps, so that an empty list costs no
    /// locked instruction. Wait-free.
    #[inline]
    pub fn take_all(&self) -> Chain {
        if self.is_empty() {
            return Chain::EMPTY;
        }
        // ORDERING: Acquire pairs with the Release in `push`: the links are there. Nothing is published.
        Chain { next: self.head.swap(NONE, Ordering::Acquire) }
    }
}

impl Default for UrgentList {
    fn default() -> Self {
        Self::new()
    }
}

/// What is left of a taken list: one id. A holder whose budget is spent keeps it as plain work left and
/// the next one walks on. Latest posted first.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Chain {
    next: u32,
}

impl Chain {
    /// Nothing left.
    pub const EMPTY: Self = Self { next: NONE };

    /// Whether the whole chain was walked.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.next == NONE
    }

    /// Takes the next node: its id and its word, or `None` at the end. The word may be 0 (its owner took
    /// it already). `lookup` finds the node of an id.
    #[inline]
    pub fn next<'n>(&mut self, lookup: impl FnOnce(u32) -> &'n UrgentNode) -> Option<(u32, u64)> {
        if self.is_empty() {
            return None;
        }
        let id = self.next;
        let node = lookup(id);
        if planted!("u2") {
            let word = node.take();
            // ORDERING: Relaxed; too late, the node may be linked anew.
            self.next = node.link.load(Ordering::Relaxed);
            return Some((id, word));
        }
        // ORDERING: Relaxed; ordered by the Acquire of `take_all`, or by LOCK if the chain was left over.
        // Before the word is taken: from then on the link belongs to whoever asks next.
        self.next = node.link.load(Ordering::Relaxed);
        Some((id, node.take()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Asked, Chain, OwedNode, UrgentList, UrgentNode, bits_of, is_newer, split};

    fn nodes<const N: usize>() -> [UrgentNode; N] {
        core::array::from_fn(|_| UrgentNode::new())
    }

    #[test]
    fn only_the_first_to_ask_links_and_all_bits_arrive() {
        let [node] = nodes();
        assert_eq!(node.ask(7, 1), Asked::Link);
        assert_eq!(node.ask(7, 4), Asked::Joined);
        assert_eq!(node.ask(7, 4), Asked::Joined);
        assert!(node.is_asked());
        let word = node.take();
        assert_eq!(bits_of(word, 7), 5);
        assert!(!node.is_asked());
        assert_eq!(node.ask(7, 2), Asked::Link);
    }

    #[test]
    fn a_newer_generation_replaces_and_an_older_is_stale() {
        let [node] = nodes();
        assert_eq!(node.ask(u32::MAX, 1), Asked::Link);
        assert_eq!(node.ask(0, 2), Asked::Joined, "newer across the wrap, linked already");
        assert_eq!(split(node.take()), (0, 2));
        assert!(is_newer(0, u32::MAX) && !is_newer(u32::MAX, 0) && !is_newer(3, 3));
    }

    #[test]
    fn released_permits_are_counted_and_their_differences_summed() {
        let owed = OwedNode::new();
        assert!(owed.owe(10));
        assert!(!owed.owe(-30));
        assert_eq!((owed.node().take(), owed.take_difference()), (2, -20));
        assert!(owed.owe(0), "a release that cost what was said still links");
        assert_eq!((owed.node().take(), owed.take_difference()), (1, 0));
        let most = i64::from(u32::MAX);
        for sign in [1, -1] {
            for _ in 0..1 << 12 {
                let _linked = owed.owe(sign * most);
            }
            assert_eq!(
                (owed.node().take(), owed.take_difference()),
                (1 << 12, (sign * most) << 12)
            );
        }
    }

    #[test]
    fn marks_join_until_they_are_taken() {
        let [node] = nodes();
        assert!(node.mark(1));
        assert!(!node.mark(8));
        assert!(!node.mark(1));
        assert_eq!(node.take(), 9);
        assert!(node.mark(8));
    }

    #[test]
    fn a_chain_is_walked_latest_first_and_can_be_left_and_resumed() {
        let nodes: [UrgentNode; 4] = nodes();
        let list = UrgentList::new();
        assert!(list.is_empty());
        assert_eq!(list.take_all(), Chain::EMPTY);
        for id in 0..3 {
            assert!(nodes[id as usize].mark(1 << id));
            list.push(id, &nodes[id as usize]);
        }
        let mut chain = list.take_all();
        assert!(list.is_empty());
        let lookup = |id: u32| &nodes[id as usize];
        assert_eq!(chain.next(lookup), Some((2, 4)));
        // A node of the rest is asked again, a node already walked too, and a new one.
        assert!(!nodes[0].mark(8), "still linked in the rest");
        assert!(nodes[2].mark(16));
        list.push(2, &nodes[2]);
        assert!(nodes[3].mark(32));
        list.push(3, &nodes[3]);
        assert_eq!(chain.next(lookup), Some((1, 2)));
        assert_eq!(chain.next(lookup), Some((0, 9)));
        assert_eq!(chain.next(lookup), None);
        let mut chain = list.take_all();
        assert_eq!(chain.next(lookup), Some((3, 32)));
        assert_eq!(chain.next(lookup), Some((2, 16)));
        assert!(chain.is_empty());
    }
}
