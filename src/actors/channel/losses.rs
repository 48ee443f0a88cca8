//! Counts how often questions, judgements and replies were lost with an actor that died, and decides when each is started again.

use std::collections::HashMap;
use std::time::Duration;

use crate::domain::id::Ticket;

/// The maximum number of starts of a question, judgement or reply. The pauses between them add up to five seconds.
const MAX_ATTEMPTS: u32 = 11;

#[derive(Default)]
pub(super) struct Losses(HashMap<Ticket, u32>);

impl Losses {
    /// Counts a loss. Returns the pause before the work is started again. `None`: the work is given up. `is_wanted` returns whether work is still
    /// needed.
    ///
    /// The first pauses are short, because an actor that died usually restarts at once.
    pub(super) fn lose(&mut self, ticket: Ticket, is_wanted: impl Fn(Ticket) -> bool) -> Option<Duration> {
        self.0.retain(|ticket, _| is_wanted(*ticket));
        let losses = self.0.entry(ticket).or_default();
        *losses += 1;
        (*losses < MAX_ATTEMPTS).then(|| Duration::from_millis(5 << (*losses - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_started_again_for_five_seconds() {
        let mut losses = Losses::default();

        let pauses: Vec<_> = std::iter::from_fn(|| losses.lose(Ticket(1), |_| true)).collect();

        assert_eq!((pauses.len(), pauses[0].as_millis()), (10, 5));
        assert_eq!(pauses.iter().sum::<Duration>().as_millis(), 5_115);
        assert_eq!(losses.lose(Ticket(2), |ticket| ticket == Ticket(2)), Some(pauses[0]));
        assert_eq!(losses.0.len(), 1, "what nobody waits for is forgotten");
    }
}
