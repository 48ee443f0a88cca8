//! How much the last messages repeat one another (seed 002).
