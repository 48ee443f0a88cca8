//! The gate in Python, for comparison: the same rules in a plain loop.

use std::path::Path;
use std::process::Command;

/// Runs `gate.py` beside this file, and prints what it says.
pub fn run() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/deciding/gate.py");
    println!("\nthe same gate in Python, for comparison (benches/deciding/gate.py):");
    match Command::new("python3").arg(&script).output() {
        Ok(output) if output.status.success() => print!("{}", String::from_utf8_lossy(&output.stdout)),
        Ok(output) => println!("SKIPPED: it failed: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("SKIPPED: python3 cannot be run: {error}"),
    }
}
