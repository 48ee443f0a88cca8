//! Decides when to send `Finalize` to a recogniser because audio has stopped arriving (docs/design/voice.md A-13).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::moment::Moment;

/// How long to wait for the answer to `Finalize`.
pub const FINALIZE_TIMEOUT: Duration = Duration::from_secs(1);

/// Tracks the audio that is forwarded to one person's recogniser. A streaming recogniser holds back its last segment while it receives no audio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pump {
    /// The time of the newest audio that was forwarded since the last `Finalize`.
    forwarded: Option<Moment>,
}

impl Pump {
    pub fn forwarded(&mut self, at: Moment) {
        self.forwarded = self.forwarded.max(Some(at));
    }

    /// Records that `Finalize` was sent for another reason, such as an offset.
    pub fn finalized(&mut self) {
        self.forwarded = None;
    }

    /// When to send `Finalize` unless audio arrives first: `idle` after the newest audio.
    pub fn deadline(&self, idle: Duration) -> Option<Moment> {
        self.forwarded.map(|at| at + idle)
    }

    /// Whether to send `Finalize` now. It is sent once for each pause.
    pub fn wake(&mut self, now: Moment, idle: Duration) -> bool {
        let is_due = self.deadline(idle).is_some_and(|deadline| deadline <= now);
        if is_due {
            self.finalized();
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_millis(500);

    #[test]
    fn a_recogniser_without_audio_is_told_to_finish_once() {
        let mut pump = Pump::default();
        let at = |millis| Moment::ZERO + Duration::from_millis(millis);

        assert_eq!(pump.deadline(IDLE), None);
        pump.forwarded(at(100));
        pump.forwarded(at(200));
        assert_eq!(pump.deadline(IDLE), Some(at(700)));
        assert!(!pump.wake(at(699), IDLE));
        assert!(pump.wake(at(700), IDLE));
        assert!(!pump.wake(at(2_000), IDLE));

        pump.forwarded(at(2_100));
        pump.finalized();
        assert_eq!(pump.deadline(IDLE), None);
    }
}
