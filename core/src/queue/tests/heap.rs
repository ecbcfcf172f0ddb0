//! The packed heap against sorting.

use alloc::{vec, vec::Vec};

use proptest::prelude::*;

use crate::queue::heap::{MAX_KEY, PackedHeap, Positions};

struct Places(Vec<u32>);

impl Positions for Places {
    fn set_position(&mut self, index: u32, position: u32) {
        self.0[index as usize] = position;
    }
}

fn drain(heap: &mut PackedHeap, at: &mut Places) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    while let (Some(key), Some(index)) = (heap.top_key(), heap.top()) {
        assert_eq!(at.0[index as usize], 0, "the top stands at 0");
        out.push((key, index));
        heap.pop(at);
    }
    out
}

proptest! {
    #![proptest_config(super::cases(200))]

    #[test]
    fn it_gives_out_what_sorting_would_after_any_changes(
        keys in proptest::collection::vec(0..=MAX_KEY, 1..200),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), prop::option::of(0..500_u64)), 0..100),
        halve in any::<bool>(),
    ) {
        let mut at = Places(vec![0; keys.len()]);
        let mut heap = PackedHeap::new();
        let room = u32::try_from(keys.len()).unwrap();
        heap.reserve(room, room);
        let mut model: Vec<(u64, u32)> = keys.iter().copied().zip(0..).collect();
        for &(key, index) in &model {
            heap.push(key, index, &mut at);
        }
        for (pick, change) in changes {
            if model.is_empty() {
                break;
            }
            let chosen = pick.index(model.len());
            let position = at.0[model[chosen].1 as usize];
            if let Some(key) = change {
                model[chosen].0 = key;
                heap.update(position, key, &mut at);
            } else {
                model.swap_remove(chosen);
                heap.remove(position, &mut at);
            }
        }
        if halve {
            let old: Vec<u64> = (0..u32::try_from(keys.len()).unwrap())
                .map(|index| model.iter().find(|it| it.1 == index).map_or(0, |it| it.0))
                .collect();
            heap.rekey(&mut at, |_, index| MAX_KEY - old[index as usize]);
            for it in &mut model {
                it.0 = MAX_KEY - it.0;
            }
        }
        model.sort_unstable();
        prop_assert_eq!(heap.len(), model.len());
        prop_assert_eq!(drain(&mut heap, &mut at), model);
    }
}
