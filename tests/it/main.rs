//! Tests of the whole: one binary, because linking costs more than running.

mod harness;
mod processes;
