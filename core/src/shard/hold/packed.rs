//! The answer to a submit as it travels through the fast path.

use super::Answer;
use crate::error::Reason;

/// An [`Answer`] to a submit in two registers: an enum goes through memory, and is read there as one word before
/// the two that make it have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Packed {
    code: u8,
    ticket: u64,
}

impl Packed {
    /// Above every reason.
    const QUEUED: u8 = u8::MAX;
    const HAS_SLOT: u8 = u8::MAX - 1;
    const KEEPS_ENTRY: u8 = u8::MAX - 2;

    /// Has a slot.
    pub(in crate::shard) const GRANTED: Self = Self { code: Self::HAS_SLOT, ticket: 0 };

    /// Waits under this ticket.
    #[inline(always)]
    pub(in crate::shard) const fn queued(idx: u32, generation: u32) -> Self {
        Self { code: Self::QUEUED, ticket: idx as u64 | (generation as u64) << 32 }
    }

    /// The answer again; a submit gives no others.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "one half each")]
    pub fn answer(self) -> Answer {
        let (idx, generation) = (self.ticket as u32, (self.ticket >> 32) as u32);
        match self.code {
            Self::QUEUED => Answer::Queued { idx, generation },
            Self::HAS_SLOT => Answer::Granted,
            Self::KEEPS_ENTRY => Answer::Held { idx, generation },
            code => Answer::Rejected(Reason::from_u8(code).unwrap_or(Reason::Busy)),
        }
    }
}

impl From<Answer> for Packed {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Queued { idx, generation } => Self::queued(idx, generation),
            Answer::Granted => Self::GRANTED,
            Answer::Held { idx, generation } => {
                Self { code: Self::KEEPS_ENTRY, ..Self::queued(idx, generation) }
            }
            Answer::Rejected(reason) => Self { code: reason as u8, ticket: 0 },
            _ => Self { code: Reason::Busy as u8, ticket: 0 },
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Answer, Packed, Reason};

    #[test]
    fn every_answer_to_a_submit_travels_unchanged() {
        let (idx, generation) = (7, u32::MAX);
        let mut answers: Vec<Answer> = Reason::ALL.map(Answer::Rejected).to_vec();
        answers.extend([
            Answer::Granted,
            Answer::Queued { idx, generation },
            Answer::Held { idx, generation },
        ]);
        for answer in answers {
            assert_eq!(Packed::from(answer).answer(), answer);
        }
    }
}
