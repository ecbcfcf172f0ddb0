//! Commands of a pool in 16 bytes, and the names of the nodes on its urgent list.

use super::Shard;
use super::pool::PoolCore;
use crate::ring::command::Command;
use crate::ring::urgent::UrgentNode;
use crate::types::NONE;

/// The kind stands in the top three bits of a code or a node id; an index or flow in the rest.
const KIND_SHIFT: u32 = 29;
const INDEX: u32 = (1 << KIND_SHIFT) - 1;

const SUBMIT: u32 = 0;
const RELEASE: u32 = 1;
const CANCEL_COMMAND: u32 = 2;
const ABANDON_COMMAND: u32 = 3;
const FINISH_COMMAND: u32 = 4;

/// Bit of an entry's node: cancel it.
pub(super) const CANCEL: u32 = 1;
/// Bit of an entry's node: its owner is gone.
pub(super) const ABANDON: u32 = 1 << 1;
/// Bit of an entry's node: its tracked permit ended.
pub(super) const FINISH: u32 = 1 << 2;

/// A decoded command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Submit {
        idx: u32,
        generation: u32,
    },
    Release {
        flow: u32,
        charged: u32,
        actual: u32,
    },
    Cancel {
        idx: u32,
        generation: u32,
    },
    Abandon {
        idx: u32,
        generation: u32,
    },
    /// The end of a tracked permit.
    Finish {
        idx: u32,
        generation: u32,
        actual: u32,
    },
}

const fn code(kind: u32, index: u32, arg: u64) -> Command {
    Command { code: kind << KIND_SHIFT | index & INDEX, arg }
}

pub(super) const fn submit(idx: u32, generation: u32) -> Command {
    code(SUBMIT, idx, generation as u64)
}

pub(super) const fn release(flow: u32, charged: u32, actual: u32) -> Command {
    code(RELEASE, flow, (charged as u64) << 32 | actual as u64)
}

pub(super) const fn cancel(idx: u32, generation: u32) -> Command {
    code(CANCEL_COMMAND, idx, generation as u64)
}

pub(super) const fn abandon(idx: u32, generation: u32) -> Command {
    code(ABANDON_COMMAND, idx, generation as u64)
}

pub(super) const fn finish(idx: u32, generation: u32, actual: u32) -> Command {
    code(FINISH_COMMAND, idx, (generation as u64) << 32 | actual as u64)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "both halves were 32 bits when they were packed"
)]
pub(super) const fn decode(command: Command) -> Code {
    let index = command.code & INDEX;
    let low = command.arg as u32;
    match command.code >> KIND_SHIFT {
        SUBMIT => Code::Submit { idx: index, generation: low },
        RELEASE => {
            let flow = if index == INDEX { NONE } else { index };
            Code::Release { flow, charged: (command.arg >> 32) as u32, actual: low }
        }
        CANCEL_COMMAND => Code::Cancel { idx: index, generation: low },
        FINISH_COMMAND => {
            Code::Finish { idx: index, generation: (command.arg >> 32) as u32, actual: low }
        }
        _ => Code::Abandon { idx: index, generation: low },
    }
}

/// Whose node an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Entry(u32),
    Flow(u32),
    Pool,
    Marks,
}

impl Node {
    /// The id of this node on its pool's list.
    pub(super) const fn id(self) -> u32 {
        match self {
            Self::Entry(idx) => idx,
            Self::Flow(flow) => 1 << KIND_SHIFT | flow,
            Self::Pool => 2 << KIND_SHIFT,
            Self::Marks => 3 << KIND_SHIFT,
        }
    }
}

pub(super) const fn node_kind(id: u32) -> Node {
    match id >> KIND_SHIFT {
        0 => Node::Entry(id & INDEX),
        1 => Node::Flow(id & INDEX),
        2 => Node::Pool,
        _ => Node::Marks,
    }
}

/// The node behind an id.
pub(super) fn node<'s>(shard: &'s Shard, pool: &'s PoolCore, id: u32) -> &'s UrgentNode {
    match node_kind(id) {
        Node::Entry(idx) => shard.slab.node(idx),
        Node::Flow(flow) => pool.owed(flow),
        Node::Pool => pool.owed(NONE),
        Node::Marks => pool.marks(),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn commands_and_node_names_survive_their_packing() {
        assert_eq!(decode(submit(7, u32::MAX)), Code::Submit { idx: 7, generation: u32::MAX });
        let none = Code::Release { flow: NONE, charged: 5, actual: u32::MAX };
        assert_eq!(decode(release(NONE, 5, u32::MAX)), none);
        assert_eq!(decode(release(3, 1, 2)), Code::Release { flow: 3, charged: 1, actual: 2 });
        let finished = Code::Finish { idx: 9, generation: u32::MAX, actual: 7 };
        assert_eq!(decode(finish(9, u32::MAX, 7)), finished);
        assert_eq!(decode(cancel(1, 2)), Code::Cancel { idx: 1, generation: 2 });
        assert_eq!(decode(abandon(1, 2)), Code::Abandon { idx: 1, generation: 2 });
        for node in [Node::Entry(0), Node::Entry(INDEX), Node::Flow(9), Node::Pool, Node::Marks] {
            assert_eq!(node_kind(node.id()), node);
        }
    }
}
