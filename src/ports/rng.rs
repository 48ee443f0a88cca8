//! Randomness, as a port, so that a run of the whole system can be reproduced from a seed.

/// A source of unpredictable values.
pub trait Rng: Send + Sync + 'static {
    /// A jitter for an interjection interval: one of −2, −1, 0, 1, 2, equally likely (docs/design/gate.md G-7).
    fn jitter(&self) -> i8;

    /// A fraction in `0.0..1.0`, for spreading retries and restarts.
    fn fraction(&self) -> f64;

    /// 128 bits fit for a secret or an id.
    fn id(&self) -> u128;
}
