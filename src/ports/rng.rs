//! Randomness as a port, so that a run of the whole system can be reproduced from a seed.

/// A source of unpredictable values.
pub trait Rng: Send + Sync + 'static {
    /// A jitter for an interjection interval: −2, −1, 0, 1 or 2 with equal probability (docs/design/gate.md G-7).
    fn jitter(&self) -> i8;

    /// A number in `0.0..1.0`, for spreading retries and restarts.
    fn fraction(&self) -> f64;

    /// 128 bits that are suitable for a secret or an id.
    fn id(&self) -> u128;
}
