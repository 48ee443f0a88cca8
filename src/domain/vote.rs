//! A companion's vote in a round: how a model's is read, and the State that it becomes (seed 000).
