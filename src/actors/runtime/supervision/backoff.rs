//! The pauses between attempts to connect.

use std::time::Duration;

/// The pause before reconnecting if the platform names none. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, unless the platform asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST_PAUSE }
    }
}

impl Backoff {
    /// How long to wait. If the platform asked for a pause, that one, but at least the first pause. Otherwise our own next pause plus jitter
    /// of up to half of it (`fraction` is 0.0 to 1.0).
    pub fn pause(&mut self, asked_for: Option<Duration>, fraction: f64) -> Duration {
        let own = self.next;
        self.next = (own * 2).min(LONGEST_PAUSE);
        match asked_for {
            Some(asked_for) => asked_for.max(FIRST_PAUSE),
            None => own + own.mul_f64(fraction.clamp(0.0, 1.0) / 2.0),
        }
    }
}
