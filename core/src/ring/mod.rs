//! Stage `ring`: how a call reaches the holder of a pool's lock, and how an answer leaves.
//!
//! | file | what | producers | consumers |
//! | --- | --- | --- | --- |
//! | [`command`] | bounded ring of 16-byte commands, one per pool; may refuse | any thread | holder of LOCK |
//! | [`urgent`] | list of nodes with request bits; never refuses | any thread | holder of LOCK |
//! | [`free_list`] | free indices of the slab | any thread | any thread |
//! | [`scheduler`] | pools that need a turn, one per shard, each at most once | any thread | one popper at a time |
//! | [`completion`] | answers to a host, places reserved beforehand | holder of LOCK | one thread |
//!
//! Everything is sized at construction: no call allocates, blocks or makes a system call. The orderings
//! are part of the protocol, and each file opens with a table of them.

pub mod command;
pub mod completion;
pub mod free_list;
pub mod scheduler;
pub mod urgent;
