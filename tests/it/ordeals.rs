//! What the real program goes through in months, in minutes: killed, halted, starved, damaged, its clock set. Each trial keeps its own book.

mod clock;
mod damage;
mod durable;
mod halted;
mod kills;
mod starved;
