//! Tests of the test double: what it refuses, and what real clients make of it. What it does otherwise, the tests of the adapter show.

pub mod client;
mod gateway;
mod rest;
mod twilight;
