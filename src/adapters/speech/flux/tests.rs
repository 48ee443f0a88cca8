//! Turns, over a service that ends them, and one that does not.
